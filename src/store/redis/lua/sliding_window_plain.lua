-- SPDX-License-Identifier: Apache-2.0
-- sliding_window of one segment: see one_begin.lua. Not plain either where doubles cannot tell
-- which of two products is larger.
do
    local kind, _, w, rate, cost, most = unpack('<BBdddd', packed)
    local s = call('GET', name)
    local start, count, before, k, at, v = now - now % w, 0, 0, kind, 0, w
    local left = start + w - now
    if s then
        k, at, count, before, v = unpack('<Bdddd', s)
        if at > start then
            start, left = at, w
        elseif at + w == start then
            count, before = 0, count
        elseif at < start then
            count, before = 0, 0
        end
    end
    local room, x, y = rate - cost - count, 1, 2
    admits = before <= room
    if not admits and room >= 0 and kind == 0xe1 then
        x, y = before * left, (room + 1) * w
        admits = x < y
    end
    plain = k == kind and v == w and count <= most and before <= most and
        (x < 9e15 and y < 9e15 or x < y * 0.999999999999 or y < x * 0.999999999999)
    if plain then
        if admits and cost > 0 then
            state = pack('<Bddddd', kind, start, count + cost, before, w, now)
            fresh, after = at == start and count > 0 or start + 2 * w + 999, state
        end
        if several or not state then
            part = pack('<Bdddd', admits and 1 or 0, start, count, before, now)
        end
    end
end
