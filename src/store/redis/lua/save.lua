-- SPDX-License-Identifier: Apache-2.0
-- Reading and writing keys.

-- The state of a key, and its kind; false: none.
local function fetch(name)
    local s = call('GET', name)
    if not s then return false end
    local kind = string.byte(s) or 0
    if kind < 0xe0 or kind > KIND_LAST then
        error('WEIR the key ' .. name .. ' holds a value that is not the state of a limit', 0)
    end
    return s, kind
end

-- Every key expires when its state is fresh (a whole microsecond), rounded up to a millisecond. A
-- time that a test has set says nothing about the server's clock: such keys stay for an hour.
local function store(name, s, fresh)
    if given then
        fresh = (clock[1] + 3600) * 1000000
    elseif fresh <= now then
        return call('DEL', name)
    end
    call('SET', name, s, 'PXAT', string.format('%.0f', math.ceil(fresh / 1000)))
end
