/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a match or a key. Every problem with its line and column. */
#include "rules_test.h"
#include "test.h"

static const struct test_problem_case matches[] = {
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: x}\n",
     "2:40: `match` must be a mapping of attributes to values\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {path: a}}\n",
     "2:47: path pattern `a`: must begin with `/`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {path: '/a/**/b'}}\n",
     "2:47: path pattern `/a/**/b`: `**` is only allowed at the end\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {path: '/a//b'}}\n",
     "2:47: path pattern `/a//b`: an empty segment; slashes are merged\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {path: '/a*'}}\n",
     "2:47: path pattern `/a*`: `*` matches one whole segment; `**`, only at the end, matches the "
     "rest\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {path: '/a?b'}}\n",
     "2:47: path pattern `/a?b`: remove the query; queries are cut off before matching\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {path: '/:'}}\n",
     "2:47: path pattern `/:`: a `:` needs a name of letters, digits, `_` or `-`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {path: '/:a/:a'}}\n",
     "2:47: path pattern `/:a/:a`: a name is given twice\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {path: '/%zz'}}\n",
     "2:47: path pattern `/%zz`: a bad percent-encoding\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {path: '/a;b'}}\n",
     "2:47: path pattern `/a;b`: path parameters (`;…`) are cut off before matching; remove them, "
     "or set `paths: { parameters: keep }`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {path: '/:a', path.a: 'x;*'}}\n",
     "2:62: path parameters (`;…`) are cut off before a pattern captures; remove them, or set "
     "`paths: { parameters: keep }`\n"},

    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {path: '/../a'}}\n",
     "2:47: path pattern `/../a`: a dot segment; no path has one\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {path: []}}\n",
     "2:47: `path` is an empty list: nothing would match\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {path: [/a, {b: c}]}}\n",
     "2:52: `path` must be a text, not a mapping\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {method: post}}\n",
     "2:49: methods are case-sensitive (RFC 9110): write `POST`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {method: [GET, Head]}}\n",
     "2:55: methods are case-sensitive (RFC 9110): write `HEAD`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {method: }}\n",
     "2:49: `method` must be a text, not nothing\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {host: 'example.com:80'}}\n",
     "2:47: host `example.com:80`: hosts are compared without port and final dot; remove them\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {host: 'example.com.'}}\n",
     "2:47: host `example.com.`: hosts are compared without port and final dot; remove them\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {host: 'a b'}}\n",
     "2:47: host `a b`: a character that no host name has\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {host: '*.example.com:80'}}\n",
     "2:47: hosts are compared without port; remove it\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {host: '[::1]:80'}}\n",
     "2:47: host `[::1]:80`: hosts are compared without port and final dot; remove them\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {client.ip: 10.0.0.1/8}}\n",
     "2:52: client.ip `10.0.0.1/8` must be an address, or a prefix such as `10.0.0.0/8` (all bits "
     "after the prefix must be zero)\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {client.ip: [10.0.0.0/8, x]}}\n",
     "2:65: client.ip `x` must be an address, or a prefix such as `10.0.0.0/8` (all bits after the "
     "prefix must be zero)\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {client.ip: 10.0.0.0/33}}\n",
     "2:52: client.ip `10.0.0.0/33` must be an address, or a prefix such as `10.0.0.0/8` (all bits "
     "after the prefix must be zero)\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {client.ip/24: 10.0.0.0/24}}\n",
     "2:41: in `match`, put the prefix into the value: `client.ip: 10.0.0.0/8`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {client_ip: 10.0.0.0/24}}\n",
     "2:41: unknown attribute `client_ip`; did you mean `client.ip`?\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {ip: 10.0.0.0/24}}\n",
     "2:41: unknown attribute `ip`; did you mean `client.ip`?\n"},
    {"limits:\n"
     "- {name: a, key: [X-Api-Key], rate: 1/s}\n",
     "2:19: unknown attribute `X-Api-Key`; a header field is `header.X-Api-Key`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {User-Agent: x*}}\n",
     "2:41: unknown attribute `User-Agent`; a header field is `header.User-Agent`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {path: '/games/{id}/move'}}\n",
     "2:47: path pattern `/games/{id}/move`: write `:name`, not `{name}`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {path: '/v1/[0-9]+'}}\n",
     "2:47: path pattern `/v1/[0-9]+`: no regular expressions: `:name` or `*` matches one segment, "
     "`**` the rest\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {path.id: 7}}\n",
     "2:41: `path.id`: the `path` of this limit's match names no `:id`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {path: '/:a', path.id: 7}}\n",
     "2:54: `path.id`: the `path` of this limit's match names no `:id`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {'a b': 7}}\n",
     "2:41: `a b` is not the name of an attribute: use letters, digits, `.`, `_` and `-`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {header.: 7}}\n",
     "2:41: `header.` needs the name of a header field\n"},
    {"limits:\n"
     "- {name: a, key: [path.], rate: 1/s}\n",
     "2:19: `path.` needs the name of a segment that a pattern captures\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {path.: 7}}\n",
     "2:41: `path.` needs the name of a segment that a pattern captures\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {'': 7}}\n",
     "2:41: an attribute's name has 1 to 128 bytes\n"},
    {"default_plan: free\n"
     "plans: {free: {}}\n"
     "limits:\n"
     "- {name: a, key: [], rate: 1/s, match: {plan: fre}}\n",
     "4:47: plan `fre` is not in `plans`; did you mean `free`?\n"},
};

TEST("problems of matches are reported")
{
    TEST_REFUSED_ALL(matches);
}

