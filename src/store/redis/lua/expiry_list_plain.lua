-- SPDX-License-Identifier: Apache-2.0
-- sliding_log and concurrency: see one_begin.lua, and expiry_list.lua for what the state is. Of one
-- longer than 1 KB only what is needed is read and written.
do
    local kind, _, w, rate, cost = unpack('<BBddd', packed)
    local stride, text = kind == 0xe2 and 12 or 28, call('GETRANGE', name, '0', '1023')
    local size, from, k, used, v, gone, newest = #text, 0, kind, 0, w, 0, 0
    if size > 0 then
        k, used, v, gone = unpack('<Bddd', text)
        if size < 1024 then
            if size > 25 then newest = unpack('<d', text, size - stride + 1) end
        else
            size = call('STRLEN', name)
            newest = unpack('<d', call('GETRANGE', name, size - stride .. '', size - 1 .. ''))
        end
    end
    plain = k == kind and (v == w or stride == 28) and newest <= now + w and cost > 0 and
        (stride == 28 or newest < now + w) and size - 25 - gone <= stride * rate
    if plain then
        local at, expiry, had = 25 + gone, nil, nil
        while at < size do
            if at + 12 > from + #text then
                text, from = call('GETRANGE', name, at .. '', at + 1023 .. ''), at
            end
            expiry, had = unpack('<dI4', text, at - from + 1)
            if expiry > now then break end
            at, used = at + stride, used - had
        end
        admits = used <= rate - cost
        if admits then
            local entry = pack('<dI4', now + w, cost) ..
                (stride == 28 and string.sub(packed, 27) or '')
            if size < 1024 then
                state = pack('<Bddd', kind, used + cost, w, 0) .. string.sub(text, at + 1) .. entry
            elseif at - 25 > size / 2 then
                state = pack('<Bddd', kind, used + cost, w, 0) ..
                    call('GETRANGE', name, at .. '', size .. '') .. entry
            else
                head, state, offset = pack('<Bddd', kind, used + cost, w, at - 25), entry, size
            end
            fresh = now + w + 999
            part = several and pack('<Bddd', 1, now, used, newest)
            if used + cost < rate then
                after = pack('<Bddd', 3, now, used + cost, now + w)
            else
                local next_at = at < size and expiry or now + w
                after = pack('<Bdddd', 11, now, used + cost, now + w, next_at)
            end
        elseif cost > rate then
            plain = used < rate
            part = pack('<Bddd', 0, now, used, newest)
        else
            local excess, first = used + cost - rate, expiry
            while had < excess and at + stride < size do
                at, excess = at + stride, excess - had
                if at + 12 > from + #text then
                    text, from = call('GETRANGE', name, at .. '', at + 1023 .. ''), at
                end
                expiry, had = unpack('<dI4', text, at - from + 1)
            end
            if used < rate then
                part = pack('<Bdddd', 4, now, used, newest, expiry)
            else
                part = pack('<Bddddd', 12, now, used, newest, expiry, first)
                plain = used == rate
            end
        end
    end
end
