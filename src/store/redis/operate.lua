-- Operations on states rather than requests: ends a lease (4), forgets (5), or tells when a state
-- will be fresh (6). Each check on its own; what a state was made with is in it.
local RELEASE, RESET, LOOK = 4, 5, 6
local op = unpack('<B', checks[#KEYS + 1])
local names, found, reply = {}, {}, {0}

local function fresh_of(s, kind)
    if not s then return -EPOCH, 0 end
    return states[kind].fresh(s)
end

for i = 1, #KEYS do names[i] = {fetch(KEYS[i])} end
for i = 1, #KEYS do
    local s, kind = names[i][1], names[i][2]
    local us, ns = fresh_of(s, kind)
    found[i] = us > now - EPOCH or us == now - EPOCH and ns > 0
    if op == RELEASE then
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
        -- and who holds shares of it (lease.lua; of the same slot): what is not used of those is not to
        -- be given back to what is used from now on
        call('DEL', KEYS[i], (string.gsub(KEYS[i], '}', '}^', 1)))
    end
    if not found[i] or op ~= LOOK then us, ns = 0, 0 end
    reply[i + 1] = pack('<Bddd', found[i] and 1 or 0, now, us, ns)
end
return reply
