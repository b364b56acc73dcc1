-- SPDX-License-Identifier: Apache-2.0
-- Operations on states rather than requests: ends a lease (4), forgets (5), or tells when a state
-- will be fresh (6). Each check on its own; what a state was made with is in it.
local RELEASE, RESET, LOOK = 4, 5, 6
local op = unpack('<B', checks[#KEYS + 1])
local names, found, reply = {}, {}, {0}

local function fresh_of(s, kind)
    if not s then return -EPOCH, 0 end
    return states[kind].fresh(s)
end

-- Where a lease is in a long state, read in parts: what ends it there. False: it is not there; nil:
-- the state is short, or is to be written anew.
local STRIDE, HEAD, CHUNK = 28, 25, 28 * 128

local function find_lease(name, packed)
    local size, id = call('STRLEN', name), string.sub(packed, 27, 34)
    if size < 1024 then return nil end
    local kind, sum, w, gone = unpack('<Bddd', call('GETRANGE', name, '0', HEAD - 1 .. ''))
    if kind ~= 0xe7 then return nil end
    local from = HEAD + gone
    for at = from + math.floor((size - from - 1) / CHUNK) * CHUNK, from, -CHUNK do
        local text, found, place = call('GETRANGE', name, at .. '', at + CHUNK - 1 .. ''), nil, 0
        repeat
            place = string.find(text, id, place + 1, true)
            if place and (place - 13) % STRIDE == 0 then found = place - 13 end
        until not place
        if found then
            at = at + found
            if at + STRIDE == size or gone + STRIDE > size / 2 then return nil end
            local _, cost = unpack('<dI4', text, found + 1)
            return {from, at, pack('<Bddd', kind, sum - cost, w, gone + STRIDE)}
        end
    end
    return false
end

-- The entries before it move up by one, over it, so that one more is free in front (expiry_list.lua).
-- Leases that began first end first, mostly: then that is little.
local function end_lease(name, lease)
    local from, at, head = lease[1], lease[2], lease[3]
    if at > from then
        call('SETRANGE', name, from + STRIDE .. '', call('GETRANGE', name, from .. '', at - 1 .. ''))
    end
    call('SETRANGE', name, '0', head)
    return true
end

local leases = {}
for i = 1, #KEYS do
    if op == RELEASE then leases[i] = find_lease(KEYS[i], checks[i]) end
    names[i] = leases[i] == nil and {fetch(KEYS[i])} or {}
end
for i = 1, #KEYS do
    local s, kind = names[i][1], names[i][2]
    local us, ns = fresh_of(s, kind)
    found[i] = us > now - EPOCH or us == now - EPOCH and ns > 0
    if leases[i] ~= nil then
        found[i] = leases[i] and end_lease(KEYS[i], leases[i])
    elseif op == RELEASE then
        local c = {}
        found[i] = kind == 0xe7
        if found[i] then
            local concurrency = states[kind]
            c.kind = kind
            concurrency.read(c, checks[i])
            concurrency.load(c, s)
            found[i] = concurrency.release(c, c)
        end
        if found[i] then store(KEYS[i], states[kind].save(c)) end
    elseif op == RESET then
        -- and who holds shares of it (share.lua; of the same slot): what is not used of those is not to
        -- be given back to what is used from now on
        call('DEL', KEYS[i], (string.gsub(KEYS[i], '}', '}^', 1)))
    end
    if not found[i] or op ~= LOOK then us, ns = 0, 0 end
    reply[i + 1] = pack('<Bddd', found[i] and 1 or 0, now, us, ns)
end
return reply
