-- One check on a bucket: bucket.lua's test and charge in line, since calls and closures would cost
-- a tenth of the script. Whatever is not the plain case goes on to decide.lua.
local kind, _, unit, period, ca, cb, da, db = unpack('<BBdddddd', checks[1])
local s = call('GET', key)
local since = now - EPOCH
local a, b, k, u, p = since, 0, kind, unit, period
if s then
    k, a, b, u, p = unpack('<Bdddd', s)
    if a < since then a, b = since, 0 end
end
if k == kind and u == unit and p == period then
    local sa, sb = a + ca, b + cb
    if sb >= unit then sa, sb = sa + 1, sb - unit end
    if sa - since > da or sa - since == da and sb > db then
        return pack('<Bddd', 0, a, b, since)
    elseif ca + cb == 0 then
        return pack('<Bddd', 1, a, b, since)
    end
    s = pack('<Bddddd', kind, sa, sb, unit, period, since)
    local fresh = sa + EPOCH + (sb > 0 and 1000 or 999)
    if told then fresh = (clock[1] + 3600) * 1000000 end
    call('SET', key, s, 'PXAT', (fresh - fresh % 1000) / 1000 .. '')
    return s
end
