/* SPDX-License-Identifier: Apache-2.0 */
/* What Envoy gets and what is counted: the original's cases by the numbers of its list, and
 * where weir does better. */
#include "envoy_test.h"
#include "test.h"

/* One descriptor with a limit, by its unit, number, and whatever else. */
#define RULE(key, unit, requests, more)                                                            \
    "- { key: " key ", rate_limit: { unit: " unit ", requests_per_unit: " requests " } " more " }" \
    "\n"
#define CONFIG(rules) "domain: d\ndescriptors:\n" rules

static const char *send_with(struct envoy_server *server, uint32_t hits, const char *descriptor)
{
    envoy_request(server, "d", (const char *const[]){descriptor, NULL});
    server->request.hits_addend = hits;
    assert_int_equal(envoy_send(server), 0);
    return envoy_show(server);
}

/* Sends descriptors with hits of their own; -1: none. */
static const char *send_hits(struct envoy_server *server, const char *const *descriptors,
                             const int64_t *hits)
{
    envoy_request(server, "d", descriptors);
    for (uint32_t i = 0; i < server->request.descriptor_count; i++) {
        server->descriptors[i].has_hits_addend = hits[i] >= 0;
        server->descriptors[i].hits_addend = (uint64_t)(hits[i] >= 0 ? hits[i] : 0);
    }
    assert_int_equal(envoy_send(server), 0);
    return envoy_show(server);
}

static void expect_counts(struct envoy_server *server, const char *expected)
{
    assert_string_equal(envoy_counts(server, 0), expected);
}

/* --- Counting --------------------------------------------------------------------------------- */

TEST("a limit is used up and then over")
{
    struct envoy_server *server =
        envoy_start(CONFIG(RULE("key2", "minute", "20", "")), &envoy_defaults);
    for (unsigned i = 1; i <= 25; i++) { /* 55 */
        char expected[64];
        snprintf(expected, sizeof(expected),
                 i <= 20 ? "OK: OK 20/MINUTE 26s %u" : "OVER_LIMIT: OVER_LIMIT 20/MINUTE 26s 0",
                 20 - i);
        assert_string_equal(ASK(server, "d", "key2=x"), expected);
        expect_counts(server, i <= 16   ? "total 1 over 0 near 0 local 0 within 1 shadow 0"
                              : i <= 20 ? "total 1 over 0 near 1 local 0 within 1 shadow 0"
                                        : "total 1 over 1 near 0 local 0 within 0 shadow 0");
    }
    server->now_ns += 26 * NS;
    assert_string_equal(ASK(server, "d", "key2=x"), "OK: OK 20/MINUTE 60s 19");
    envoy_stop(server);
}

TEST("what the local cache would have known")
{
    const struct weir_envoy_options options = {.count_local = true};
    struct envoy_server *server = envoy_start(CONFIG(RULE("key2", "minute", "20", "")), &options);
    for (unsigned i = 1; i <= 25; i++) { /* 56 */
        ASK(server, "d", "key2=x");
        if (i == 21)
            expect_counts(server, "total 1 over 1 near 0 local 0 within 0 shadow 0");
        else if (i > 21)
            expect_counts(server, "total 1 over 1 near 0 local 1 within 0 shadow 0");
    }
    envoy_stop(server);
}

TEST("each descriptor stands for itself")
{
    struct envoy_server *server = envoy_start(
        CONFIG(RULE("key2", "minute", "20", "") RULE("key3", "hour", "10", "")), &envoy_defaults);
    for (unsigned i = 1; i <= 15; i++) { /* 57 */
        char expected[128];
        if (i <= 10) {
            snprintf(expected, sizeof(expected), "OK: OK 20/MINUTE 26s %u; OK 10/HOUR 2366s %u",
                     20 - i, 10 - i);
        } else {
            snprintf(expected, sizeof(expected),
                     "OVER_LIMIT: OK 20/MINUTE 26s %u; OVER_LIMIT 10/HOUR 2366s 0", 20 - i);
        }
        assert_string_equal(ASK(server, "d", "key2=x", "key3=x"), expected);
    }
    envoy_stop(server);
}

TEST("a request over limit charges nothing where asked for")
{
    const struct weir_envoy_options stop = {.charge_if_allowed = true};
    struct envoy_server *server =
        envoy_start(CONFIG(RULE("key2", "minute", "20", "") RULE("key3", "hour", "10", "")), &stop);
    for (unsigned i = 1; i <= 15; i++) { /* 58 */
        ASK(server, "d", "key2=x", "key3=x");
        assert_int_equal(server->response.statuses[0].limit_remaining, i <= 10 ? 20 - i : 10);
        assert_int_equal(server->response.overall_code,
                         i <= 10 ? WEIR_ENVOY_OK : WEIR_ENVOY_OVER_LIMIT);
    }
    envoy_stop(server);

    server = envoy_start(CONFIG(RULE("a", "hour", "15", "") RULE("b", "hour", "14", "")), &stop);
    send_hits(server, (const char *const[]){"a=x", "b=x", NULL},
              (const int64_t[]){10, 10}); /* 78 */
    assert_string_equal(ASK(server, "d", "a=x", "b=x"),
                        "OK: OK 15/HOUR 2366s 4; OK 14/HOUR 2366s 3");
    assert_string_equal(
        send_hits(server, (const char *const[]){"a=x", "b=x", NULL}, (const int64_t[]){2, 2}),
        "OK: OK 15/HOUR 2366s 2; OK 14/HOUR 2366s 1");
    assert_string_equal(envoy_counts(server, 0), "total 2 over 0 near 1 local 0 within 2 shadow 0");
    assert_string_equal(envoy_counts(server, 1), "total 2 over 0 near 2 local 0 within 2 shadow 0");
    assert_string_equal(
        send_hits(server, (const char *const[]){"a=x", "b=x", NULL}, (const int64_t[]){2, 2}),
        "OVER_LIMIT: OK 15/HOUR 2366s 2; OVER_LIMIT 14/HOUR 2366s 0");
    assert_string_equal(envoy_counts(server, 0), "total 2 over 0 near 2 local 0 within 2 shadow 0");
    envoy_stop(server);
}

