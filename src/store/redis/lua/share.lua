-- SPDX-License-Identifier: Apache-2.0
-- Gives holders portions of a budget in advance and takes them back. This is the server's side of
-- share/share.h, which proves that no more is admitted than the algorithm promises. The state is the
-- one that exact mode uses.
--
-- KEYS[1]  the state
-- KEYS[2]  the holders' shares, a hash. For each holder: the id of its last call, its demand, the time
--          of that call, and two portions: id, units, the time they are charged at, their end. For
--          buckets also "end": the latest end of any portion, and the parameters that it was given under.
-- ARGV[1]  the packed check, whose cost is the least that the holder needs
-- ARGV[2]  the packed call (share/script.c), with the need in units; the check of a bucket has it
--          as a time only
-- ARGV[3]  nothing; ARGV[4], in tests only: the time
--
-- What is in KEYS[2] has a form, since weirs of two versions may write it: its last byte. Without one
-- (a whole number of doubles) it is from before there were forms, and is as form 1. A form that this
-- script does not know is an error, which changes nothing: then the holders of this version get no
-- portions of the key, and decide exactly, or with their floor. A call needs no form, because it is
-- made for this very script.
--
-- The reply: the call's id, the units given, their life, 1 for renewable or 2 for too short, how long
-- it stays too short, the units that could not be taken back; and the state as exact mode reports it.
local FORM = 1
local KEEP = 2000000 -- a record after the end of its last portion: a late call must find it

local c = {}
c.kind, c.flags = unpack('<BB', checks[1])
c.state = states[c.kind]
c.state.read(c, checks[1])
local dirty = false
local id, holder, place, need, want, demand, life, life_long, life_min,
    settled_0, used_0, settled_1, used_1 = unpack('<ddddddddddddd', checks[2])
holder = string.format('%.0f', holder)
local is_bucket = c.unit ~= nil

local s, s_kind = fetch(key)
c.state.load(c, s_kind == c.kind and s)

-- The check of a bucket has the time of one cost only; the times of other costs are computed here.
local function set_cost(cost)
    if is_bucket then bucket.price(c, cost) else c.cost = cost end
end

local function admits(cost)
    set_cost(cost)
    return c.state.test(c, c, cost, {})
end

-- The holders' records; `waiting` is the demand of the holders whose portions have all ended.
local mine, latest, waiting, dead = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, false, 0, {}
local last_end = now

local function end_of(record)
    return math.max(record[4] ~= 0 and record[7] or 0, record[8] ~= 0 and record[11] or 0)
end

local function check_form(s)
    local form = #s % 8 == 0 and FORM or string.byte(s, #s)
    if form ~= FORM then
        error('WEIR the key ' .. KEYS[2] .. ' holds shares of form ' .. form ..
            ', and this weir knows form ' .. FORM, 0)
    end
end

