-- SPDX-License-Identifier: Apache-2.0
-- sliding_window of several segments: see one_begin.lua. Plain are those admitted that leave room.
do
    local kind, _, w, rate, cost, length = unpack('<BBdddd', packed)
    local s = call('GET', name)
    local start, size = now - now % w, 25 + 4 * (length + 1)
    local k, newest, sum, v = kind, 0, 0, w
    if s then k, newest, sum, v = unpack('<Bddd', s) end
    plain = k == kind and v == w and newest <= start and (not s or #s == size) and cost > 0
    if plain then
        local gone, newer, oldest = (start - newest) / w, 0, 0
        if sum > 0 and gone <= length then
            newer = sum
            for place = 0, gone - 1 do newer = newer - unpack('<I4', s, 26 + 4 * place) end
            oldest = unpack('<I4', s, 26 + 4 * gone)
            newer = newer - oldest
        end
        local left, room = start + w - now, rate - cost - newer
        local x, y = oldest * left, room * w
        admits = true
        plain = oldest < room or room > 0 and kind == 0xe9 and x < y * 0.999999999999
        if plain then
            local head = pack('<Bddd', kind, start, newer + oldest + cost, w)
            if newer + oldest == 0 then
                state = head .. string.rep('\0', 4 * length) .. pack('<I4', cost)
            elseif gone == 0 then
                state = head .. string.sub(s, 26, size - 4) ..
                    pack('<I4', unpack('<I4', s, size - 3) + cost)
            else
                state = head .. string.sub(s, 26 + 4 * gone) .. string.rep('\0', 4 * gone - 4) ..
                    pack('<I4', cost)
            end
            local gone_at = start + (length + 1) * w
            fresh = gone_at + 999
            after = pack('<Bdddddd', 3, now, start, newer + cost, oldest, left, gone_at)
        end
    end
end