TEST("hits that cross a line count beyond it")
{
    static const struct {
        const char *limit;
        uint32_t before, hits;
        const char *counts;
    } cases[] = {
        {"10", 4, 1, "total 1 over 0 near 0 local 0 within 1 shadow 0"},  /* 64 */
        {"10", 10, 1, "total 1 over 1 near 0 local 0 within 0 shadow 0"}, /* 65 */
        {"15", 10, 1, "total 1 over 0 near 0 local 0 within 1 shadow 0"},
        {"15", 12, 1, "total 1 over 0 near 1 local 0 within 1 shadow 0"},
        {"15", 15, 1, "total 1 over 1 near 0 local 0 within 0 shadow 0"},
        {"20", 2, 3, "total 3 over 0 near 0 local 0 within 3 shadow 0"},  /* 71 */
        {"8", 5, 2, "total 2 over 0 near 1 local 0 within 2 shadow 0"},   /* 72 */
        {"20", 16, 3, "total 3 over 0 near 3 local 0 within 3 shadow 0"}, /* 73 */
        {"20", 19, 3, "total 3 over 2 near 1 local 0 within 0 shadow 0"}, /* 74 */
        {"20", 15, 7, "total 7 over 2 near 4 local 0 within 0 shadow 0"}, /* 75 */
        {"10", 27, 3, "total 3 over 3 near 0 local 0 within 0 shadow 0"}, /* 76 */
        {"5", 2, 5, "total 5 over 2 near 1 local 0 within 0 shadow 0"},   /* 77 */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text),
                 "domain: d\ndescriptors:\n- { key: a, rate_limit: { unit: hour, "
                 "requests_per_unit: %s } }\n",
                 cases[i].limit);
        struct envoy_server *server = envoy_start(text, &envoy_defaults);
        if (cases[i].before > 0)
            send_with(server, cases[i].before, "a=x");
        send_with(server, cases[i].hits, "a=x");
        expect_counts(server, cases[i].counts);
        envoy_stop(server);
    }
}

TEST("hits of a descriptor go before those of the request")
{
    struct envoy_server *server = envoy_start(
        CONFIG(RULE("a", "hour", "10", "") RULE("b", "hour", "10", "")), &envoy_defaults);
    assert_string_equal(send_hits(server, (const char *const[]){"a=x", "b=x", NULL},
                                  (const int64_t[]){0, 1}), /* 67 */
                        "OK: OK 10/HOUR 2366s 10; OK 10/HOUR 2366s 9");
    expect_counts(server, "total 0 over 0 near 0 local 0 within 0 shadow 0");
    assert_string_equal(send_with(server, 4, "a=x"), "OK: OK 10/HOUR 2366s 6");
    assert_string_equal(send_with(server, 0, "a=x"), "OK: OK 10/HOUR 2366s 5");
    /* More than the limit: denied, and counted in full, as the original does. */
    assert_string_equal(send_with(server, 11, "a=x"), "OVER_LIMIT: OVER_LIMIT 10/HOUR 2366s 0");
    assert_string_equal(send_with(server, 1, "a=x"), "OVER_LIMIT: OVER_LIMIT 10/HOUR 2366s 0");
    /* A peek where the limit is just reached is OK; beyond it, it is not. */
    send_with(server, 10, "b=y");
    assert_string_equal(
        send_hits(server, (const char *const[]){"b=y", "a=x", NULL}, (const int64_t[]){0, 0}),
        "OVER_LIMIT: OK 10/HOUR 2366s 0; OVER_LIMIT 10/HOUR 2366s 0");
    envoy_stop(server);
}

TEST("the same descriptor twice counts twice")
{
    struct envoy_server *server = envoy_start(CONFIG(RULE("a", "hour", "3", "")), &envoy_defaults);
    assert_string_equal(ASK(server, "d", "a=x", "a=x"), "OK: OK 3/HOUR 2366s 2; OK 3/HOUR 2366s 1");
    assert_string_equal(ASK(server, "d", "a=x", "a=x"),
                        "OVER_LIMIT: OK 3/HOUR 2366s 0; OVER_LIMIT 3/HOUR 2366s 0");
    envoy_stop(server);
}

