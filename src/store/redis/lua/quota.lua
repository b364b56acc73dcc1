-- SPDX-License-Identifier: Apache-2.0
-- quota by calendar (src/core/quota.h). The caller sends when the periods around its own time begin
-- and the time of this server picks the period that is now: a caller may be one period ahead or two
-- behind. A state has its period's own bounds, so that it needs no others to be understood.
local quota, COUNT_MAX = {}, 4294967295

function quota.read(c, packed)
    local _
    _, _, c.calendar, c.rate, c.rollover, c.cost = unpack('<BBc8ddd', packed)
    c.bounds = {unpack('<ddddddd', packed, 35)}
end

-- A period: when the one before it begins, when it does, when it ends, and when the next one ends.
function quota.load(c, s)
    local b, i = c.bounds, 7
    while i > 0 and b[i] > now do i = i - 1 end
    if i < 2 or i > 5 then
        error(string.format('WEIR clocks differ; at the server it is %.0f us', now), 0)
    end
    c.here = {b[i - 1], b[i], b[i + 1], b[i + 2]}
    c.period, c.count, c.before = c.here, 0, 0
    if not s then return end
    local _, calendar, before, from, to, after, count, left = unpack('<Bc8dddddd', s)
    c.other = calendar ~= c.calendar
    if c.other then return end
    c.period, c.count, c.before = {before, from, to, after}, count, left
end

-- As seen now: a time before the state's period is taken for its start. (Where two nodes know a
-- zone by different rules, their periods overlap: then too the state's own counts.)
local function quota_view(c)
    local period, here = c.period, c.here
    if c.count == 0 then
        return here, 0, 0
    elseif period[3] > here[2] then
        return period[2] == here[2] and here or period, c.count, c.before
    end
    return here, 0, c.kind == 0xec and period[4] > here[2] and c.count or 0
end

-- Where only the count of the period before is left, the state is that period's.
local function quota_keep(c, period, count, before)
    if count == 0 and before > 0 then
        period, count, before = {0, period[1], period[2], period[3]}, before, 0
    end
    local same = count == c.count and
        (count == 0 or before == c.before and period[2] == c.period[2])
    c.period, c.count, c.before = period, count, before
    return not same
end

function quota.test(c, to, cost)
    local _, count, before = quota_view(to)
    local capacity = c.rate + math.min(c.rollover, math.max(c.rate - before, 0))
    if c.percent and cost > 0 and capacity > 0 then
        capacity = math.max(math.floor(capacity * c.percent / 100), 1)
    end
    return cost <= capacity - count
end

function quota.charge(c, to)
    if c.cost == 0 then return false end
    local period, count, before = quota_view(to)
    return quota_keep(to, period, math.min(count + c.cost, COUNT_MAX), before)
end

quota.charge_denied = quota.charge

function quota.refund(c, to, at)
    local period, count, before = quota_view(to)
    if c.cost == 0 or at >= period[3] then
        return false
    elseif at >= period[2] then
        count = math.max(count - c.cost, 0)
    elseif at >= period[1] and c.kind == 0xec then
        before = math.max(before - c.cost, 0)
    else
        return false
    end
    return quota_keep(to, period, count, before)
end

-- When it is fresh again: cell.a.
local function quota_fresh(c)
    return c.count > 0 and c.period[c.kind == 0xec and 4 or 3] or 0
end

function quota.save(c)
    local period = c.period
    return pack('<Bc8ddddddd', c.kind, c.calendar, period[1], period[2], period[3], period[4],
        c.count, c.before, now), quota_fresh(c)
end

function quota.tell(_, to, mark)
    return pack('<Bdddd', mark, quota_fresh(to), to.count, to.before, now)
end

function quota.fresh(s)
    local kind, _, _, _, to, after = unpack('<Bc8dddd', s)
    return (kind == 0xec and after or to) - EPOCH, 0
end

states[0xeb], states[0xec] = quota, quota
