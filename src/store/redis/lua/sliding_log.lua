-- SPDX-License-Identifier: Apache-2.0
-- sliding_log (src/core/span/log.h): what was admitted in the last W, each with the time it expires.
local sliding_log = {}

function sliding_log.read(c, packed)
    local _
    _, _, c.w, c.rate, c.cost = unpack('<BBddd', packed)
    c.stride, c.converts_from = 12, c.w
end

sliding_log.load = entries.load

-- The time that the log decides at: never before its newest entry.
local function log_time(c)
    return math.max(entries.newest(c) - c.w, now)
end

function sliding_log.test(c, to, cost)
    return cost <= c.rate and (to.sum <= c.rate - cost or
        entries.live(to, log_time(to)) <= c.rate - cost)
end

function sliding_log.charge(c, to)
    if c.cost == 0 then return false end
    local at = log_time(to)
    entries.purge(to, at)
    if entries.newest(to) == at + c.w or not entries.insert(to, at + c.w, c.cost, '') then
        entries.add_to_tail(to, at + c.w, c.cost)
    end
    return true
end

sliding_log.charge_denied = sliding_log.charge

function sliding_log.room(c, to)
    return c.rate - entries.live(to, log_time(to))
end

function sliding_log.refund(c, to, at)
    local expiry, place = at + c.w, to.count - 1
    if expiry <= log_time(to) or c.cost == 0 then return false end
    while place >= 0 and entries.entry(to, place) > expiry do place = place - 1 end
    if place < 0 or entries.entry(to, place) ~= expiry then return false end
    entries.give_back(to, place, c.cost)
    return true
end

sliding_log.save = entries.save

function sliding_log.tell(c, to, mark)
    return entries.tell(c, to, mark, log_time(to))
end

function sliding_log.fresh(s)
    return entries.fresh(s, 12)
end

states[0xe2] = sliding_log