TEST("the ends of the range")
{
    struct envoy_server *server =
        envoy_start(CONFIG(RULE("all", "second", "4294967295", "") RULE("none", "second", "0", "")),
                    &envoy_defaults);
    assert_string_equal(ASK(server, "d", "all=x"), "OK: OK 4294967295/SECOND 1s 4294967294");
    assert_string_equal(send_with(server, UINT32_MAX - 1, "all=x"),
                        "OK: OK 4294967295/SECOND 1s 0");
    assert_string_equal(
        send_hits(server, (const char *const[]){"all=x", NULL}, (const int64_t[]){INT64_MAX}),
        "OVER_LIMIT: OVER_LIMIT 4294967295/SECOND 1s 0");
    assert_string_equal(ASK(server, "d", "none=x"), "OVER_LIMIT: OVER_LIMIT 0/SECOND 1s 0");
    assert_string_equal(
        send_hits(server, (const char *const[]){"none=y", NULL}, (const int64_t[]){0}),
        "OK: OK 0/SECOND 1s 0");
    envoy_stop(server);
}

TEST("windows end where the epoch puts them")
{
    static const struct {
        uint64_t now_s;
        const char *unit;
        unsigned reset_s;
    } cases[] = {
        /* 70 */
        {1234, "second", 1},         {1234, "minute", 26},      {1000000, "hour", 800},
        {1000000, "day", 36800},     {1000000, "week", 209600}, {1000000, "month", 1592000},
        {1000000, "year", 30536000}, {2222, "minute", 58},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text),
                 "domain: d\ndescriptors:\n- { key: a, rate_limit: { unit: %s, "
                 "requests_per_unit: 1 } }\n",
                 cases[i].unit);
        struct envoy_server *server = envoy_start(text, &envoy_defaults);
        server->now_ns = cases[i].now_s * NS + 999999999;
        ASK(server, "d", "a=x");
        assert_int_equal(server->response.statuses[0].duration_until_reset_s, cases[i].reset_s);
        envoy_stop(server);
    }
}

TEST("hits can be given back")
{
    struct envoy_server *server = envoy_start(CONFIG(RULE("a", "hour", "10", "")), &envoy_defaults);
    send_with(server, 7, "a=x");
    envoy_request(server, "d", (const char *const[]){"a=x", "a=x", NULL});
    server->descriptors[1].is_negative_hits = server->descriptors[1].has_hits_addend = true;
    server->descriptors[1].hits_addend = 3;
    assert_int_equal(envoy_send(server), 0);
    assert_string_equal(envoy_show(server), "OK: OK 10/HOUR 2366s 2; OK 10/HOUR 2366s 5");
    struct weir_envoy_tally tally;
    weir_envoy_tally(&server->plan, 1, &tally);
    assert_int_equal(tally.total_negative_hits, 3);
    assert_int_equal(tally.total_hits, 0);
    /* Never below nothing used; where nothing was, nothing happens. */
    for (int i = 0; i < 2; i++) {
        envoy_request(server, "d", (const char *const[]){i == 0 ? "a=x" : "a=new", NULL});
        server->descriptors[0].is_negative_hits = server->descriptors[0].has_hits_addend = true;
        server->descriptors[0].hits_addend = 1000;
        assert_int_equal(envoy_send(server), 0);
        assert_string_equal(envoy_show(server), "OK: OK 10/HOUR 2366s 10");
    }
    envoy_stop(server);
}

/* --- Shadow, quota ---------------------------------------------------------------------------- */

TEST("a rule in shadow is counted and passes")
{
    struct envoy_server *server =
        envoy_start(CONFIG(RULE("a", "hour", "1", ", shadow_mode: true") RULE("b", "hour", "1", "")
                               RULE("a, value: v", "hour", "1", "")),
                    &envoy_defaults);
    assert_string_equal(ASK(server, "d", "a=x"), "OK: OK 1/HOUR 2366s 0");
    assert_string_equal(ASK(server, "d", "a=x"), "OK: OK 1/HOUR 2366s 0"); /* 79 */
    expect_counts(server, "total 1 over 1 near 0 local 0 within 0 shadow 1");
    assert_string_equal(send_with(server, 3, "a=y"), "OK: OK 1/HOUR 2366s 0");
    expect_counts(server, "total 3 over 2 near 1 local 0 within 0 shadow 2");
    ASK(server, "d", "a=x", "b=x");
    assert_string_equal(ASK(server, "d", "a=x", "b=x"), /* 81 */
                        "OVER_LIMIT: OK 1/HOUR 2366s 0; OVER_LIMIT 1/HOUR 2366s 0");
    ASK(server, "d", "a=v"); /* 35 */
    assert_string_equal(ASK(server, "d", "a=v"), "OVER_LIMIT: OVER_LIMIT 1/HOUR 2366s 0");
    envoy_stop(server);
}

TEST("the whole service in shadow")
{
    const struct weir_envoy_options options = {.shadow_mode = true};
    struct envoy_server *server = envoy_start(CONFIG(RULE("a", "hour", "1", "")), &options);
    ASK(server, "d", "a=x");
    assert_false(server->shadowed);
    assert_string_equal(ASK(server, "d", "a=x"), "OK: OVER_LIMIT 1/HOUR 2366s 0"); /* 80 */
    assert_true(server->shadowed);
    envoy_stop(server);
}

