-- SPDX-License-Identifier: Apache-2.0
-- What sliding_log and concurrency keep (src/core/span/expiry_list.h): costs that expire, in the order of
-- their expiry: the sum of all costs, W, how many bytes of entries in front are gone, then for each
-- entry its expiry, its cost in four bytes, and for a lease its id and owner. What has expired
-- stays until the next charge, as in the core; a long state is then not written anew but grows, and
-- loses what is gone once that is half of it (expiry_list_plain.lua).
local entries = {}
local COST_MAX, HEAD = 4294967295, 1 + 3 * 8

local function entry(c, place)
    return unpack('<dI4', c.list, c.stride * place + 1)
end

local function entry_pack(c, expiry, cost, rest)
    return pack('<dI4', expiry, cost) .. rest
end

local function rest_of(c, place)
    return string.sub(c.list, c.stride * place + 13, c.stride * (place + 1))
end

local function entries_cut(c, first, last)
    return string.sub(c.list, c.stride * first + 1, c.stride * last)
end

-- The newest entry takes another cost and expires with it.
local function entries_add_to_tail(c, expiry, cost, rest)
    local _, had = entry(c, c.count - 1)
    cost = math.min(cost, COST_MAX - had)
    c.list = entries_cut(c, 0, c.count - 1) ..
        entry_pack(c, expiry, had + cost, rest or rest_of(c, c.count - 1))
    c.sum = c.sum + cost
end

-- Where there is less room than before, the oldest keep their entries and all others become one.
local function entries_convert(c)
    local old = {list = c.list, stride = c.stride}
    local count = c.count
    c.count, c.list, c.sum = c.capacity, entries_cut(c, 0, c.capacity), 0
    for place = 0, c.capacity - 1 do
        local _, cost = entry(c, place)
        c.sum = c.sum + cost
    end
    for place = c.capacity, count - 1 do
        local expiry, cost = entry(old, place)
        entries_add_to_tail(c, expiry, cost, rest_of(old, place))
    end
end

-- The sum of what has not expired at a time, and where it begins.
function entries.live(c, at)
    if c.count == 0 or entry(c, c.count - 1) <= at then return 0, c.count end
    local sum, place = c.sum, 0
    while true do
        local expiry, cost = entry(c, place)
        if expiry > at then return sum, place end
        sum, place = sum - cost, place + 1
    end
end

function entries.purge(c, at)
    local sum, first = entries.live(c, at)
    if first > 0 then
        c.list, c.sum, c.count = entries_cut(c, first, c.count), sum, c.count - first
    end
end

-- What has expired becomes no part of an entry that has not.
function entries.load(c, s)
    c.capacity = math.max(c.rate, 1)
    c.count, c.sum, c.list = 0, 0, ''
    if not s then return end
    local _, sum, w, gone = unpack('<Bddd', s)
    c.other = c.converts_from and w ~= c.converts_from
    if c.other then return end
    c.sum, c.list = sum, string.sub(s, HEAD + 1 + gone)
    c.count = #c.list / c.stride
    if c.count > c.capacity then entries.purge(c, now) end
    c.other = c.count > c.capacity
    if c.other then entries_convert(c) end
end

-- Behind all that do not expire later. Returns whether there was room.
function entries.insert(c, expiry, cost, rest)
    if c.count >= c.capacity then return false end
    local place = c.count
    while place > 0 and entry(c, place - 1) > expiry do place = place - 1 end
    cost = math.min(cost, COST_MAX)
    c.list = entries_cut(c, 0, place) .. entry_pack(c, expiry, cost, rest) ..
        entries_cut(c, place, c.count)
    c.count, c.sum = c.count + 1, c.sum + cost
    return true
end

entries.add_to_tail = entries_add_to_tail

function entries.give_back(c, place, cost)
    local expiry, had = entry(c, place)
    local left, rest = '', rest_of(c, place)
    if cost < had then left = entry_pack(c, expiry, had - cost, rest) end
    c.list = entries_cut(c, 0, place) .. left .. entries_cut(c, place + 1, c.count)
    c.sum = c.sum - math.min(cost, had)
    if left == '' then c.count = c.count - 1 end
end

function entries.newest(c)
    return c.count > 0 and entry(c, c.count - 1) or 0
end

entries.entry = entry

function entries.save(c)
    return pack('<Bddd', c.kind, c.sum, c.w, 0) .. c.list, entries.newest(c)
end

-- When what is in use has become less by `excess`.
local function entries_retry(c, place, excess)
    while true do
        local expiry, cost = entry(c, place)
        if cost >= excess or place == c.count - 1 then return expiry end
        excess, place = excess - cost, place + 1
    end
end

-- As segments.tell: bits 2 and 3 of the mark say what follows. `at` is the time of the decision.
function entries.tell(c, to, mark, at)
    local used, first = entries.live(to, at)
    local part, more = pack('<ddd', now, used, entries.newest(to)), ''
    local cost, one = c.ask or c.cost, c.one or 1
    if mark % 2 == 0 and cost <= c.rate and used + cost > c.rate then
        mark = mark + 4
        more = pack('<d', entries_retry(to, first, used + cost - c.rate))
    end
    if c.rate > 0 and used + one > c.rate then
        mark = mark + 8
        more = more .. pack('<d', entries_retry(to, first, used + one - c.rate))
    end
    return pack('<B', mark) .. part .. more
end

function entries.fresh(s, stride)
    if #s <= HEAD then return -EPOCH, 0 end
    return unpack('<d', s, #s - stride + 1) - EPOCH, 0
end