local function read_records()
    local list = call('HGETALL', KEYS[2])
    for i = 1, #list, 2 do
        check_form(list[i + 1])
        if list[i] == 'end' then
            latest = {unpack('<ddd', list[i + 1])}
        else
            local record = {unpack('<ddddddddddd', list[i + 1])}
            local last = end_of(record)
            last_end = math.max(last_end, last)
            if list[i] == holder then
                mine = record
            elseif math.max(last, record[3]) + KEEP <= now then
                dead[#dead + 1] = list[i]
            elseif last <= now then
                waiting = waiting + record[2]
            end
        end
    end
end

-- A bucket takes units back only from the portion that ends last, and before its end.
local function may_return(at)
    if not is_bucket then return true end
    if not latest or latest[1] ~= mine[at + 3] or now > mine[at + 3] then return false end
    if latest[2] ~= c.unit or latest[3] ~= c.period then return false end
    if not s then return false end
    local _, _, _, unit, period = unpack('<Bdddd', s)
    return unit == c.unit and period == c.period
end

-- Returns the units that are lost.
local function settle(at, portion, used)
    if portion == 0 or mine[at] ~= portion then return 0 end
    local unused, lost = math.max(mine[at + 1] - used, 0), 0
    if may_return(at) then
        set_cost(unused)
        dirty = c.state.refund(c, c, mine[at + 2]) or dirty
    else
        lost = unused
    end
    mine[at], mine[at + 1], mine[at + 2], mine[at + 3] = 0, 0, 0, 0
    return lost
end

-- Each returns: about how many units there are, when a portion would end, when it is charged, whether
-- a portion asked for later may end later, and from when on.
local function window_terms()
    local start, room, left = c.start, c.rate, 0
    if c.kind == 0xe0 then
        room = room - c.count
    else
        local view = c.ring and segments_view or window_view
        local newer, older
        start, newer, older, left = view(c)
        local strict = c.kind == 0xe8 or c.kind == 0xea
        room = room - newer - (strict and older or math.floor(older * left / c.w))
    end
    local stop = math.min(now + life, start + c.w)
    return room, stop, math.max(now, start), stop < start + c.w, start + c.w
end

local function log_terms()
    local at = log_time(c)
    local used, first = entries.live(c, at)
    local stop, longer = now + life, now
    if first < c.count then
        longer = entries.entry(c, first)
        stop = math.min(stop, longer - 1)
    end
    stop = math.max(stop, at)
    return c.rate - used, stop, stop, true, longer
end

local function bucket_terms()
    local over = c.a - (now - EPOCH)
    local lasts = math.max(life, math.min(over, life_long))
    local owed = over < lasts and lasts * c.unit or over * c.unit + c.b
    local room = math.floor((c.da * c.unit + c.db - owed) / c.period)
    return room, now + lasts, now + lasts, true, now
end

-- This holder's part of the room, at the time that it is charged at.
local function part_of(room)
    if not admits(need) then return 0 end
    local part = math.floor(room * demand / (demand + waiting))
    local amount = math.min(want, math.max(need, part))
    if amount > need and not admits(amount) then amount = need end
    return amount
end

-- Returns units, life, flags, and when to ask again for a longer life.
local function give()
    local terms = is_bucket and bucket_terms or c.list and log_terms or window_terms
    local room, stop, charged_at, renewable, longer = terms()
    local asked_at, a, b = now, c.a, c.b
    if c.list then
        now = stop
    elseif is_bucket and c.a < stop - EPOCH then
        c.a, c.b = stop - EPOCH, 0
    end
    local amount = part_of(room)
    local given = amount > 0 and stop >= asked_at + life_min
    if given then
        set_cost(amount)
        dirty = c.state.charge(c, c) or dirty
    elseif is_bucket then
        c.a, c.b = a, b
    end
    now = asked_at
    if given then
        local at = 4 + 4 * place
        mine[at], mine[at + 1], mine[at + 2], mine[at + 3] = id, amount, charged_at, stop
        if is_bucket then latest = {math.max(latest and latest[1] or 0, stop), c.unit, c.period} end
        return amount, stop - now, renewable and 1 or 0, 0
    elseif amount > 0 then
        return 0, 0, 2, longer - now
    end
    return 0, 0, is_bucket and admits(need) and 2 or 0, life_min
end

local function write()
    call('HSET', KEYS[2], holder, pack('<dddddddddddB', mine[1], mine[2], mine[3], mine[4], mine[5],
        mine[6], mine[7], mine[8], mine[9], mine[10], mine[11], FORM))
    if is_bucket and latest then
        call('HSET', KEYS[2], 'end', pack('<dddB', latest[1], latest[2], latest[3], FORM))
    end
    if dirty then store(key, c.state.save(c)) end
    if #dead > 0 then call('HDEL', KEYS[2], _G.unpack(dead)) end
    local stop = math.max(last_end, end_of(mine)) + KEEP
    if given then stop = (clock[1] + 3600) * 1000000 end
    call('PEXPIREAT', KEYS[2], string.format('%.0f', math.ceil(stop / 1000)))
end

read_records()
local amount, lasts, flags, again, lost = 0, 0, 0, 0, 0
if id > mine[1] then
    mine[1], mine[2], mine[3] = id, demand, now
    lost = settle(4, settled_0, used_0) + settle(8, settled_1, used_1)
    if want > 0 then
        local at = 4 + 4 * place
        mine[at], mine[at + 1], mine[at + 2], mine[at + 3] = 0, 0, 0, 0
        amount, lasts, flags, again = give()
    end
    write()
end
set_cost(need)
return {pack('<dddddd', id, amount, lasts, flags, again, lost), c.state.tell(c, c, 0)}
