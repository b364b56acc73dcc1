-- SPDX-License-Identifier: Apache-2.0
-- Of the many algorithms only those are made that a decision meets.
setmetatable(states, {__index = function(_, kind)
    if kind == 0xe0 then
        open_fixed_window()
    elseif kind == 0xe1 or kind == 0xe8 then
        open_sliding_window()
    elseif kind == 0xed then
        open_prepaid()
    elseif kind >= 0xeb then
        open_quota()
    elseif kind >= 0xe9 then
        open_segments()
    elseif kind == 0xe2 or kind == 0xe7 then
        open_entries()
    else
        open_bucket()
    end
    return rawget(states, kind)
end})
