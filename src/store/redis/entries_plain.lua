-- sliding_log and concurrency: see one_begin.lua, and entries.lua for what the state is.
do
    local kind, _, w, rate, cost = unpack('<BBddd', packed)
    local stride = kind == 0xe2 and 12 or 28
    local size, k, sum, v, newest = 17, kind, 0, w, 0
    if s then
        size, k, sum, v = #s, unpack('<Bdd', s)
        if size > 17 then newest = unpack('<d', s, size - stride + 1) end
    end
    plain = k == kind and (v == w or stride == 28) and newest <= now + w and cost > 0 and
        (stride == 28 or newest < now + w) and size - 17 <= stride * rate
    if plain then
        local at, expiry, had = 18, nil, nil
        local used = sum
        while at < size do
            expiry, had = unpack('<dI4', s, at)
            if expiry > now then break end
            at, used = at + stride, used - had
        end
        admits = used <= rate - cost
        if admits then
            state = pack('<Bdd', kind, used + cost, w) .. string.sub(s or '', at) ..
                pack('<dI4', now + w, cost) .. (stride == 28 and string.sub(packed, 27) or '')
            fresh = now + w + 999
            part = several and pack('<Bddd', 1, now, used, newest)
            if used + cost < rate then
                after = pack('<Bddd', 3, now, used + cost, now + w)
            else
                after = pack('<Bdddd', 11, now, used + cost, now + w, at < size and expiry or now + w)
            end
        elseif cost > rate then
            plain = used < rate
            part = pack('<Bddd', 0, now, used, newest)
        else
            local excess, first = used + cost - rate, expiry
            while had < excess and at + stride < size do
                at, excess = at + stride, excess - had
                expiry, had = unpack('<dI4', s, at)
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
