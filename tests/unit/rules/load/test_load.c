/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a rules file as a whole, its settings, plans and identities. Every problem
 * with its line and column. */
#include "rules_test.h"
#include "test.h"

static const struct test_problem_case the_file_as_a_whole[] = {
    {"", "1:1: the file is empty\n"},
    {"# only a comment\n", "1:1: the file is empty\n"},
    {"- a\n", "1:1: a rules file must be a mapping, not a list\n"},
    {"just text\n", "1:1: a rules file must be a mapping, not a text\n"},
    {"limits: []\n"
     "---\n"
     "limits: []\n",
     "2:1: a second document; a file has one\n"},
    {"{}\n", "1:1: `limits` is missing; write `limits: []` for none\n"},
    {"limits:\n", "1:8: `limits` must be a list; `[]` for none\n"},
    {"limits: {}\n", "1:9: `limits` must be a list; `[]` for none\n"},
    {"version: 2\n"
     "limits: []\n",
     "1:10: `version` must be 1, not `2`\n"},
    {"version: [1]\n"
     "limits: []\n",
     "1:10: `version` must be 1, not that\n"},
    {"limits: []\n"
     "limts: []\n",
     "2:1: a rules file has no key `limts`; did you mean `limits`?\n"},
    {"limits: []\n"
     "foo: 1\n",
     "2:1: a rules file has no key `foo`; its keys are version, limits, attributes, identify, "
     "keys, "
     "strict_attributes, on_store_error, identities, repeated_credentials, on_unknown, jwt, plans, "
     "default_plan, priority, paths, server, state, headers, reject, store, sticky, regions, "
     "timezone, "
     "idempotency, score, standing, kernel, penalties, adaptive, webhook, challenge, envoy, "
     "denials\n"},
    {"limits: []\n"
     "<<: {a: 1}\n",
     "2:1: merge keys (`<<`) are not supported\n"},
    {"limits: []\n"
     "limits: []\n",
     "2:1: `limits` is given twice; first in line 1\n"},
    {"limits: []\n"
     "? [a]\n"
     ": 1\n",
     "2:3: a key must be a word\n"},
    {"limits: []\n"
     "identities: []\n",
     "2:13: `identities` must be a text, not a list\n"},
    {"limits: !!seq []\n", "1:9: tag `tag:yaml.org,2002:seq`: a rules file has no tags\n"},
    {"limits: *a\n", "1:9: alias `a` has no anchor before it\n"},
    {"limits: &a [*a]\n", "1:13: alias `a` is inside its own anchor\n"},
    {"limits: [\n",
     "2:1: not valid YAML: did not find expected node content, while parsing a flow node\n"},
    {"limits: []\n"
     "\tx: 1\n",
     "2:1: not valid YAML: found character that cannot start any token, while scanning for the "
     "next token\n"},
    {"a: b: c\n", "1:5: not valid YAML: mapping values are not allowed in this context\n"},
};

TEST("problems of the file as a whole are reported")
{
    TEST_REFUSED_ALL(the_file_as_a_whole);
}

