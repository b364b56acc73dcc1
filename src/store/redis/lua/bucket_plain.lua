-- SPDX-License-Identifier: Apache-2.0
-- Buckets: see one_begin.lua, and bucket.lua for what the numbers are.
do
    local kind, _, unit, period, ca, cb, da, db = unpack('<BBdddddd', packed)
    local s = call('GET', name)
    local since = now - EPOCH
    local a, b, k, u, p = since, 0, kind, unit, period
    if s then
        k, a, b, u, p = unpack('<Bdddd', s)
        if a < since then a, b = since, 0 end
    end
    plain = k == kind and u == unit and p == period
    if plain then
        local sa, sb = a + ca, b + cb
        if sb >= unit then sa, sb = sa + 1, sb - unit end
        admits = sa - since < da or sa - since == da and sb <= db
        if admits and ca + cb > 0 then
            state = pack('<Bddddd', kind, sa, sb, unit, period, since)
            fresh, after = sa + EPOCH + (sb > 0 and 1000 or 999), state
        end
        if several or not state then part = pack('<Bddd', admits and 1 or 0, a, b, since) end
    end
end