static uint8_t overall(struct envoy_server *server, const char *const *descriptors)
{
    envoy_request(server, "d", descriptors);
    assert_int_equal(envoy_send(server), 0);
    return server->response.overall_code;
}
#define OVERALL(server, ...) overall(server, (const char *const[]){__VA_ARGS__, NULL})

TEST("quotas are over when all are")
{
    struct envoy_server *server =
        envoy_start(CONFIG(RULE("r", "hour", "1", "") RULE("q1", "hour", "1", ", quota_mode: true")
                               RULE("q2", "hour", "2", ", quota_mode: true")),
                    &envoy_defaults);
    OVERALL(server, "r=over");
    OVERALL(server, "q1=over");
    OVERALL(server, "q2=over");
    OVERALL(server, "q2=over");
    assert_int_equal(OVERALL(server, "r=over", "q1=1"), WEIR_ENVOY_OVER_LIMIT); /* 83 */
    assert_int_equal(OVERALL(server, "r=2", "q1=over"), WEIR_ENVOY_OVER_LIMIT); /* 84 */
    assert_int_equal(OVERALL(server, "q1=over", "q2=5"), WEIR_ENVOY_OK);        /* 85 */
    assert_int_equal(OVERALL(server, "q1=over", "q2=over"), WEIR_ENVOY_OVER_LIMIT);
    assert_int_equal(OVERALL(server, "q1=over", "none=x"), WEIR_ENVOY_OVER_LIMIT);
    for (int i = 0; i < 2; i++) /* 87 */
        assert_int_equal(OVERALL(server, "q1=n", "q2=n"), WEIR_ENVOY_OK);
    assert_int_equal(OVERALL(server, "q1=n", "q2=n"), WEIR_ENVOY_OVER_LIMIT);
    server->now_ns += 3600 * NS;
    assert_int_equal(OVERALL(server, "q1=n", "q2=n"), WEIR_ENVOY_OK);
    envoy_stop(server);
}

TEST("quota mode for all")
{
    const struct weir_envoy_options options = {.quota_mode = true};
    const struct weir_envoy_options both = {.quota_mode = true, .shadow_mode = true};
    const char *config = CONFIG(RULE("a", "hour", "1", "") RULE("b", "hour", "1", ""));
    struct envoy_server *server = envoy_start(config, &options);
    OVERALL(server, "a=x", "b=x");
    assert_int_equal(OVERALL(server, "a=x", "b=x"), WEIR_ENVOY_OVER_LIMIT); /* 82 */
    assert_int_equal(OVERALL(server, "a=x", "b=y"), WEIR_ENVOY_OK);
    /* What meets no limit is a quota that is not used up. */
    assert_int_equal(OVERALL(server, "a=x", "none=x"), WEIR_ENVOY_OK);
    envoy_stop(server);
    server = envoy_start(config, &both);
    OVERALL(server, "a=x", "b=x");
    assert_int_equal(OVERALL(server, "a=x", "b=x"), WEIR_ENVOY_OK); /* 86 */
    assert_true(server->shadowed);
    envoy_stop(server);
}

TEST("a peek before and a debit after")
{
    struct envoy_server *server =
        envoy_start(CONFIG(RULE("a", "minute", "2", ", quota_mode: true")), &envoy_defaults);
    for (int i = 1; i <= 4; i++) { /* 88 */
        send_hits(server, (const char *const[]){"a=x", NULL}, (const int64_t[]){0});
        assert_int_equal(server->response.overall_code,
                         i <= 3 ? WEIR_ENVOY_OK : WEIR_ENVOY_OVER_LIMIT);
        send_hits(server, (const char *const[]){"a=x", NULL}, (const int64_t[]){1});
    }
    envoy_stop(server);
}

/* --- replaces --------------------------------------------------------------------------------- */

TEST("a limit replaces others by name")
{
    struct envoy_server *server =
        envoy_start(CONFIG("- { key: banned, rate_limit: { name: banned_limit, unit: minute,"
                           " requests_per_unit: 0 } }\n"
                           "- { key: source, rate_limit: { name: source_limit, unit: minute,"
                           " requests_per_unit: 1 } }\n"
                           "- { key: special, rate_limit: { unit: minute, requests_per_unit: 2,"
                           " replaces: [ { name: banned_limit } ] } }\n"
                           "- { key: both, rate_limit: { unit: minute, requests_per_unit: 4,"
                           " replaces: [ { name: banned_limit }, { name: source_limit } ] } }\n"
                           "- { key: free, rate_limit: { unlimited: true,"
                           " replaces: [ { name: banned_limit } ] } }\n"),
                    &envoy_defaults);
    assert_string_equal(ASK(server, "d", "banned=x"), /* 90 */
                        "OVER_LIMIT: OVER_LIMIT 0/MINUTE 26s 0 banned_limit");
    assert_string_equal(ASK(server, "d", "banned=x", "special=x"), "OK: OK 0; OK 2/MINUTE 26s 1");
    expect_counts(server, "total 0 over 0 near 0 local 0 within 0 shadow 0");
    assert_int_equal(OVERALL(server, "special=x", "banned=x"), WEIR_ENVOY_OK);
    assert_int_equal(OVERALL(server, "banned=x", "special=x"), WEIR_ENVOY_OVER_LIMIT);
    for (int i = 0; i < 4; i++)
        assert_int_equal(OVERALL(server, "banned=x", "source=x", "both=x"), WEIR_ENVOY_OK);
    assert_int_equal(OVERALL(server, "banned=x", "source=x", "both=x"), WEIR_ENVOY_OVER_LIMIT);
    assert_string_equal(ASK(server, "d", "source=x"), "OK: OK 1/MINUTE 26s 0 source_limit");
    assert_string_equal(ASK(server, "d", "banned=x", "free=x"), "OK: OK 0; OK 4294967295");
    envoy_stop(server);
}

