-- SPDX-License-Identifier: Apache-2.0
-- Several checks of the plain kind (one_begin.lua), each on a key of its own: C marks them by action
-- 3, or 4 where they are to be reserved (decide.lua). Under EACH and QUOTA every one is charged iff
-- it is admitted, else iff none but shadow ones is denied. Nothing is written before all are
-- decided.
local policy, action = string.byte(checks[#KEYS + 1], 2, 3)
if action >= 3 then
    local keys, count, several, plain, allowed = KEYS, #KEYS, true, true, true
    local reservation = action == 4 and keys[count]
    local parts, states, afters, times, offsets, heads = {0}, {}, {}, {}, {}, {}
    if reservation then
        if call('GET', reservation) then return {2} end
        count = count - 1
    end
    for i = 1, count do
        local packed, name = checks[i], keys[i]
        local kind, admits, state, fresh, offset, head, after, part = string.byte(packed)
        if kind == 0xe0 then
            --% include fixed_window_plain
        elseif kind == 0xe1 or kind == 0xe8 then
            --% include sliding_window_plain
        elseif kind == 0xe2 or kind == 0xe7 then
            --% include expiry_list_plain
        elseif kind <= 0xe6 then
            --% include bucket_plain
        else
            plain = false
        end
        if not plain then break end
        if not admits and string.byte(packed, 2) % 2 == 0 then allowed = false end
        parts[i + 1], states[i], afters[i], times[i] = part, state or false, after, fresh
        offsets[i], heads[i] = offset, head
    end
    if plain then
        local marks = {}
        if policy > 0 then allowed = true end
        for i = 1, allowed and count or 0 do
            local fresh = times[i]
            marks[i] = '\0'
            if fresh == true then
                call('SET', keys[i], states[i], 'KEEPTTL')
                parts[i + 1], marks[i] = afters[i], '\1'
            elseif fresh then
                if given then fresh = (clock[1] + 3600) * 1000000 end
                fresh = (fresh - fresh % 1000) / 1000 .. ''
                if offsets[i] then
                    call('SETRANGE', keys[i], '0', heads[i])
                    call('SETRANGE', keys[i], offsets[i] .. '', states[i])
                    call('PEXPIREAT', keys[i], fresh)
                else
                    call('SET', keys[i], states[i], 'PXAT', fresh)
                end
                parts[i + 1], marks[i] = afters[i], '\1'
            end
        end
        if reservation and allowed then
            call('SET', reservation, RESERVED .. pack('<d', now) .. table.concat(marks), 'PX',
                '60000')
        end
        return parts
    end
end
