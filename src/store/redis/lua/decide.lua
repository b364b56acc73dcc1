-- SPDX-License-Identifier: Apache-2.0
-- Decides any number of checks: src/table/transaction.c in Lua. Reads and tests everything, then
-- writes. The reply is one part for each check behind a status (1: an idempotency record was there;
-- 2: a reservation that was rolled back before); of one plain check the part alone.
local PEEK, DEBIT, REFUND = 1, 2, 3
local EACH, QUOTA = 1, 2
-- Of a check: the next rate of the shadow limit before it; a scale; a debit with a floor of debt.
local SHADOW, ON_DENY, ONCE, MORE, SCALE, FLOOR = 1, 2, 32, 4, 8, 128
local RESERVE, ROLL_BACK = 1, 2
local UNUSED = 128 -- added to REFUND: see weir_decision.unused
local GONE = '\236'

-- The decision: charged_at is of a refund; action reserves (1) or rolls back (2), and its key is
-- the last.
local op, policy, action, charged_at = 0, 0, 0, 0
local unused, count, header = false, #KEYS, checks[#KEYS + 1]
if header and header ~= '' then
    op, policy, action, charged_at = unpack('<BBBd', header)
end
if op >= UNUSED then op, unused = op - UNUSED, true end
if action == 3 or action == 4 then action = action - 3 end -- not as plain as it seemed
if action ~= 0 then count = count - 1 end

local list, by_key, once = {}, {}, nil

local function has(c, flag)
    return c.flags % (2 * flag) >= flag
end