static const struct test_problem_case settings[] = {
    {"server: x\n"
     "limits: []\n",
     "1:9: server must be a mapping, not a text\n"},
    {"server: {htp: x}\n"
     "limits: []\n",
     "1:10: server has no key `htp`; did you mean `http`?\n"},
    {"server: {http: 8080}\n"
     "limits: []\n",
     "1:16: `8080` is not an address to listen on; allowed are `127.0.0.1:8080`, `[::1]:8080`, "
     "`unix:/run/weir/http.sock` and `off`\n"},
    {"server: {http: '0.0.0.0:8080'}\n"
     "limits: []\n",
     "1:16: `http` is open to other machines: give it a `token` or a `tls.client_ca`, or set "
     "`open: true`\n"},
    {"server: {redis: {address: '[::]:6380'}}\n"
     "limits: []\n",
     "1:27: `redis` is open to other machines: give it a `token` or a `tls.client_ca`, or set "
     "`open: true`\n"},
    {"server: {http: 'example.com:80'}\n"
     "limits: []\n",
     "1:16: `example.com:80` is not an address to listen on; allowed are `127.0.0.1:8080`, "
     "`[::1]:8080`, `unix:/run/weir/http.sock` and `off`\n"},
    {"server: {http: '127.0.0.1:65536'}\n"
     "limits: []\n",
     "1:16: `127.0.0.1:65536` is not an address to listen on; allowed are `127.0.0.1:8080`, "
     "`[::1]:8080`, `unix:/run/weir/http.sock` and `off`\n"},
    {"server: {http: '::1:80'}\n"
     "limits: []\n",
     "1:16: `::1:80` is not an address to listen on; allowed are `127.0.0.1:8080`, `[::1]:8080`, "
     "`unix:/run/weir/http.sock` and `off`\n"},
    {"server: {admin: {hosts: ['a b', '', ok], metrics_open: yes}}\nlimits: []\n",
     "1:26: `a b` is not a host; use a name such as `weir.example.com`, or an address\n"
     "1:33: `` is not a host; use a name such as `weir.example.com`, or an address\n"
     "1:56: `metrics_open` must be true or false, not `yes`\n"},
    {"server: {http: {hosts: a}}\nlimits: []\n",
     "1:17: a listener has no key `hosts`; its keys are address, listen, token, token_file, open, "
     "trusted, proxy_protocol, tls, hold\n"},
    {"server: {http: {adress: '127.0.0.1:1'}}\n"
     "limits: []\n",
     "1:17: a listener has no key `adress`; did you mean `address`?\n"},
    {"server: {admin: {token: a, token_file: b}}\nlimits: []\n",
     "1:28: `token` and `token_file` are the same; give one\n"},
    {"server: {admin: {token_file: /nonexistent/token}}\nlimits: []\n",
     "1:30: cannot read /nonexistent/token: No such file or directory\n"},
    {"server: {http: {address: off, listen: off}}\n"
     "limits: []\n",
     "1:31: `listen` and `address` are the same; give one\n"},
    {"server: {http: {tls: {}}}\n"
     "limits: []\n",
     "1:22: `tls` needs `cert` and `key`, files in PEM\n"},
    {"server: {http: {tls: {cert: '', key: [], ca: x}}}\n"
     "limits: []\n",
     "1:29: `cert` is empty\n"
     "1:38: `key` must be a text, not a list\n"
     "1:42: tls has no key `ca`; its keys are cert, key, client_ca, client_names\n"},
    {"server: {http: {tls: {cert: a, key: b, client_names: ['', '*', '*.', 'x.*']}}}\n"
     "limits: []\n",
     "1:40: `client_names` needs a `client_ca` that signs their certificates\n"
     "1:55: a client name is a name in a certificate, or `*.` and a domain\n"
     "1:59: a client name is a name in a certificate, or `*.` and a domain\n"
     "1:64: a client name is a name in a certificate, or `*.` and a domain\n"},
    {"server: {http: {tls: {cert: a, key: b, client_ca: c, client_names: []}}}\n"
     "limits: []\n",
     "1:68: `client_names` is empty; remove it to allow all certificates of `client_ca`\n"},
    {"server: {http: {max_connection_age: 1h}, grpc: {max_connection_age: 1ms}}\n"
     "limits: []\n",
     "1:17: a listener has no key `max_connection_age`; its keys are address, listen, token, "
     "token_file, open, trusted, proxy_protocol, tls, hold\n"
     "1:69: `max_connection_age` must be 1s to 366d, not `1ms`\n"},
    {"server: {http: {open: 1, trusted: 2, proxy_protocol: 3, token: ''}}\n"
     "limits: []\n",
     "1:23: `open` must be true or false, not `1`\n"
     "1:35: `trusted` must be true or false, not `2`\n"
     "1:54: `proxy_protocol` must be true or false, not `3`\n"
     "1:64: `token` is empty\n"},
    {"server: {http: "
     "'unix:/"
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaaaaaaaaaaaa'}\n"
     "limits: []\n",
     "1:16: the path of a Unix socket has at most 107 bytes\n"},
    {"server: {workers: 0}\n"
     "limits: []\n",
     "1:19: `workers` must be 1 to 128, not `0`\n"},
    {"server: {workers: 129}\n"
     "limits: []\n",
     "1:19: `workers` must be 1 to 128, not `129`\n"},
    {"server: {workers: many}\n"
     "limits: []\n",
     "1:19: `workers` must be a whole number, not `many`\n"},
    {"server: {trusted_proxies: [10.0.0.1/8, unx]}\n"
     "limits: []\n",
     "1:28: trusted proxy `10.0.0.1/8` must be an address, a prefix such as `10.0.0.0/8`, or "
     "`unix`\n"
     "1:40: trusted proxy `unx` must be an address, a prefix such as `10.0.0.0/8`, or `unix`\n"},
    {"state: {size: 12KB}\n"
     "limits: []\n",
     "1:15: `12KB` is not a size; write a number of bytes, KiB, MiB, GiB or TiB, as in "
     "`64MiB`\n"},
    {"state: {size: 1}\n"
     "limits: []\n",
     "1:15: `size` must be 256KiB to 4TiB, not `1`\n"},
    {"state: {size: 255KiB}\n"
     "limits: []\n",
     "1:15: `size` must be 256KiB to 4TiB, not `255KiB`\n"},
    {"state: {size: 5TiB}\n"
     "limits: []\n",
     "1:15: `size` must be 256KiB to 4TiB, not `5TiB`\n"},
    {"state: {fil: x}\n"
     "limits: []\n",
     "1:9: state has no key `fil`; did you mean `file`?\n"},
    {"state: {file: ''}\n"
     "limits: []\n",
     "1:15: `file` is empty; remove it for private memory\n"},
    {"headers: x-delt\n"
     "limits: []\n",
     "1:10: `headers` must be one of draft, draft-03, x-epoch, x-delta, cost, standing, dimension, "
     "not "
     "`x-delt`; did "
     "you "
     "mean `x-delta`?\n"},
    {"headers: [x-epoch, x-delta]\n"
     "limits: []\n",
     "1:10: x-epoch and x-delta use the same fields; give one\n"},
    {"headers: [draft]\n"
     "server: {headers: [draft]}\n"
     "limits: []\n",
     "1:10: `headers` is given twice, in the file and in `server`\n"},
};

