-- SPDX-License-Identifier: Apache-2.0
-- Of the many algorithms only those are made that a decision meets.
setmetatable(states, {__index = function(_, kind)
    --% kinds
    return rawget(states, kind)
end})