static const struct test_problem_case keys[] = {
    {"limits:\n"
     "- {name: a, rate: 1/s}\n",
     "2:3: `key` is missing; write `key: []` for one state that all share\n"},
    {"limits:\n"
     "- {name: a, key: [client.ip/129], rate: 1/s}\n",
     "2:19: `client.ip/129`: prefix lengths are `client.ip/64` (IPv6, 0 to 128) or "
     "`client.ip/64/24` (IPv6, and IPv4, 0 to 32)\n"},
    {"limits:\n"
     "- {name: a, key: [client.ip/64/33], rate: 1/s}\n",
     "2:19: `client.ip/64/33`: prefix lengths are `client.ip/64` (IPv6, 0 to 128) or "
     "`client.ip/64/24` (IPv6, and IPv4, 0 to 32)\n"},
    {"limits:\n"
     "- {name: a, key: [client.ip/], rate: 1/s}\n",
     "2:19: `client.ip/`: prefix lengths are `client.ip/64` (IPv6, 0 to 128) or `client.ip/64/24` "
     "(IPv6, and IPv4, 0 to 32)\n"},
    {"limits:\n"
     "- {name: a, key: [client.ip/64/24/1], rate: 1/s}\n",
     "2:19: `client.ip/64/24/1`: prefix lengths are `client.ip/64` (IPv6, 0 to 128) or "
     "`client.ip/64/24` (IPv6, and IPv4, 0 to 32)\n"},
    {"limits:\n"
     "- {name: a, key: [client.port], rate: 1/s}\n",
     "2:19: unknown attribute `client.port`; did you mean `client.ip`?\n"},
    {"limits:\n"
     "- {name: a, key: [tls.ja3], rate: 1/s}\n",
     "2:19: unknown attribute `tls.ja3`; of TLS there are `tls.client.name`, `tls.client.cn` and "
     "`tls.ja4`\n"},
    {"limits:\n"
     "- {name: a, key: [user, user], rate: 1/s}\n",
     "2:25: `user` is twice in the key\n"},
    {"limits:\n"
     "- {name: a, key: [path.id], rate: 1/s}\n",
     "2:19: `path.id`: the `path` of this limit's match names no `:id`\n"},
    {"limits:\n"
     "- {name: a, key: [a, b, c, d, e, f, g, h, i], rate: 1/s}\n",
     "2:18: a key has at most 8 attributes\n"},
    {"limits:\n"
     "- {name: a, key: {user: 1}, rate: 1/s}\n",
     "2:18: `key` must be a list of attributes\n"},
    {"limits:\n"
     "- {name: a, key: [''], rate: 1/s}\n",
     "2:19: an attribute's name has 1 to 128 bytes\n"},
    {"limits:\n"
     "- {name: a, key: [user], on_missing: skp, rate: 1/s}\n",
     "2:38: `on_missing` must be skip, shared, deny or an attribute; did you mean `skip`?\n"},
    {"limits:\n"
     "- {name: a, key: [user], on_missing: user, rate: 1/s}\n",
     "2:38: `on_missing` `user` is in the key already\n"},
    {"limits:\n"
     "- {name: a, key: [user], on_missing: client.ip/200, rate: 1/s}\n",
     "2:38: `client.ip/200`: prefix lengths are `client.ip/64` (IPv6, 0 to 128) or "
     "`client.ip/64/24` (IPv6, and IPv4, 0 to 32)\n"},
    {"limits:\n"
     "- {name: a, key: [user], on_missing: {deny: 1}, rate: 1/s}\n",
     "2:38: `on_missing` must be a text, not a mapping\n"},
    {"limits:\n"
     "- {name: a, key: [user], on_missing: [], rate: 1/s}\n",
     "2:38: `on_missing` has 1 to 8 attributes, and may end in skip, shared or deny\n"},
    {"limits:\n"
     "- {name: a, key: [user], on_missing: [shared, org], rate: 1/s}\n",
     "2:39: `shared` can only be the last of `on_missing`\n"},
    {"limits:\n"
     "- {name: a, key: [user], on_missing: [org, client.ip, client.ip/64, deny], rate: 1/s}\n",
     "2:55: `client.ip/64` is twice in `on_missing`\n"},
    {"limits:\n"
     "- {name: a, key: [user], on_missing: [org, user, deny], rate: 1/s}\n",
     "2:44: `on_missing` `user` is in the key already\n"},
    {"limits:\n"
     "- {name: a, key: [user], on_missing: [org, shard], rate: 1/s}\n",
     "2:44: `on_missing` must be skip, shared, deny or an attribute; did you mean `shared`?\n"},
    {"limits:\n"
     "- {name: a, key: [user], on_missing: [org, path.id], rate: 1/s}\n",
     "2:44: `path.id`: the `path` of this limit's match names no `:id`\n"},
    {"limits:\n"
     "- {name: a, key: [user], on_missing: [header.a, header.b, header.c, header.d, header.e,"
     " header.f, header.g, header.h, header.i], rate: 1/s}\n",
     "2:38: `on_missing` has at most 8 attributes\n"},
};

TEST("problems of keys are reported")
{
    TEST_REFUSED_ALL(keys);
}

TEST("a 65th limit that only a glob can find is refused")
{
    static char text[16384] = "limits:\n";
    for (int i = 0; i < 64; i++) {
        sprintf(text + strlen(text),
                "- {name: g%d, key: [], rate: 1/s, match: {header.a: 'x*'}, unless: []}\n", i);
    }
    weir_rules_unref(test_load(text));
    strcat(text, "- {name: last, key: [], rate: 1/s, match: {header.a: [x, '*y']}}\n");
    test_refused(text,
                 "66:43: more than 64 limits can be found only by a glob, `not` or `absent`; give "
                 "this one a literal, a path or an address to match\n");
}

RUN_TESTS()