TEST("problems of settings are reported")
{
    TEST_REFUSED_ALL(settings);
}

static const struct test_problem_case plans[] = {
    {"limits:\n"
     "- {name: a, key: [], rate: plan}\n",
     "2:28: `plan` needs `default_plan`, for callers without a plan\n"},
    {"default_plan: free\n"
     "limits:\n"
     "- {name: a, key: [], rate: plan}\n",
     "1:15: `default_plan` `free` is not in `plans`\n"},
    {"default_plan: fre\n"
     "plans: {free: {a: 1/s}}\n"
     "limits:\n"
     "- {name: a, key: [], rate: plan}\n",
     "1:15: `default_plan` `fre` is not in `plans`; did you mean `free`?\n"},
    {"default_plan: free\n"
     "plans: {free: {}}\n"
     "limits:\n"
     "- {name: a, key: [], rate: plan}\n",
     "2:9: plan `free` lacks the limit `a`\n"},
    {"default_plan: free\n"
     "plans: {free: {a: 1/s}, pro: {}}\n"
     "limits:\n"
     "- {name: a, key: [], rate: plan}\n",
     "2:25: plan `pro` lacks the limit `a`\n"},
    {"plans: {free: {a: 1/s}}\n"
     "limits:\n"
     "- {name: a, key: [], rate: 1/s}\n",
     "1:16: the limit `a` does not take its rate from the plan\n"},
    {"plans: {free: {b: 1/s}}\n"
     "limits: []\n",
     "1:16: no limit is called `b`\n"},
    {"default_plan: free\n"
     "plans: {free: {a: plan}}\n"
     "limits:\n"
     "- {name: a, key: [], rate: plan}\n",
     "2:19: `plan` is not allowed in a plan\n"},
    {"default_plan: free\n"
     "plans: {free: {a: 5/minn}}\n"
     "limits:\n"
     "- {name: a, key: [], rate: plan}\n",
     "2:19: `5/minn`: unknown unit `minn` (did you mean `min`?); units are ms, s, sec, min, h, "
     "hour, d, day, w, week\n"},
    {"default_plan: free\n"
     "plans: {free: {a: 5/s burst 3}}\n"
     "limits:\n"
     "- {name: a, key: [], rate: plan}\n",
     "2:19: a burst needs a bucket (token_bucket, gcra, leaky_bucket); sliding_window has none\n"},
    {"default_plan: free\n"
     "plans: {free: {a: 5/s}}\n"
     "limits:\n"
     "- {name: a, key: [], rate: plan, segments: 7}\n",
     "2:19: `segments` 7 does not divide the window; the nearest that does is 8\n"},
    {"default_plan: free\n"
     "plans: {free: {a: 5/s}}\n"
     "limits:\n"
     "- {name: a, key: [], algorithm: gcra, rate: plan, burst: 3}\n",
     "4:51: with `rate: plan` give the burst in the plans: `100/min burst 20`\n"},
    {"plans: []\n"
     "limits: []\n",
     "1:8: `plans` must be a mapping of plans\n"},
    {"plans: {Free: {}}\n"
     "limits: []\n",
     "1:9: plan `Free` must be 1 to 64 of a-z, 0-9, `.`, `_`, `-`\n"},
    {"plans: {free: []}\n"
     "limits: []\n",
     "1:15: a plan must be a mapping of limits to rates; `{}` for none\n"},
    {"default_plan: free\n"
     "plans: {free: {a: 5/s}}\n"
     "limits:\n"
     "- {name: a, key: [], algorithm: concurrency, limit: plan}\n",
     "2:19: concurrency limits requests in flight, not a rate: remove the unit\n"},
    {"default_plan: free\n"
     "plans: {free: {apo: 5/s}}\n"
     "limits:\n"
     "- {name: api, key: [], rate: plan}\n",
     "2:9: plan `free` lacks the limit `api`\n"
     "2:16: no limit is called `apo`; did you mean `api`?\n"},
};

