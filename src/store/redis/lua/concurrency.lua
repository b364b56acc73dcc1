-- SPDX-License-Identifier: Apache-2.0
-- concurrency (src/core/span/concurrency.h): leases in flight, each with id and owner, which expire.
local concurrency = {}

function concurrency.read(c, packed)
    local _
    c.stride = 28
    _, _, c.w, c.rate, c.cost, c.lease, c.owner = unpack('<BBdddc8c8', packed)
end

concurrency.load = entries.load

function concurrency.test(c, to, cost)
    return cost <= c.rate and (to.sum <= c.rate - cost or entries.live(to, now) <= c.rate - cost)
end

function concurrency.charge(c, to)
    if c.cost == 0 then return false end
    local count, list, sum = to.count, to.list, to.sum
    entries.purge(to, now)
    if entries.insert(to, now + c.w, c.cost, c.lease .. c.owner) then return true end
    to.count, to.list, to.sum = count, list, sum
    return false
end

-- The newest lease with this id; nil: none. An id that is found between two places is none.
local function lease_find(c, to)
    local found, at = nil, 0
    while true do
        at = string.find(to.list, c.lease, at + 1, true)
        if not at then return found end
        if (at - 13) % 28 == 0 then found = (at - 13) / 28 end
    end
end

function concurrency.refund(c, to)
    local place = c.cost > 0 and lease_find(c, to)
    if not place or entries.entry(to, place) <= now then return false end
    entries.give_back(to, place, c.cost)
    return true
end

function concurrency.release(c, to)
    local place = lease_find(c, to)
    if not place then return false end
    entries.give_back(to, place, COST_MAX)
    return true
end

concurrency.save = entries.save

function concurrency.tell(c, to, mark)
    return entries.tell(c, to, mark, now)
end

function concurrency.fresh(s)
    return entries.fresh(s, 28)
end

states[0xe7] = concurrency
