-- SPDX-License-Identifier: Apache-2.0
-- fixed_window (src/core/window.h): the start of the newest window that was charged, and its count.
local fixed_window = {}

function fixed_window.read(c, packed)
    local _
    _, _, c.w, c.rate, c.cost, c.most = unpack('<BBdddd', packed)
end

-- As seen now: a time before the window is taken for its start.
function fixed_window.load(c, s)
    c.start, c.count = now - now % c.w, 0
    if not s then return end
    local _, at, count, w = unpack('<Bddd', s)
    c.other = w ~= c.w
    if c.other or at < c.start then return end
    c.start, c.count = at, math.min(count, c.most)
end

-- `to` has the state of the key; `cost` is joined from all checks on it.
function fixed_window.test(c, to, cost)
    return to.count <= c.rate - cost
end

function fixed_window.charge(c, to)
    local before = to.count
    to.count = math.min(before + c.cost, to.most)
    return to.count ~= before
end

fixed_window.charge_denied = fixed_window.charge

function fixed_window.refund(c, to, at)
    local before = to.count
    if at - at % c.w == to.start then to.count = math.max(before - c.cost, 0) end
    return to.count ~= before
end

function fixed_window.save(c)
    return pack('<Bdddd', c.kind, c.start, c.count, c.w, now), c.count > 0 and c.start + c.w or 0
end

function fixed_window.tell(_, to, mark)
    return pack('<Bddd', mark, to.start, to.count, now)
end

function fixed_window.fresh(s)
    local _, start, count, w = unpack('<Bddd', s)
    return (count > 0 and start + w or 0) - EPOCH, 0
end

states[0xe0] = fixed_window
