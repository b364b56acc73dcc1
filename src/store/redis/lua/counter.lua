-- SPDX-License-Identifier: Apache-2.0
-- WEIR_CHECK_COUNTER: what others keep in Redis, so that they and weir count together. The key is the
-- caller's whole, its window included; the state is a decimal number. Every hit is an INCRBY and an
-- EXPIRE of the window's length from now on, denied hits included, as envoyproxy/ratelimit does it.
local PEEK, REFUND = 1, 3
local op, reply = string.byte(checks[#KEYS + 1]), {0}
for i = 1, #KEYS do
    local _, _, w, rate, cost = unpack('<BBddd', checks[i])
    local name, count, admits, charged = KEYS[i], nil, true, false
    if op == PEEK then
        count = (call('GET', name) or 0) + 0
        admits = count + cost <= rate
    elseif op == REFUND then
        count = (call('GET', name) or 0) + 0
        local back = math.max(math.min(cost, count), 0)
        charged = back > 0
        if charged then count = call('DECRBY', name, string.format('%.0f', back)) end
    else
        count = call('INCRBY', name, string.format('%.0f', cost))
        call('EXPIRE', name, string.format('%.0f', w / 1000000))
        admits, charged = count <= rate, cost > 0
    end
    count = math.max(math.min(count, 4294967295), 0)
    reply[i + 1] = pack('<Bddd', (admits and 1 or 0) + (charged and 2 or 0), now - now % w, count,
        now)
end
return reply
