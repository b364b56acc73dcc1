-- SPDX-License-Identifier: Apache-2.0
-- sliding_window of S > 1 segments (src/core/span/segments.h): the start of the newest segment that was
-- charged, the sum of its counter and the S before it, and these counters, the oldest first, in
-- four bytes each.
local segments = {}
local COUNT_MAX, RING = 4294967295, 1 + 3 * 8

function segments.read(c, packed)
    local _
    _, _, c.w, c.rate, c.cost, c.length = unpack('<BBdddd', packed)
end

local function counter(c, place)
    return (unpack('<I4', c.ring, 4 * place + 1))
end

function segments.load(c, s)
    c.newest, c.sum, c.ring = 0, 0, string.rep('\0', 4 * (c.length + 1))
    if not s then return end
    local _, newest, sum, w = unpack('<Bddd', s)
    c.other = w ~= c.w or #s ~= RING + 4 * (c.length + 1)
    if c.other then return end
    c.newest, c.sum, c.ring = newest, sum, string.sub(s, RING + 1)
end

-- The window of now: the start of its segment, the sum of all counters but that of S before, that
-- one, and what is left of the segment.
local function segments_view(c)
    local start = now - now % c.w
    local left = start + c.w - now
    if c.newest > start then start, left = c.newest, c.w end
    local gone, newer = (start - c.newest) / c.w, c.sum
    if gone > c.length or newer == 0 then return start, 0, 0, left end
    for place = 0, gone - 1 do newer = newer - counter(c, place) end
    local oldest = counter(c, gone)
    return start, newer - oldest, oldest, left
end

local function segments_admits(c, cost, newer, oldest, left)
    local room = c.rate - cost - newer
    if oldest <= room then return true end
    return room >= 0 and c.kind == 0xe9 and product_less(oldest, left, room + 1, c.w)
end

function segments.test(c, to, cost)
    local _, newer, oldest, left = segments_view(to)
    return segments_admits(c, cost, newer, oldest, left)
end

function segments.charge(c, to)
    if c.cost == 0 then return false end
    local start, newer, oldest = segments_view(to)
    local gone = math.min((start - to.newest) / c.w, c.length + 1)
    if newer + oldest == 0 then to.ring, gone = '', c.length + 1 end
    if gone > 0 then to.ring = string.sub(to.ring, 4 * gone + 1) .. string.rep('\0', 4 * gone) end
    local count = counter(to, c.length)
    local charged = math.min(c.cost, COUNT_MAX - count)
    to.newest, to.sum = start, newer + oldest + charged
    to.ring = string.sub(to.ring, 1, 4 * c.length) .. pack('<I4', count + charged)
    return true
end

segments.charge_denied = segments.charge

-- In place: a refund is no time that the state has seen.
function segments.refund(c, to, at)
    at = at - at % c.w
    local place = c.length - (to.newest - at) / c.w
    if at + c.length * c.w < now - now % c.w or place < 0 or place > c.length then return false end
    local count = counter(to, place)
    local back = math.min(c.cost, count)
    if back == 0 then return false end
    to.sum = to.sum - back
    to.ring = string.sub(to.ring, 1, 4 * place) .. pack('<I4', count - back) ..
        string.sub(to.ring, 4 * place + 5)
    return true
end

-- The newest counter that is not 0 leaves last.
local function segments_fresh(c)
    if c.sum == 0 then return 0 end
    local place = c.length
    while counter(c, place) == 0 do place = place - 1 end
    return c.newest + (place + 1) * c.w
end

function segments.save(c)
    return pack('<Bddd', c.kind, c.newest, c.sum, c.w) .. c.ring, segments_fresh(c)
end

-- Where a cost that is denied now will be admitted: the start of the segment, the room that is left
-- beside the newer counters, and the oldest, which fades in it or leaves at its end. The nanosecond
-- is for C to find.
local function segments_retry(c, to, cost, start, newer, oldest)
    local total = c.rate - cost
    while true do
        local room = total - newer
        if room >= 0 and (oldest <= room or c.kind == 0xe9) then return start, room, oldest end
        start = start + c.w
        local place = (start - to.newest) / c.w
        oldest = place <= c.length and counter(to, place) or 0
        newer = newer - oldest
    end
end

-- Bit 2 of the mark: the cost is still denied; bit 3: and so would be a cost of 1.
function segments.tell(c, to, mark)
    local start, newer, oldest, left = segments_view(to)
    local part, more = pack('<dddddd', now, start, newer, oldest, left, segments_fresh(to)), ''
    local cost, one = c.ask or c.cost, c.one or 1
    local admits = mark % 2 == 1 or segments_admits(c, cost, newer, oldest, left)
    if not admits and cost <= c.rate then
        mark = mark + 4
        more = pack('<ddd', segments_retry(c, to, cost, start, newer, oldest))
    end
    if c.rate > 0 and not segments_admits(c, one, newer, oldest, left) then
        mark = mark + 8
        more = more .. pack('<ddd', segments_retry(c, to, one, start, newer, oldest))
    end
    return pack('<B', mark) .. part .. more
end

function segments.fresh(s)
    local c = {}
    local _
    _, c.newest, c.sum, c.w = unpack('<Bddd', s)
    c.length, c.ring = (#s - RING) / 4 - 1, string.sub(s, RING + 1)
    return segments_fresh(c) - EPOCH, 0
end

states[0xe9], states[0xea] = segments, segments
