-- SPDX-License-Identifier: Apache-2.0
-- fixed_window: see one_begin.lua.
do
    local kind, _, w, rate, cost = unpack('<BBddd', packed)
    local s = call('GET', name)
    local start, count, k, at, v = now - now % w, 0, kind, 0, w
    if s then
        k, at, count, v = unpack('<Bddd', s)
        if at > start then start = at elseif at < start then count = 0 end
    end
    plain = k == kind and v == w
    if plain then
        admits = count <= rate - cost
        if admits and cost > 0 then
            state = pack('<Bdddd', kind, start, count + cost, w, now)
            fresh, after = at == start and count > 0 or start + w + 999, state
        end
        if several or not state then part = pack('<Bddd', admits and 1 or 0, start, count, now) end
    end
end
