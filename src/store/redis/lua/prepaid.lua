-- SPDX-License-Identifier: Apache-2.0
-- prepaid units (src/core/prepaid.h): when they end, and how many are left.
local prepaid, PREPAID_MAX = {}, 1099511627776

function prepaid.read(c, packed)
    local _
    _, _, _, c.rate, c.cost = unpack('<BBddd', packed)
end

function prepaid.load(c, s)
    c.ends, c.left = 0, 0
    if s then
        local _, ends, left = unpack('<Bdd', s)
        c.ends, c.left = ends, left
    end
end

local function prepaid_left(to)
    return to.ends > now and to.left or 0
end

function prepaid.test(_, to, cost)
    return prepaid_left(to) >= math.max(cost, 1)
end

function prepaid.room(_, to)
    return prepaid_left(to)
end

function prepaid.charge(c, to)
    local left = prepaid_left(to)
    local taken = math.min(c.cost, left)
    if taken > 0 then to.left = left - taken end
    return taken > 0
end

prepaid.charge_denied = prepaid.charge

-- Gives units until `at`, or gives back what was charged then.
function prepaid.refund(c, to, at)
    local ends, left = math.floor(at), prepaid_left(to)
    if to.ends > now and to.ends > ends then ends = to.ends end
    if c.cost == 0 or ends <= now then return false end
    local before, given = to.ends, math.min(c.cost, PREPAID_MAX - left)
    to.ends, to.left = ends, left + given
    return given > 0 or ends ~= before
end

function prepaid.save(c)
    return pack('<Bddd', c.kind, c.ends, c.left, now), c.ends
end

function prepaid.tell(_, to, mark)
    return pack('<Bddd', mark, to.ends, to.left, now)
end

function prepaid.fresh(s)
    local _, ends = unpack('<Bd', s)
    return ends - EPOCH, 0
end

states[0xed] = prepaid
