/* SPDX-License-Identifier: Apache-2.0 */
/* What envoyproxy/ratelimit gets wrong, and weir does not: each was seen in the original, run
 * beside it. docs/envoy.md lists them. */
#include "envoy_test.h"
#include "test.h"

static const char *ask_with(struct envoy_server *server, const char *descriptor, uint64_t hits,
                            uint32_t requests, uint32_t unit)
{
    envoy_request(server, "d", (const char *const[]){descriptor, NULL});
    server->descriptors[0].has_hits_addend = true;
    server->descriptors[0].hits_addend = hits;
    server->descriptors[0].has_limit = requests > 0;
    server->descriptors[0].requests_per_unit = requests;
    server->descriptors[0].unit = unit;
    assert_int_equal(envoy_send(server), 0);
    return envoy_show(server);
}

/* A counter there is called by the second in which its window begins, and not by its unit. */
TEST("limits of several units that begin together have a counter each")
{
    struct envoy_server *server = envoy_start(
        "domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: minute, requests_per_unit: 20}\n",
        &envoy_defaults);
    /* 76,650 days are whole weeks, months and years: every window begins. */
    server->now_ns = UINT64_C(76650) * 86400 * NS;
    ASK(server, "d", "k=x");
    assert_string_equal(ASK(server, "d", "k=x"), "OK: OK 20/MINUTE 60s 18");
    for (uint32_t unit = WEIR_ENVOY_SECOND; unit < WEIR_ENVOY_UNITS; unit++) {
        const char *answer = ask_with(server, "k=x", 1, 5, unit);
        if (unit != WEIR_ENVOY_MINUTE)
            assert_int_equal(server->response.statuses[0].limit_remaining, 4);
        else /* an override and a rule of one unit are one counter, as there */
            assert_string_equal(answer, "OK: OK 5/MINUTE 60s 2");
    }
    assert_string_equal(ASK(server, "d", "k=x"), "OK: OK 20/MINUTE 60s 16");
    envoy_stop(server);
}

/* The local cache there keeps that a key is over its limit, and not which limit that was. */
TEST("a raised limit counts at once with the local cache")
{
    static const char low[] = "domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: hour, "
                              "requests_per_unit: 2}\n",
                      high[] = "domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: hour, "
                               "requests_per_unit: 9}\n";
    const struct weir_envoy_options options = {.count_local = true};
    struct envoy_server *server = envoy_start(low, &options);
    for (unsigned i = 0; i < 4; i++)
        ASK(server, "d", "k=x");
    assert_string_equal(envoy_show(server), "OVER_LIMIT: OVER_LIMIT 2/HOUR 2366s 0");
    assert_string_equal(ask_with(server, "k=x", 1, 7, WEIR_ENVOY_HOUR), "OK: OK 7/HOUR 2366s 2");
    weir_envoy_unref(server->envoy);
    server->envoy = envoy_load(high, &options);
    assert_string_equal(ASK(server, "d", "k=x"), "OK: OK 9/HOUR 2366s 3");
    envoy_stop(server);
}

/* There they reach Redis as negative numbers, which give back what was used. */
TEST("hits of 2 to the 63 and more give nothing back")
{
    static const uint64_t hits[] = {UINT64_MAX - 2, UINT64_MAX, UINT64_C(1) << 63,
                                    (UINT64_C(1) << 63) - 1};
    for (size_t i = 0; i < sizeof(hits) / sizeof(hits[0]); i++) {
        struct envoy_server *server =
            envoy_start("domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: hour, "
                        "requests_per_unit: 10}\n",
                        &envoy_defaults);
        assert_string_equal(ask_with(server, "k=x", 5, 0, 0), "OK: OK 10/HOUR 2366s 5");
        assert_string_equal(ask_with(server, "k=x", hits[i], 0, 0),
                            "OVER_LIMIT: OVER_LIMIT 10/HOUR 2366s 0");
        assert_string_equal(ASK(server, "d", "k=x"), "OVER_LIMIT: OVER_LIMIT 10/HOUR 2366s 0");
        envoy_stop(server);
    }
}

RUN_TESTS()