TEST("problems of plans are reported")
{
    TEST_REFUSED_ALL(plans);
}

static const struct test_problem_case identities[] = {
    {"identify: [header.x-api-key]\n"
     "limits: []\n",
     "1:12: `header.x-api-key` is looked up in `keys` and `identities`, but this file has "
     "neither\n"},
    {"identify: [user]\n"
     "limits: []\n",
     "1:12: `user` cannot identify a caller; `client.ip`, a header or another attribute can\n"},
    {"identify: [path.id]\n"
     "limits: []\n",
     "1:12: `path.id` cannot identify a caller; `client.ip`, a header or another attribute can\n"},
    {"identify: [client.ip/x]\n"
     "limits: []\n",
     "1:12: `client.ip/x`: prefix lengths are `client.ip/64` (IPv6, 0 to 128) or `client.ip/64/24` "
     "(IPv6, and IPv4, 0 to 32)\n"},
    {"identify: [[a]]\n"
     "limits: []\n",
     "1:12: `identify` must be a text, not a list\n"},
    {"keys: /nonexistent/keys.yaml\n"
     "limits: []\n",
     "1:7: cannot read /nonexistent/keys.yaml: No such file or directory\n"},
    {"keys: [a]\n"
     "limits: []\n",
     "1:7: `keys` must be a text, not a list\n"},
};

TEST("problems of identities are reported")
{
    TEST_REFUSED_ALL(identities);
}

RUN_TESTS()