/* --- Headers, metadata ------------------------------------------------------------------------ */

static const char *show_headers(struct envoy_server *server)
{
    size_t used = 0;
    server->text[0] = '\0';
    for (uint32_t i = 0; i < server->response.header_count; i++) {
        const struct weir_envoy_header *header = &server->response.headers[i];
        used += (size_t)snprintf(server->text + used, sizeof(server->text) - used, "%s%.*s: %.*s",
                                 i > 0 ? ", " : "", (int)header->key.size, header->key.data,
                                 (int)header->value.size, header->value.data);
    }
    return server->text;
}

TEST("headers tell of the nearest limit")
{
    const struct weir_envoy_options options = {.headers = true};
    const struct weir_envoy_options named = {.headers = true,
                                             .limit_header = "A-Ratelimit-Limit",
                                             .remaining_header = "A-Ratelimit-Remaining",
                                             .reset_header = "A-Ratelimit-Reset"};
    const char *config = CONFIG(RULE("a", "minute", "10", "") RULE("b", "hour", "5", "") RULE(
        "q", "hour", "1", ", quota_mode: true") "- { key: u, rate_limit: { unlimited: true } }\n");
    struct envoy_server *server = envoy_start(config, &options);
    server->now_ns = 2222 * NS;
    ASK(server, "d", "a=x", "b=x");
    assert_string_equal(show_headers(server),
                        "RateLimit-Limit: 5, RateLimit-Remaining: 4, RateLimit-Reset: 1378");
    send_with(server, 11, "a=x");
    ASK(server, "d", "a=x", "b=y"); /* 91 */
    assert_string_equal(show_headers(server),
                        "RateLimit-Limit: 10, RateLimit-Remaining: 0, RateLimit-Reset: 58");
    /* A quota that is used up is the nearest; a limit that is over goes before it. */
    ASK(server, "d", "q=x");
    ASK(server, "d", "q=x", "b=z");
    assert_string_equal(show_headers(server),
                        "RateLimit-Limit: 1, RateLimit-Remaining: 0, RateLimit-Reset: 1378");
    ASK(server, "d", "q=x", "a=x");
    assert_string_equal(show_headers(server),
                        "RateLimit-Limit: 10, RateLimit-Remaining: 0, RateLimit-Reset: 58");
    ASK(server, "d", "none=x", "u=x");
    assert_string_equal(show_headers(server), "");
    envoy_stop(server);
    server = envoy_start(config, &named);
    server->now_ns = 2222 * NS;
    ASK(server, "d", "a=x");
    assert_string_equal(show_headers(server),
                        "A-Ratelimit-Limit: 10, A-Ratelimit-Remaining: 9, A-Ratelimit-Reset: 58");
    envoy_stop(server);
}

/* "mark to both", "reject", "": the action of the last response. */
static const char *show_action(struct envoy_server *server)
{
    const struct weir_envoy_response *response = &server->response;
    if (response->header_count == 0)
        return "";
    const struct weir_envoy_header *last = &response->headers[response->header_count - 1];
    assert_memory_equal(last->key.data, "X-Weir-Action", last->key.size);
    snprintf(server->text, sizeof(server->text), "%.*s%s", (int)last->value.size, last->value.data,
             response->request_header.key.data ? " to both" : "");
    return server->text;
}

TEST("a mark tells the upstream and the client from its percentage on")
{
    const char *config =
        CONFIG(RULE("a", "minute", "10", ", weir: { mark: 80% }") RULE("b", "hour", "5", "")
                   RULE("s", "hour", "1", ", shadow_mode: true, weir: { mark: 50% }")
                       RULE("q", "hour", "1", ", quota_mode: true, weir: { mark: 99% }"));
    const struct weir_envoy_options shadow = {.shadow_mode = true};
    struct envoy_server *server = envoy_start(config, &envoy_defaults);
    for (unsigned i = 1; i <= 12; i++) {
        ASK(server, "d", "a=x");
        assert_string_equal(show_action(server), i < 8 ? "" : i <= 10 ? "mark to both" : "reject");
    }
    send_with(server, 7, "a=y");
    assert_string_equal(show_action(server), "");
    send_hits(server, (const char *const[]){"a=y", NULL}, (const int64_t[]){0}); /* a peek */
    assert_string_equal(show_action(server), "");
    ASK(server, "d", "b=x", "a=y");
    assert_string_equal(show_action(server), "mark to both");
    send_with(server, 9, "b=y"); /* over, where nothing has a mark */
    assert_string_equal(show_action(server), "");
    ASK(server, "d", "s=x");
    assert_string_equal(show_action(server), "");
    ASK(server, "d", "q=x");
    ASK(server, "d", "q=x", "q=y"); /* one of two quotas is over, and the request is admitted */
    assert_string_equal(show_action(server), "mark to both");
    envoy_stop(server);
    server = envoy_start(config, &shadow);
    send_with(server, 11, "a=x");
    assert_string_equal(show_action(server), "");
    envoy_stop(server);
}

