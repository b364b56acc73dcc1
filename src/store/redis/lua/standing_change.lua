-- SPDX-License-Identifier: Apache-2.0
-- Changes of standing, in order up to the first that fails: {status, number of the last change, how many entries there were,
-- level of the last of these}.
--   KEYS  changes, meta, entries, ends of operators' entries, ends of penalties' entries, ladders,
--         ends of ladders
--   ARGV  a new epoch and a new secret, for where there is none; now in ns; the most entries, the
--         most changes that are kept; then operations:
--     set    field origin end_ms text      puts an entry
--     clear  field origin tail             removes one; the tail says who and why
--     swap   field penalty expected next gone_ms   one line of a value's ladders, if it is as expected
--     forget field                         removes all ladders of a value
-- status: ok, full (no entry may go), other (a ladder is not as expected). Where no entry may go for a
-- set behind a swap, the swap is undone: a step whose entry has no room is not reached.
-- An entry is "<number of its change> <level> <since_ns> <until_ns or -> <id or -> <tail>", a removal
-- "<number> - <now in ns> - <id or -> <tail>", a tail "<size of who> <who><why>".
local changes, meta, entries, ladders, gone = KEYS[1], KEYS[2], KEYS[3], KEYS[6], KEYS[7]
local ends = {o = KEYS[4], p = KEYS[5]}
local now, most, kept = ARGV[3], tonumber(ARGV[4]), ARGV[5]
local found, was = 0, ''
local undo = function() end -- of the last swap
open_meta(changes, meta, ARGV[1], ARGV[2])

local function note(field, text, before)
    local number = redis.call('HINCRBY', meta, 'seq', 1)
    local id = string.format('%.0f-0', number)
    text = string.format('%.0f ', number) .. text
    redis.call('XADD', changes, 'MAXLEN', '~', kept, id, 'f', field, 'v', text, 'w', before)
    return text
end

-- The level of an entry that is in force.
local function level_of(field)
    local text = redis.call('HGET', entries, field)
    if not text then
        return ''
    end
    local level, till = string.match(text, '^%d+ (%a+) %d+ (%S+) ')
    if level and (till == '-' or tonumber(till) > tonumber(now)) then
        return level
    end
    return ''
end

local function drop(field, origin)
    redis.call('HDEL', entries, field)
    redis.call('ZREM', ends[origin], field)
end

-- Removes an entry, and tells all nodes.
local function remove(field, origin, tail, before)
    local text = redis.call('HGET', entries, field) or ''
    local id = string.match(text, '^%d+ %S+ %S+ %S+ (%S+) ') or '-'
    drop(field, origin)
    note(field, '- ' .. now .. ' - ' .. id .. ' ' .. tail, before)
end

-- Entries a minute after their end: clocks of nodes differ.
local function prune()
    local seconds = tonumber(redis.call('TIME')[1])
    local before = string.format('%.0f', (seconds - 60) * 1000)
    for origin, key in pairs(ends) do
        for _, field in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', before, 'LIMIT', 0, 20)) do
            drop(field, origin)
        end
    end
    for _, field in ipairs(redis.call('ZRANGEBYSCORE', gone, '-inf', before, 'LIMIT', 0, 20)) do
        redis.call('HDEL', ladders, field)
        redis.call('ZREM', gone, field)
    end
end

-- Lets the penalty's entry go that ends first, if one is too many. False: none may go.
local function make_room(origin)
    local crowd = origin == 'p' and redis.call('ZCARD', ends.p) >= math.floor(most / 2)
    if not crowd and redis.call('HLEN', entries) < most then
        return true
    end
    local first = redis.call('ZRANGE', ends.p, 0, 0, 'WITHSCORES')
    if not first[1] or first[2] == 'inf' then
        return false
    end
    remove(first[1], 'p', '4 weirno room', level_of(first[1]))
    return true
end

local function set(field, origin, end_ms, text)
    local before = level_of(field)
    if redis.call('HEXISTS', entries, field) == 0 and not make_room(origin) then
        return false
    end
    redis.call('HSET', entries, field, note(field, text, before))
    redis.call('ZADD', ends[origin], end_ms, field)
    found, was = found + (before ~= '' and 1 or 0), before
    return true
end

local function clear(field, origin, tail)
    local before = level_of(field)
    if before ~= '' then
        remove(field, origin, tail, before)
        found, was = found + 1, before
    else
        drop(field, origin)
    end
end

-- The lines of a value's ladders: "<penalty> <step> <until_ns> <clean_ns> <gone_ms>".
local function swap(field, penalty, expected, next, gone_ms)
    local lines, last = {}, tonumber(gone_ms)
    local now_has = ''
    for line in string.gmatch(redis.call('HGET', ladders, field) or '', '[^\n]+') do
        local name, state, till = string.match(line, '^(%S+) (%d+ %d+ %d+) (%S+)$')
        if name == penalty then
            now_has = state
        elseif name then
            lines[#lines + 1] = line
            last = math.max(last, tonumber(till))
        end
    end
    if now_has ~= expected then
        return false
    end
    local text, score = redis.call('HGET', ladders, field), redis.call('ZSCORE', gone, field)
    undo = function()
        if text then
            redis.call('HSET', ladders, field, text)
            redis.call('ZADD', gone, score or '+inf', field)
        else
            redis.call('HDEL', ladders, field)
            redis.call('ZREM', gone, field)
        end
    end
    if next ~= '' then
        lines[#lines + 1] = penalty .. ' ' .. next .. ' ' .. gone_ms
    end
    if #lines == 0 then
        redis.call('HDEL', ladders, field)
        redis.call('ZREM', gone, field)
    else
        redis.call('HSET', ladders, field, table.concat(lines, '\n'))
        redis.call('ZADD', gone, last == math.huge and '+inf' or string.format('%.0f', last), field)
    end
    return true
end

local status, at = 'ok', 6
prune()
while ARGV[at] and status == 'ok' do
    local op = ARGV[at]
    if op == 'set' then
        if not set(ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]) then
            undo()
            status = 'full'
        end
        at = at + 5
    elseif op == 'clear' then
        clear(ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
        at = at + 4
    elseif op == 'swap' then
        local good = swap(ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5])
        status = good and 'ok' or 'other'
        at = at + 6
    else
        found = found + redis.call('HDEL', ladders, ARGV[at + 1])
        redis.call('ZREM', gone, ARGV[at + 1])
        at = at + 2
    end
end
return {status, tonumber(redis.call('HGET', meta, 'seq')), found, was}
