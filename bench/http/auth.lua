-- SPDX-License-Identifier: Apache-2.0
-- What a reverse proxy sends to /v1/auth; 100,000 clients. nginx gets the same fields.
local n = 0
request = function()
    n = (n + 7919) % 100000
    return wrk.format("GET", nil, {
        ["X-Forwarded-Method"] = "GET",
        ["X-Forwarded-Host"] = "example.org",
        ["X-Forwarded-Uri"] = "/search?q=x",
        ["X-Forwarded-For"] = string.format("10.%d.%d.%d", n / 65536, n / 256 % 256, n % 256),
    })
end