static size_t show_value(const struct weir_envoy_value *value, char *out, size_t size)
{
    size_t used = 0;
    switch (value->kind) {
    case WEIR_ENVOY_NULL:
        return (size_t)snprintf(out, size, "null");
    case WEIR_ENVOY_BOOL:
        return (size_t)snprintf(out, size, "%s", value->boolean ? "true" : "false");
    case WEIR_ENVOY_NUMBER:
        return (size_t)snprintf(out, size, "%g", value->number);
    case WEIR_ENVOY_STRING:
        return (size_t)snprintf(out, size, "'%.*s'", (int)value->text.size, value->text.data);
    default:
        used += (size_t)snprintf(out, size, "%c", value->kind == WEIR_ENVOY_LIST ? '[' : '{');
        for (uint32_t i = 0; i < value->count; i++) {
            used += (size_t)snprintf(out + used, size - used, "%s", i > 0 ? "," : "");
            if (value->kind == WEIR_ENVOY_STRUCT) {
                used += (size_t)snprintf(out + used, size - used,
                                         "%.*s:", (int)value->names[i].size, value->names[i].data);
            }
            used += show_value(&value->items[i], out + used, size - used);
        }
        return used + (size_t)snprintf(out + used, size - used, "%c",
                                       value->kind == WEIR_ENVOY_LIST ? ']' : '}');
    }
}

static const char *show_metadata(struct envoy_server *server)
{
    assert_non_null(server->response.dynamic_metadata);
    show_value(server->response.dynamic_metadata, server->text, sizeof(server->text));
    return server->text;
}

TEST("metadata of what passed is reported")
{
    const struct weir_envoy_options options = {.dynamic_metadata = true};
    struct envoy_server *server =
        envoy_start(CONFIG(RULE("a", "hour", "1",
                                ", metadata: { name: service_1, x: { p: 1, l: [1, two, ~] } }")
                               RULE("b", "hour", "1",
                                    ", metadata: { name: service_2, x: { p: 2, q: yes },"
                                    " other: -1.5 }") RULE("c", "hour", "9", "")),
                    &options);
    envoy_request(server, "d", (const char *const[]){"a=1", "b=1,z=", NULL});
    server->request.hits_addend = 1;
    server->descriptors[1].has_hits_addend = true;
    server->descriptors[1].has_limit = true;
    server->descriptors[1].requests_per_unit = 7;
    server->descriptors[1].unit = WEIR_ENVOY_DAY;
    assert_int_equal(envoy_send(server), 0);
    assert_string_equal(show_metadata(server),
                        "{domain:'d',descriptors:[{entries:['a=1']},{entries:['b=1','z='],"
                        "limit:'requests_per_unit:7 unit:DAY',hitsAddend:0}],hitsAddend:1,"
                        "metadata:{name:'service_1',x:{p:1,l:[1,'two',null]}}}");
    ASK(server, "d", "a=2", "b=2"); /* 89: first wins, structs are united */
    assert_string_equal(show_metadata(server),
                        "{domain:'d',descriptors:[{entries:['a=2']},{entries:['b=2']}],"
                        "metadata:{name:'service_1',x:{p:1,l:[1,'two',null],q:true},other:-1.5}}");
    ASK(server, "d", "a=2", "b=3");
    assert_string_equal(show_metadata(server),
                        "{domain:'d',descriptors:[{entries:['a=2']},{entries:['b=3']}],"
                        "metadata:{name:'service_2',x:{p:2,q:true},other:-1.5}}");
    ASK(server, "d", "c=1");
    assert_string_equal(show_metadata(server), "{domain:'d',descriptors:[{entries:['c=1']}]}");
    /* What was united stays in that answer: the original adds b's to a's rule for good. */
    ASK(server, "d", "a=3");
    assert_string_equal(show_metadata(server),
                        "{domain:'d',descriptors:[{entries:['a=3']}],"
                        "metadata:{name:'service_1',x:{p:1,l:[1,'two',null]}}}");
    envoy_stop(server);
}

/* Defect 5 of the original: metadata is lost there where a metric has values in its name. */
TEST("metadata stays where metrics have values")
{
    const struct weir_envoy_options options = {.dynamic_metadata = true};
    struct envoy_server *server = envoy_start(
        CONFIG(RULE("a", "hour", "9", ", detailed_metric: true, metadata: { m: 1 }")
                   RULE("b", "hour", "9", ", value_to_metric: true, metadata: { n: 2 }")),
        &options);
    ASK(server, "d", "a=1", "b=1");
    assert_string_equal(show_metadata(server),
                        "{domain:'d',descriptors:[{entries:['a=1']},{entries:['b=1']}],"
                        "metadata:{m:1,n:2}}");
    envoy_stop(server);
}

