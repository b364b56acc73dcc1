-- One check on a sliding window of one segment: sliding_window.lua in line; see bucket_one.lua.
-- Goes on to decide.lua too where doubles cannot tell which product is larger.
local kind, _, w, rate, cost, most = unpack('<BBdddd', checks[1])
local s = call('GET', key)
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
if k == kind and v == w and count <= most and before <= most then
    local room = rate - cost - count
    local admits, x, y = before <= room, 1, 2
    if not admits and room >= 0 and kind == 0xe1 then
        x, y = before * left, (room + 1) * w
        admits = x < y
    end
    if x < 9e15 and y < 9e15 or x < y * 0.999999999999 or y < x * 0.999999999999 then
        if not admits then
            return pack('<Bdddd', 0, start, count, before, now)
        elseif cost == 0 then
            return pack('<Bdddd', 1, start, count, before, now)
        end
        s = pack('<Bddddd', kind, start, count + cost, before, w, now)
        local fresh = start + 2 * w + 999
        if told then fresh = (clock[1] + 3600) * 1000000 end
        call('SET', key, s, 'PXAT', (fresh - fresh % 1000) / 1000 .. '')
        return s
    end
end
