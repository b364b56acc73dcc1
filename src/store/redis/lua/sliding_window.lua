-- SPDX-License-Identifier: Apache-2.0
-- sliding_window of one segment (src/core/window.h): the start of the newest window that was
-- charged, its count, and that of the window before.
local sliding_window = {}

function sliding_window.read(c, packed)
    local _
    _, _, c.w, c.rate, c.cost, c.most = unpack('<BBdddd', packed)
end

function sliding_window.load(c, s)
    c.at, c.count, c.before = 0, 0, 0
    if not s then return end
    local _, at, count, before, w = unpack('<Bdddd', s)
    c.other = w ~= c.w
    if c.other then return end
    c.at, c.count, c.before = at, math.min(count, c.most), math.min(before, c.most)
end

-- The window of now, its count and the one before, and what is left of it: a time before the newest
-- window is taken for its start.
local function window_view(c)
    local start = now - now % c.w
    if c.at > start then return c.at, c.count, c.before, c.w end
    local left = start + c.w - now
    if c.at == start then return start, c.count, c.before, left end
    return start, 0, c.at + c.w == start and c.count or 0, left
end

function sliding_window.test(c, to, cost)
    local _, count, before, left = window_view(to)
    local room = c.rate - cost - count
    if before <= room then return true end
    return room >= 0 and c.kind == 0xe1 and product_less(before, left, room + 1, c.w)
end

function sliding_window.charge(c, to)
    if c.cost == 0 then return false end
    local start, count, before = window_view(to)
    local charged = math.min(count + c.cost, to.most)
    if start == to.at and charged == count then return false end
    to.at, to.count, to.before = start, charged, before
    return true
end

sliding_window.charge_denied = sliding_window.charge

-- In place: a refund is no time that the state has seen.
function sliding_window.refund(c, to, at)
    local count, before = to.count, to.before
    at = at - at % c.w
    if at + c.w < window_view(to) then
        return false
    elseif at == to.at then
        to.count = math.max(count - c.cost, 0)
    elseif at + c.w == to.at then
        to.before = math.max(before - c.cost, 0)
    end
    return to.count ~= count or to.before ~= before
end

local function window_fresh(at, count, before, w)
    if count > 0 then return at + 2 * w end
    return before > 0 and at + w or 0
end

function sliding_window.save(c)
    return pack('<Bddddd', c.kind, c.at, c.count, c.before, c.w, now),
        window_fresh(c.at, c.count, c.before, c.w)
end

function sliding_window.tell(_, to, mark)
    local start, count, before = window_view(to)
    return pack('<Bdddd', mark, start, count, before, now)
end

function sliding_window.fresh(s)
    local _, at, count, before, w = unpack('<Bdddd', s)
    return window_fresh(at, count, before, w) - EPOCH, 0
end

states[0xe1], states[0xe8] = sliding_window, sliding_window
