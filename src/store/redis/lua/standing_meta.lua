-- SPDX-License-Identifier: Apache-2.0
-- Which run of changes this is: recreated where Redis has lost it, so that all nodes read all again.
local function open_meta(changes, meta, epoch, secret)
    local known = redis.call('HMGET', meta, 'epoch', 'secret', 'seq')
    if known[1] and known[2] then
        return known[1], known[2], tonumber(known[3] or '0')
    end
    redis.call('DEL', changes)
    redis.call('HSETNX', meta, 'secret', secret)
    redis.call('HSET', meta, 'epoch', epoch, 'seq', '0')
    return epoch, redis.call('HGET', meta, 'secret'), 0
end