/* Defect 6: unlimited rules leave no trace there. */
TEST("unlimited rules are counted")
{
    struct envoy_server *server =
        envoy_start(CONFIG("- { key: u, rate_limit: { unlimited: true } }\n"), &envoy_defaults);
    send_with(server, 5, "u=x");
    expect_counts(server, "total 5 over 0 near 0 local 0 within 5 shadow 0");
    envoy_stop(server);
}

/* --- Errors ----------------------------------------------------------------------------------- */

TEST("requests that are refused")
{
    struct envoy_server *server = envoy_start(CONFIG(RULE("a", "hour", "9", "")), &envoy_defaults);
    envoy_request(server, "", (const char *const[]){"a=1", NULL}); /* 92 */
    assert_int_equal(envoy_send(server), WEIR_ERR_SYNTAX);
    assert_string_equal(server->reason.text, "rate limit domain must not be empty");
    envoy_request(server, "d", (const char *const[]){NULL});
    assert_int_equal(envoy_send(server), WEIR_ERR_SYNTAX);
    assert_string_equal(server->reason.text, "rate limit descriptor list must not be empty");
    static struct weir_envoy_descriptor many[WEIR_ENVOY_DESCRIPTORS_MAX + 1];
    server->request.descriptors = many;
    server->request.descriptor_count = WEIR_ENVOY_DESCRIPTORS_MAX + 1;
    assert_int_equal(envoy_send(server), WEIR_ERR_TOO_LARGE);
    assert_string_equal(server->reason.text, "more than 1024 descriptors");
    envoy_stop(server);
}

TEST("a store that fails is an error unless the rule says else")
{
    struct envoy_server *server =
        envoy_start(CONFIG(RULE("a", "hour", "9", "")
                               RULE("b", "hour", "9", ", weir: { on_store_error: local }")),
                    &envoy_defaults);
    server->fail = WEIR_ERR_STORE;
    envoy_request(server, "d", (const char *const[]){"a=1", NULL});
    assert_int_equal(envoy_send(server), WEIR_ERR_STORE);
    envoy_request(server, "d", (const char *const[]){"b=1", "a=1", NULL});
    assert_int_equal(envoy_send(server), WEIR_ERR_STORE);
    envoy_request(server, "d", (const char *const[]){"b=1", "none=1", NULL});
    assert_int_equal(envoy_send(server), 0);
    envoy_stop(server);
}

TEST("many descriptors take several decisions")
{
    static struct weir_envoy_descriptor many[WEIR_ENVOY_DESCRIPTORS_MAX];
    struct weir_envoy_entry entry = {{"a", 1}, {"x", 1}};
    struct envoy_server *server =
        envoy_start(CONFIG(RULE("a", "hour", "1000", "")), &envoy_defaults);
    envoy_request(server, "d", (const char *const[]){NULL});
    for (uint32_t i = 0; i < WEIR_ENVOY_DESCRIPTORS_MAX; i++)
        many[i] = (struct weir_envoy_descriptor){.entries = &entry, .entry_count = 1};
    server->request.descriptors = many;
    server->request.descriptor_count = WEIR_ENVOY_DESCRIPTORS_MAX;
    assert_int_equal(envoy_send(server), 0);
    for (uint32_t i = 0; i < WEIR_ENVOY_DESCRIPTORS_MAX; i++) {
        assert_int_equal(server->response.statuses[i].code,
                         i < 1000 ? WEIR_ENVOY_OK : WEIR_ENVOY_OVER_LIMIT);
        assert_int_equal(server->response.statuses[i].limit_remaining, i < 1000 ? 999 - i : 0);
    }
    envoy_stop(server);
}

/* --- The key `weir` --------------------------------------------------------------------------- */

TEST("other algorithms")
{
    struct envoy_server *server =
        envoy_start(CONFIG(RULE("g", "minute", "60", ", weir: { algorithm: gcra, burst: 3 }")
                               RULE("m", "minute", "2", ", weir: { unit_multiplier: 5 }")
                                   RULE("s", "minute", "2", ", weir: { algorithm: sliding_window }")
                                       RULE("c", "minute", "10", ", weir: { cost: 4 }")),
                    &envoy_defaults);
    server->now_ns = 1200 * NS;
    for (unsigned i = 0; i < 3; i++) {
        ASK(server, "d", "g=x");
        assert_int_equal(server->response.statuses[0].limit_remaining, 2 - i);
    }
    assert_string_equal(ASK(server, "d", "g=x"), "OVER_LIMIT: OVER_LIMIT 60/MINUTE 1s 0");
    server->now_ns += NS;
    assert_string_equal(ASK(server, "d", "g=x"), "OK: OK 60/MINUTE 3s 0");
    assert_string_equal(ASK(server, "d", "m=x"), "OK: OK 2/MINUTE 299s 1");
    /* Two at the end of one window leave no room at the start of the next; and who is denied is
     * not charged, or would not get in for as long as he asks. */
    server->now_ns = 1259 * NS;
    ASK(server, "d", "s=x", "s=x");
    server->now_ns = 1260 * NS;
    for (int i = 0; i < 5; i++)
        assert_string_equal(ASK(server, "d", "s=x"), "OVER_LIMIT: OVER_LIMIT 2/MINUTE 1s 0");
    server->now_ns = 1261 * NS;
    assert_string_equal(ASK(server, "d", "s=x"), "OK: OK 2/MINUTE 119s 0");
    assert_string_equal(ASK(server, "d", "c=x"), "OK: OK 10/MINUTE 59s 6");
    ASK(server, "d", "c=x");
    assert_string_equal(ASK(server, "d", "c=x"), "OVER_LIMIT: OVER_LIMIT 10/MINUTE 59s 0");
    envoy_stop(server);
}