-- A scale (src/core/scale.h), behind all else of a check. For windows, logs and leases: what of the
-- capacity is kept for others, which is added to costs of 1 and more when they are tested or a retry
-- is reported. A bucket's packed cost and depth are at the scale; here comes its whole depth. The
-- kind: 1, rate and burst are scaled; 2 more, the state is charged at this scale alone.
local function read_scale(c)
    local packed = checks[c.place]
    local percent, kind, a, b = unpack('<BBdd', packed, #packed - 17)
    checks[c.place], c.percent = string.sub(packed, 1, -19), percent
    if c.unit then
        c.part_a, c.part_b, c.da, c.db, c.weighs = c.da, c.db, a, b, kind % 2 == 1
        c.alone = kind >= 2
    elseif not c.rollover then
        c.lift = c.rate > 0 and c.rate - math.max(math.floor(c.rate * percent / 100), 1) or 0
        c.ask, c.one = c.cost > 0 and c.cost + c.lift or 0, 1 + c.lift
    end
end

for i = 1, count do
    local c, name = {place = i}, KEYS[i]
    c.kind, c.flags = unpack('<BB', checks[i])
    c.state = states[c.kind]
    c.state.read(c, checks[i])
    if has(c, SCALE) then read_scale(c) end
    c.to = by_key[name]
    if not c.to then
        local s, kind = fetch(name)
        c.name, c.to, by_key[name], c.text = name, c, c, s
        c.state.load(c, kind == c.kind and s)
    elseif c.to.kind ~= c.kind or
        string.sub(checks[c.to.place], 3, 18) ~= string.sub(checks[i], 3, 18) then
        error('WEIR two limits on the key ' .. name, 0)
    end
    c.charged, c.shared = false, c.to ~= c
    list[i] = c
    if has(c, ONCE) then once = c end
end

-- The record of a reservation: when it was made; for each check whether it was charged (2: as a denied
-- one, in shadow, of which a refund would give back more than it took); and the states that a
-- roll-back has to restore, those of other numbers (another plan of the caller's) that it has
-- converted and those with such a charge: the check's number, the digest of what it wrote, and what
-- was there.
local function record_of()
    local marks, others = {}, {}
    for i = 1, count do
        local c = list[i]
        local as_denied = c.charged and not c.admits
        c.to.restores = c.to.restores or c.other or as_denied
        marks[i] = string.char(c.charged and (as_denied and 2 or 1) or 0)
    end
    for i = 1, count do
        local c = list[i]
        if c.restores and c.saved then
            local text = c.text or ''
            others[#others + 1] = pack('<I4I4', i, #text) .. redis.sha1hex(c.saved) .. text
        end
    end
    return RESERVED .. pack('<d', now) .. table.concat(marks) .. table.concat(others)
end

-- Restores such a state, if it has not been charged since.
local function restore(record)
    local at, place, size = 10 + count
    while at <= #record do
        place, size = unpack('<I4I4', record, at)
        local c, text = list[place], string.sub(record, at + 48, at + 47 + size)
        if c.text and redis.sha1hex(c.text) == string.sub(record, at + 8, at + 47) then
            if size == 0 then
                call('DEL', c.name)
            else
                local us, ns = c.state.fresh(text)
                store(c.name, text, us + EPOCH + (ns > 0 and 1 or 0))
            end
            c.restored = true
        end
        at = at + 48 + size
    end
end

-- Gives back what a reservation charged; one that is still to come will be refused. A state of other
-- numbers stays one of these.
local function roll_back(reservation)
    local record = call('GET', reservation)
    if record and string.sub(record, 1, 1) == RESERVED then
        local _, at = unpack('<Bd', record)
        for i = 1, count do
            local c = list[i]
            if string.byte(record, 9 + i) == 1 then
                c.to.dirty = c.state.refund(c, c.to, at) or c.to.dirty
            end
        end
        restore(record)
        for i = 1, count do
            local c = list[i]
            c.dirty = c.dirty and not c.restored
            if c.dirty and c.other and c.state.revert then c.state.revert(c) end
        end
    end
end

-- The checks that are charged to the same state before or with c. Those of shadow deny nothing and
-- come last.
local function joined(c, first, last)
    local others, cost = {}, c.cost
    for i = first, last do
        local other = list[i]
        if other ~= c and other.to == c.to and not has(other, ONCE) and
            (not has(other, SHADOW) or has(c, SHADOW) and i < c.place) then
            others[#others + 1], cost = other, cost + other.cost
        end
    end
    return c.lift and cost > 0 and cost + c.lift or cost, others
end

local function price(c, cost)
    if c.state.price then c.state.price(c, cost) else c.cost = cost end
end

-- A debit stops where the capacity and the floor of debt are used up (core/debit.h): lowers its cost
-- to what there is room for.
local function keep_to_floor(c)
    local packed = checks[c.place]
    local cost, a, b = unpack('<ddd', packed, #packed - 23)
    local rate, da, db = c.rate, c.da, c.db
    if c.unit then c.state.deepen(c, a, b) else c.rate = rate + a end
    local low, high, room = -1, cost + 1, c.state.room and c.state.room(c, c.to)
    if room then low, high = math.min(math.max(room, 0), cost), 0 end
    c.part_a = nil -- what is kept for others binds no debit
    if not c.unit then c.percent = nil end
    local try = cost
    while high - low > 1 do
        price(c, try)
        if c.state.test(c, c.to, try, {}) then low = try else high = try end
        try = math.floor((low + high) / 2)
    end
    c.rate, c.da, c.db, c.kept = rate, da, db, math.max(low, 0)
    if c.period == 0 then c.kept = 0 end
    price(c, c.kept)
end

-- A shadow limit of several rates is charged for what all of them admit.
local function limit_admits(c, first, last)
    local at = c.place
    while at > first and has(list[at], MORE) do at = at - 1 end
    repeat
        if not list[at].admits then return false end
        at = at + 1
    until at > last or not has(list[at], MORE)
    return true
end

-- While shares of a bucket are out (share.lua), it takes nothing back but them.
local function refund(c, to, at)
    if unused and c.unit and #call('HGETALL', (string.gsub(to.name, '}', '}^', 1))) > 0 then
        return false
    end
    return c.state.refund(c, to, at, unused)
end

local function charge(c, admitted)
    local to, change = c.to, c.state.charge
    if op == DEBIT and has(c, FLOOR) then keep_to_floor(c) end
    if op == REFUND then
        change = refund
    elseif not admitted then
        if not has(c, ON_DENY) or c.kind == 0xe7 then return end
        if not c.admits then change = c.state.charge_denied end
    end
    c.charged = change(c, to, charged_at)
    to.dirty = to.dirty or c.charged
end

-- One all-or-nothing decision on some checks. Returns whether they allow the request.
local function run(first, last)
    local allowed = true
    for i = first, last do
        local c = list[i]
        if c ~= once then
            c.admits = op >= DEBIT or c.state.test(c, c.to, joined(c, first, last))
            if not c.admits and not has(c, SHADOW) then allowed = false end
        end
    end
    if op ~= PEEK then
        for i = first, last do
            local c = list[i]
            if c ~= once then
                charge(c, op >= DEBIT or allowed and c.admits and
                    (not has(c, SHADOW) or limit_admits(c, first, last)))
            end
        end
    end
    return allowed
end

local function tell(c)
    local part = c.state.tell(c, c.to, (c.admits and 1 or 0) + (c.charged and 2 or 0))
    if op ~= DEBIT or not has(c, FLOOR) then return part end
    return part .. (c.kept and pack('<d', c.kept) or string.sub(checks[c.place], -24, -17))
end

-- Every check is a request of its own, answered before the next may change the same state.
local function run_each()
    local allowing, denying = 0, 0
    for i = 1, count do
        local c = list[i]
        if c ~= once then
            run(i, i)
            c.part = tell(c)
            if not has(c, SHADOW) then
                if c.admits then allowing = allowing + 1 else denying = denying + 1 end
            end
        end
    end
    return denying == 0 or policy == QUOTA and allowing > 0
end

local function run_all()
    if once and op ~= REFUND and not once.state.test(once, once.to, once.cost, {}) then
        for i = 1, count do list[i].admits = true end
        return 1
    end
    local allowed
    if policy == EACH or policy == QUOTA then allowed = run_each() else allowed = run(1, count) end
    if once then
        once.admits = true
        if allowed and (op == 0 or op == DEBIT) then -- what was asked once stays asked
            once.charged = once.state.charge(once, once.to)
            once.to.dirty = once.to.dirty or once.charged
        end
    end
    return 0, allowed
end

local function save_all()
    local names, texts, times = {}, {}, {}
    for i = 1, count do
        local c = list[i]
        if c.to == c and c.dirty then
            names[#names + 1] = c.name
            c.saved, times[#names] = c.state.save(c)
            texts[#names] = c.saved
        end
    end
    for i = 1, #names do store(names[i], texts[i], times[i]) end
end

if action == ROLL_BACK then
    roll_back(KEYS[count + 1])
    save_all()
    call('SET', KEYS[count + 1], GONE, 'PX', '60000')
    return {0}
elseif action == RESERVE and call('GET', KEYS[count + 1]) then
    return {2}
end

local status, allowed = run_all()
save_all()
if action == RESERVE and allowed then
    call('SET', KEYS[count + 1], record_of(), 'PX', '60000')
end
if not header or header == '' then return tell(list[1]) end
local reply = {status}
for i = 1, count do reply[i + 1] = list[i].part or tell(list[i]) end
return reply
