-- SPDX-License-Identifier: Apache-2.0
-- GCRA as a script of Redis, the way a fleet without a limiter writes it: what weir is compared with.
-- EVALSHA sha 1 key max_burst count period [quantity], in whole numbers, the period in seconds.
-- Answers as CL.THROTTLE: {denied, limit, remaining, retry_after, reset_after}, seconds rounded up.
-- Times are microseconds in doubles, exact below 2^53.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local limit = ARGV[1] + 1
local interval = ARGV[3] * 1000000 / ARGV[2]
local capacity = limit * interval
local cost = interval * (ARGV[4] or 1)

local arrival = tonumber(redis.call('GET', KEYS[1]) or now)
if arrival < now then
    arrival = now
end
local after = arrival + cost
local over = after - now - capacity
if over > 0 then
    local used = arrival - now
    local retry = -1
    if cost <= capacity then
        retry = math.ceil(over / 1000000)
    end
    return {1, limit, math.floor((capacity - used) / interval), retry, math.ceil(used / 1000000)}
end
local used = after - now
if used > 0 then
    redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', math.ceil(used / 1000))
end
return {0, limit, math.floor((capacity - used) / interval), -1, math.ceil(used / 1000000)}