TEST("several limits on one descriptor")
{
    struct envoy_server *server =
        envoy_start(CONFIG(RULE("a", "minute", "3",
                                ", weir: { limits: [ { unit: hour, requests_per_unit: 5 },"
                                " { unit: minute, requests_per_unit: 100,"
                                " algorithm: gcra, burst: 50 } ] }")),
                    &envoy_defaults);
    server->now_ns = 3600 * NS;
    for (unsigned i = 1; i <= 3; i++) {
        ASK(server, "d", "a=x");
        assert_int_equal(server->response.statuses[0].requests_per_unit, 3);
        assert_int_equal(server->response.statuses[0].limit_remaining, 3 - i);
    }
    server->now_ns += 60 * NS;
    assert_string_equal(ASK(server, "d", "a=x"), "OK: OK 5/HOUR 3540s 1");
    ASK(server, "d", "a=x");
    assert_string_equal(ASK(server, "d", "a=x"), "OVER_LIMIT: OVER_LIMIT 5/HOUR 3540s 0");
    envoy_stop(server);
}

TEST("a limit may charge only what it admits")
{
    struct envoy_server *server = envoy_start(
        CONFIG(RULE("a", "minute", "10", ", weir: { charge: if_admitted }")), &envoy_defaults);
    send_with(server, 7, "a=x");
    assert_string_equal(send_with(server, 5, "a=x"), "OVER_LIMIT: OVER_LIMIT 10/MINUTE 26s 0");
    expect_counts(server, "total 5 over 2 near 2 local 0 within 0 shadow 0");
    assert_string_equal(send_with(server, 3, "a=x"), "OK: OK 10/MINUTE 26s 0");
    envoy_stop(server);
}

TEST("a limit may charge only where all allow")
{
    struct envoy_server *server =
        envoy_start(CONFIG(RULE("a", "minute", "10", ", weir: { charge: if_all_allow }")
                               RULE("b", "minute", "1", "") RULE("c", "minute", "5", "")),
                    &envoy_defaults);
    ASK(server, "d", "a=x", "b=x", "c=x");
    assert_string_equal(ASK(server, "d", "a=x", "b=x", "c=x"),
                        "OVER_LIMIT: OK 10/MINUTE 26s 9; OVER_LIMIT 1/MINUTE 26s 0; "
                        "OK 5/MINUTE 26s 3");
    /* More of them than one decision holds is an error, not a part of the promise broken. */
    struct weir_envoy_entry entry = {{"a", 1}, {"x", 1}};
    static struct weir_envoy_descriptor many[WEIR_CHECKS_MAX + 1];
    envoy_request(server, "d", (const char *const[]){NULL});
    for (uint32_t i = 0; i <= WEIR_CHECKS_MAX; i++)
        many[i] = (struct weir_envoy_descriptor){.entries = &entry, .entry_count = 1};
    server->request.descriptors = many;
    server->request.descriptor_count = WEIR_CHECKS_MAX + 1;
    assert_int_equal(envoy_send(server), WEIR_ERR_TOO_LARGE);
    assert_string_equal(server->reason.text, "more than 32 limits that are charged together");
    envoy_stop(server);
}

/* A remote store has one limit for each state. */
TEST("what cannot be charged together is refused by its name")
{
    const struct weir_envoy_options shared = {.shared = true};
    struct envoy_server *server =
        envoy_start(CONFIG(RULE("a", "minute", "10", ", weir: { charge: if_all_allow }")), &shared);
    struct weir_envoy_entry entries[2] = {{{"a", 1}, {"x", 1}}, {{"b", 1}, {"x", 1}}};
    struct weir_envoy_descriptor descriptors[3] = {
        {.entries = &entries[0], .entry_count = 1}, /* the rule, that all are charged with */
        {.entries = &entries[1], .entry_count = 1, .has_limit = true, .requests_per_unit = 5},
        {.entries = &entries[1], .entry_count = 1, .has_limit = true, .requests_per_unit = 7},
    };
    descriptors[1].unit = descriptors[2].unit = 2;
    envoy_request(server, "d", (const char *const[]){NULL});
    server->request.descriptors = descriptors;
    server->request.descriptor_count = 3;
    assert_int_equal(envoy_send(server), WEIR_ERR_RANGE);
    assert_string_equal(server->reason.text,
                        "descriptor 2: another one that is the same has another limit: they count "
                        "in one state and cannot be charged together");
    descriptors[2].entries = &(struct weir_envoy_entry){{"c", 1}, {"x", 1}};
    assert_int_equal(envoy_send(server), 0);
    envoy_stop(server);
}

RUN_TESTS()
