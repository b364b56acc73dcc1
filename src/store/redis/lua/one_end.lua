-- SPDX-License-Identifier: Apache-2.0
if plain then
    if not state then return part end
    if fresh == true then
        call('SET', key, state, 'KEEPTTL')
        return after
    end
    if given then fresh = (clock[1] + 3600) * 1000000 end
    fresh = (fresh - fresh % 1000) / 1000 .. ''
    if offset then
        call('SETRANGE', key, '0', head)
        call('SETRANGE', key, offset .. '', state)
        call('PEXPIREAT', key, fresh)
    else
        call('SET', key, state, 'PXAT', fresh)
    end
    return after
end
