-- One check on a fixed window: fixed_window.lua in line; see bucket_one.lua.
local kind, _, w, rate, cost = unpack('<BBddd', checks[1])
local s = call('GET', key)
local start, count, k, at, v = now - now % w, 0, kind, 0, w
if s then
    k, at, count, v = unpack('<Bddd', s)
    if at > start then start = at elseif at < start then count = 0 end
end
if k == kind and v == w then
    if count > rate - cost then
        return pack('<Bddd', 0, start, count, now)
    elseif cost == 0 then
        return pack('<Bddd', 1, start, count, now)
    end
    s = pack('<Bdddd', kind, start, count + cost, w, now)
    local fresh = start + w + 999
    if told then fresh = (clock[1] + 3600) * 1000000 end
    call('SET', key, s, 'PXAT', (fresh - fresh % 1000) / 1000 .. '')
    return s
end
