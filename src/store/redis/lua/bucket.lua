-- SPDX-License-Identifier: Apache-2.0
-- Buckets: token_bucket, gcra, leaky_bucket and leaky_queue (src/core/bucket.h).
--
-- The state is the theoretical arrival time: a microseconds and b units, `unit` of which are a
-- microsecond: unit = 1000 * denom of the limit, so that 1/denom ns, what the core counts in, is
-- one unit. Times count from 2^50 us (the year 2005), so that 2^63 - 1 ns, the latest time that a
-- debt reaches, is a double too. `period` is the units that a cost of 1 takes; 0: the rate is 0.
local TAT_MAX, TAT_MAX_NS = 8097472130012151, 807 -- 2^63 - 1 ns, from there
local bucket = {}

-- A rate of 0 keeps nothing: its cost is one unit, its depth none.
function bucket.read(c, packed)
    local _
    _, _, c.unit, c.period, c.ca, c.cb, c.da, c.db = unpack('<BBdddddd', packed)
    c.cost = c.ca + c.cb
end

-- What is owed beyond now, carried over from another rate, rounded down to this one's units.
local function bucket_convert(c, since, a, b, unit, period)
    if period == 0 or c.period == 0 or a == since and b == 0 then return since, 0 end
    local number = open_number()
    local used = number.add(number.multiply(number.of(a - since), number.of(unit)), number.of(b))
    local owed = number.divide(number.multiply(used, number.of(c.period)), number.of(period))
    local us, units = number.divide(owed, number.of(c.unit))
    return since + number.value(us), number.value(units)
end

-- Debts end at 2^63 - 1 ns.
local function bucket_owe(c, a, b)
    local top = TAT_MAX_NS * c.unit / 1000
    if a > TAT_MAX or a == TAT_MAX and b > top then a, b = TAT_MAX, top end
    c.a, c.b = a, b
end

-- How deep a debit may go: no deeper than what can be owed.
function bucket.deepen(c, a, b)
    c.whole_a, c.whole_b = c.da, c.db
    local most, top = TAT_MAX - (now - EPOCH), TAT_MAX_NS * c.unit / 1000
    if a > most or a == most and b > top then a, b = most, top end
    c.da, c.db = a, b
end

-- Of a cost that is not the packed one: what it weighs at a rate of some percent; a cost of 1 at
-- most the depth, unless the state is charged at this scale alone.
local function bucket_weigh(c, cost)
    local number = open_number()
    local units = number.multiply(number.multiply(number.of(cost), number.of(c.period)),
        number.of(100))
    local us, left = number.divide((number.divide(units, number.of(c.percent))),
        number.of(c.unit))
    c.cost, c.ca, c.cb = cost, number.value(us), number.value(left)
    if cost == 1 and not c.alone and (c.ca > c.whole_a or c.ca == c.whole_a and c.cb > c.whole_b) then
        c.ca, c.cb = c.whole_a, c.whole_b
    end
end

-- The largest cost at a rate of some percent that there is room for; nil: another limit's.
function bucket.room(c, to)
    if not c.weighs or c.period == 0 then return nil end
    local number = open_number()
    local a, b = c.da - (to.a - (now - EPOCH)), c.db - to.b
    if b < 0 then a, b = a - 1, b + c.unit end
    if a < 0 then return 0 end
    local left = number.add(number.multiply(number.of(a), number.of(c.unit)), number.of(b))
    left = number.add(number.multiply(left, number.of(c.percent)), number.of(c.percent - 1))
    local room = number.value((number.divide(left,
        number.multiply(number.of(c.period), number.of(100)))))
    if room > 0 then return room end
    bucket_weigh(c, 1)
    return (c.ca < a or c.ca == a and c.cb <= b) and 1 or 0
end

function bucket.load(c, s)
    local since = now - EPOCH
    local a, b = since, 0
    if s then
        local _, unit, period
        _, a, b, unit, period = unpack('<Bdddd', s)
        if a < since then a, b = since, 0 end
        if unit ~= c.unit or period ~= c.period then
            a, b = bucket_convert(c, since, a, b, unit, period)
            c.other = {unit, period}
        end
    end
    bucket_owe(c, a, b)
