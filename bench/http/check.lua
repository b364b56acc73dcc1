-- SPDX-License-Identifier: Apache-2.0
-- One check as an application asks it; 100,000 clients.
local n = 0
local headers = { ["Content-Type"] = "application/json" }
request = function()
    n = (n + 7919) % 100000
    return wrk.format("POST", nil, headers, string.format(
        '{"method":"GET","path":"/search","host":"example.org","ip":"10.%d.%d.%d"}',
        n / 65536, n / 256 % 256, n % 256))
end
