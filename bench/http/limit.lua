-- SPDX-License-Identifier: Apache-2.0
-- One limit that the request brings along; 100,000 keys.
local n = 0
local headers = { ["Content-Type"] = "application/json" }
request = function()
    n = (n + 7919) % 100000
    return wrk.format("POST", nil, headers, string.format(
        '{"key":"10.%d.%d.%d","algorithm":"gcra","rate":"1000000/s"}',
        n / 65536, n / 256 % 256, n % 256))
end