end

-- Back into the numbers that the state was read with.
function bucket.revert(c)
    local unit, period = c.unit, c.period
    c.unit, c.period = c.other[1], c.other[2]
    c.a, c.b = bucket_convert(c, now - EPOCH, c.a, c.b, unit, period)
end

-- Of a cost that is not the packed one: what it takes.
function bucket.price(c, cost)
    if c.weighs then return bucket_weigh(c, cost) end
    local rest = math.fmod(c.period, c.unit)
    local units = cost * rest
    if units < 9e15 then
        c.cb = math.fmod(units, c.unit)
        units = (units - c.cb) / c.unit
    else
        local number = open_number()
        local whole, left = number.divide(number.multiply(number.of(cost), number.of(rest)),
            number.of(c.unit))
        units, c.cb = number.value(whole), number.value(left)
    end
    c.cost, c.ca = cost, cost * ((c.period - rest) / c.unit) + units
end

local function bucket_add(c, a, b, more_a, more_b)
    a, b = a + more_a, b + more_b
    if b >= c.unit then return a + 1, b - c.unit end
    return a, b
end

-- `to` has the state of the key; `others` are the checks that are charged to it with this one.
function bucket.test(c, to, cost, others)
    local da, db = c.da, c.db
    if c.part_a and cost > 0 then da, db = c.part_a, c.part_b end
    c.delay_a, c.delay_b = to.a - (now - EPOCH), to.b
    local a, b = bucket_add(c, c.delay_a, c.delay_b, c.ca, c.cb)
    for i = 1, #others do a, b = bucket_add(c, a, b, others[i].ca, others[i].cb) end
    return a < da or a == da and b <= db
end

-- Into the state of `to`, whose key it is. Returns whether that changed it.
function bucket.charge(c, to)
    if c.cost == 0 or c.period == 0 then return false end
    local a, b = to.a, to.b
    bucket_owe(to, bucket_add(c, a, b, c.ca, c.cb))
    return to.a ~= a or to.b ~= b
end

-- Stops at empty, at a rate of some percent at the depth there.
function bucket.charge_denied(c, to)
    local since, a, b, da, db = now - EPOCH, to.a, to.b, c.da, c.db
    if c.weighs then da, db = c.part_a, c.part_b end
    local over = a - since
    local is_beyond = over > da or over == da and b > db
    if c.cost == 0 or c.period == 0 or is_beyond then return false end
    local sa, sb = bucket_add(c, over, b, c.ca, c.cb)
    if sa > da or sa == da and sb > db then sa, sb = da, db end
    bucket_owe(to, since + sa, sb)
    return to.a ~= a or to.b ~= b
end

-- `unused`: it was charged at `at` and not used. Without it the bucket may have been full, so that
-- it would have regained nothing since: that time is not given back.
function bucket.refund(c, to, at, unused)
    local since, a, b = now - EPOCH, to.a, to.b
    local back = unused and c.ca - math.max(math.ceil(now - at), 0) or c.ca
    if c.cost == 0 or c.period == 0 or back < 0 or a == since and b == 0 then return false end
    a, b = a - back, b - c.cb
    if b < 0 then a, b = a - 1, b + c.unit end
    if a < since then a, b = since, 0 end
    to.a, to.b = a, b
    return true
end

function bucket.save(c)
    return pack('<Bddddd', c.kind, c.a, c.b, c.unit, c.period, now - EPOCH),
        c.a + EPOCH + (c.b > 0 and 1 or 0)
end

-- A queue's delay is what was owed when it was tested.
function bucket.tell(c, to, mark)
    local part = pack('<Bddd', mark, to.a, to.b, now - EPOCH)
    if c.kind ~= 0xe6 then return part end
    return part .. pack('<dd', c.delay_a or 0, c.delay_b or 0)
end

-- When a state of whatever rate is fresh: microseconds from EPOCH, and nanoseconds more.
function bucket.fresh(s)
    local _, a, b, unit = unpack('<Bddd', s)
    local denom = unit / 1000
    return a, math.floor((b + denom - 1) / denom)
end

states[0xe3], states[0xe4], states[0xe5], states[0xe6] = bucket, bucket, bucket, bucket
