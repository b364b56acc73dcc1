-- SPDX-License-Identifier: Apache-2.0
-- Asks weir about a request: `http-request lua.weir` sets
--   txn.weir_status   what weir answered (200, 429; another 4xx where it could not read the request),
--                     or 0 where it could not be asked
--   txn.weir_limit, txn.weir_policy, txn.weir_retry    RateLimit, RateLimit-Policy, Retry-After
--   txn.weir_warning  X-RateLimit-Warning, of limits with warn_at
--   txn.weir_lease    of limits of `concurrency`: the application ends it (POST /v1/release)
-- Needs HAProxy 2.5 or later with Lua (Debian's has it). The address is weir's http listener.

local address = os.getenv("WEIR_HTTP") or "127.0.0.1:8080"

-- weir reads 100 fields (docs/limits.md), and the HTTP client of HAProxy 2.6 does not survive more
-- than tune.http.maxhdr, which is 101. A request with more than this is refused without being asked
-- about: no request needs them. The rest is for what is added here and by the client.
local fields_max = 80

local function first(headers, name)
    local values = headers and headers[name]
    return values and values[0] or ""
end

core.register_action("weir", { "http-req" }, function(txn)
    local headers, count = {}, 0
    for name, values in pairs(txn.http:req_get_headers()) do
        headers[name] = {}
        for i = 0, #values do -- HAProxy counts them from 0, its client from 1
            headers[name][i + 1] = values[i]
            count = count + 1
        end
    end
    if count > fields_max then
        txn:set_var("txn.weir_status", 431)
        return
    end
    -- Hop-by-hop fields and the body stay here; what the client says of itself is replaced.
    for _, name in ipairs({ "host", "connection", "content-length", "transfer-encoding", "expect",
                            "keep-alive", "te", "trailer", "forwarded", "x-original-method",
                            "x-original-uri", "x-original-url" }) do
        headers[name] = nil
    end
    headers["x-forwarded-method"] = { txn.sf:method() }
    headers["x-forwarded-host"] = { txn.sf:req_hdr("host") }
    headers["x-forwarded-uri"] = { txn.sf:pathq() }
    headers["x-forwarded-for"] = { txn.sf:src() }

    local answer = core.httpclient():get({
        url = "http://" .. address .. "/v1/auth", headers = headers, timeout = 200,
    })
    txn:set_var("txn.weir_status", answer and answer.status or 0)
    txn:set_var("txn.weir_limit", first(answer and answer.headers, "ratelimit"))
    txn:set_var("txn.weir_policy", first(answer and answer.headers, "ratelimit-policy"))
    txn:set_var("txn.weir_retry", first(answer and answer.headers, "retry-after"))
    txn:set_var("txn.weir_warning", first(answer and answer.headers, "x-ratelimit-warning"))
    txn:set_var("txn.weir_lease", first(answer and answer.headers, "x-weir-lease"))
end)
