/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/limit: limits in the request, what they count, and what is refused without charging. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http_harness.h"

static int set_up(void **state)
{
    *state = http_harness_open(NULL, WEIR_LISTENER_HTTP);
    return 0;
}

static int tear_down(void **state)
{
    http_harness_close(*state);
    return 0;
}

static unsigned ask(struct http_harness *http, const char *body)
{
    return http_harness_post(http, "/v1/limit", body);
}

#define assert_answer(http, request, status, text)                                                 \
    do {                                                                                           \
        assert_int_equal(ask(http, request), status);                                              \
        if (!http_harness_says(http, text))                                                        \
            fail_msg("%s: %s, without %s", request, (http)->body, text);                           \
    } while (0)

static void every_algorithm_admits_what_its_limit_says(void **state)
{
    static const struct {
        const char *fields, *algorithm;
        int admits;
    } cases[] = {
        {"\"rate\":\"3/d\"", "sliding_window", 3},
        {"\"rate\":\"3/d\",\"segments\":6,\"strict\":true", "sliding_window", 3},
        {"\"rate\":\"3/300d\",\"algorithm\":\"fixed_window\"", "fixed_window", 3},
        {"\"rate\":\"3/d\",\"algorithm\":\"sliding_log\"", "sliding_log", 3},
        {"\"rate\":\"3/d\",\"algorithm\":\"token_bucket\"", "token_bucket", 3},
        {"\"rate\":\"3/d burst 4\",\"algorithm\":\"token_bucket\"", "token_bucket", 4},
        {"\"rate\":\"3/d\",\"algorithm\":\"gcra\",\"burst\":2", "gcra", 2},
        {"\"rate\":\"3/d\",\"algorithm\":\"leaky_bucket\",\"burst\":5", "leaky_bucket", 5},
        {"\"rate\":\"3/d\",\"algorithm\":\"leaky_bucket\",\"queue\":true", "leaky_bucket", 4},
        {"\"algorithm\":\"concurrency\",\"limit\":3,\"life\":\"1h\"", "concurrency", 3},
        {"\"rate\":\"0/s\"", "sliding_window", 0},
    };
    struct http_harness *http = *state;
    char body[256], says[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(body, sizeof body, "{\"key\":\"k%zu\",%s}", i, cases[i].fields);
        snprintf(says, sizeof says, "\"name\":\"limit\",\"algorithm\":\"%s\"", cases[i].algorithm);
        for (int n = 0; n < cases[i].admits; n++)
            assert_answer(http, body, 200, "\"denied_by\":null");
        assert_answer(http, body, 429, "\"denied_by\":\"limit\"");
        assert_true(http_harness_says(http, says));
        assert_true(http_harness_says(http, "\"remaining\":0"));
        assert_true(http_harness_has(http, "Cache-Control: no-store"));
    }
}

static void an_answer_has_the_rate_limit_fields(void **state)
{
    struct http_harness *http = *state;
    assert_answer(http,
                  "[{\"key\":\"a\",\"rate\":\"2/d\",\"algorithm\":\"gcra\",\"name\":\"day\"},"
                  "{\"key\":\"a\",\"rate\":\"9/h\",\"algorithm\":\"sliding_log\"}]",
                  200, "\"remaining\":1");
    assert_true(
        http_harness_has(http, "RateLimit-Policy: \"day\";q=2;w=86400, \"limit-1\";q=9;w=3600"));
    assert_true(http_harness_has(http, "RateLimit: \"day\";r=1;t=43200, \"limit-1\";r=8;t=3200"));
    assert_true(http_harness_has(http, "X-RateLimit-Remaining: 1"));
}

static void several_limits_are_charged_all_or_none(void **state)
{
    static const char both[] =
        "{\"limits\":[{\"key\":\"user\",\"rate\":\"5/d\",\"algorithm\":\"gcra\"},"
        "{\"key\":\"org\",\"rate\":\"2/d\",\"algorithm\":\"gcra\"}]}";
    struct http_harness *http = *state;
    assert_answer(http, both, 200, "\"denied_by\":null");
    assert_answer(http, both, 200, "\"denied_by\":null");
    assert_answer(http, both, 429, "\"denied_by\":\"limit-1\"");
    assert_answer(http, both, 429, "\"remaining\":3");
    assert_answer(http, "{\"key\":\"user\",\"rate\":\"5/d\",\"algorithm\":\"gcra\",\"cost\":3}",
                  200, "\"remaining\":0");
}

static void a_dry_run_and_a_cost_of_zero_charge_nothing(void **state)
{
    struct http_harness *http = *state;
    for (int i = 0; i < 3; i++) {
        assert_answer(http, "{\"key\":\"k\",\"rate\":\"1/d\",\"dry_run\":true}", 200,
                      "\"remaining\":1");
        assert_answer(http, "{\"key\":\"k\",\"rate\":\"1/d\",\"cost\":0}", 200, "\"remaining\":1");
        assert_answer(http,
                      "{\"limits\":[{\"key\":\"k\",\"rate\":\"1/d\",\"cost\":2}],\"dry_run\":true}",
                      429, "\"retry_after_ms\":null");
    }
    assert_answer(http, "{\"key\":\"k\",\"rate\":\"1/d\"}", 200, "\"remaining\":0");
}

/* A count belongs to name, key, algorithm and period. */
static void a_limit_that_changes_its_rate_keeps_what_was_used(void **state)
{
    struct http_harness *http = *state;
    assert_answer(http, "{\"key\":\"k\",\"rate\":\"5/d\",\"algorithm\":\"sliding_log\",\"cost\":4}",
                  200, "\"remaining\":1");
    assert_answer(http, "{\"key\":\"k\",\"rate\":\"9/d\",\"algorithm\":\"sliding_log\",\"cost\":0}",
                  200, "\"remaining\":5");
    assert_answer(http, "{\"key\":\"k\",\"rate\":\"5/h\",\"algorithm\":\"sliding_log\",\"cost\":0}",
                  200, "\"remaining\":5");
    assert_answer(http, "{\"key\":\"k\",\"rate\":\"5/d\",\"algorithm\":\"gcra\",\"cost\":0}", 200,
                  "\"remaining\":5");
    assert_answer(http,
                  "{\"key\":\"k\",\"name\":\"n\",\"rate\":\"5/d\",\"algorithm\":\"sliding_log\","
                  "\"cost\":0}",
                  200, "\"remaining\":5");
    assert_answer(http, "{\"key\":\"k\",\"rate\":\"5/1440min\",\"algorithm\":\"sliding_log\"}", 200,
                  "\"remaining\":0");
}

static void keys_are_bytes_of_any_length(void **state)
{
    static char body[4096], other[4096], key[2001];
    struct http_harness *http = *state;
    for (size_t size = 255; size < sizeof key; size += size < 258 ? 1 : 871) {
        memset(key, '0', sizeof key);
        key[size] = '\0';
        key[size - 1] = '1';
        snprintf(body, sizeof body, "{\"key\":\"%s\",\"rate\":\"1/d\"}", key);
        key[size - 1] = '2';
        snprintf(other, sizeof other, "{\"key\":\"%s\",\"rate\":\"1/d\"}", key);
        assert_answer(http, body, 200, "\"remaining\":0");
        assert_answer(http, body, 429, "\"name\":\"limit\"");
        assert_answer(http, other, 200, "\"remaining\":0");
    }
    /* The parts of the state's text cannot be confused with each other. */
    assert_answer(http, "{\"key\":\"b:c\",\"name\":\"a\",\"rate\":\"1/d\"}", 200, "\"name\":\"a\"");
    assert_answer(http, "{\"key\":\"c\",\"name\":\"a.b\",\"rate\":\"1/d\"}", 200,
                  "\"allowed\":true");
    assert_answer(http, "{\"key\":\"a:b:c\",\"rate\":\"1/d\"}", 200, "\"allowed\":true");
    assert_answer(http, "{\"key\":\":a:b:c\",\"rate\":\"1/d\"}", 200, "\"allowed\":true");
}

static void a_lease_is_released_by_its_token(void **state)
{
    static const char limit[] =
        "{\"key\":\"k\",\"algorithm\":\"concurrency\",\"limit\":1,\"life\":\"1h\"}";
    struct http_harness *http = *state;
    char release[2048];
    assert_answer(http, limit, 200, "\"lease\":\"");
    const char *lease = strstr(http->body, "\"lease\":\"");
    snprintf(release, sizeof release, "{%.*s}", (int)(strstr(lease, "\",") + 1 - lease), lease);
    assert_int_equal(ask(http, limit), 429);
    assert_int_equal(http_harness_post(http, "/v1/release", release), 200);
    assert_int_equal(ask(http, limit), 200);
}

static void a_limit_that_makes_no_sense_is_refused_with_its_path(void **state)
{
    static const struct {
        const char *body;
        unsigned status;
        const char *says;
    } cases[] = {
        {"{\"key\":\"k\"}", 400, "\"rate: is missing, as in 100/min\""},
        {"{\"key\":\"k\",\"rate\":\"10\"}", 400,
         "\"rate: `10` is not a rate; write N/unit, as in 100/min or 5/10s\""},
        {"{\"key\":\"k\",\"rate\":\"plan\"}", 400, "\"rate: `plan` is not a rate"},
        {"{\"key\":\"k\",\"rate\":\"1/year\"}", 400, "\"rate: "},
        {"{\"key\":\"k\",\"rate\":\"1/367d\"}", 400,
         "\"rate: the window of a rate must be 1ms to 366d\""},
        {"{\"key\":\"k\",\"rate\":\"5000000000/s\"}", 400,
         "\"rate: sliding_window: rate is 5000000000"},
        {"{\"key\":\"k\",\"rate\":\"10001/s\",\"algorithm\":\"sliding_log\"}", 400,
         "the range is 0 to 10000"},
        {"{\"key\":\"k\",\"rate\":\"1/s\",\"algorithm\":\"GCRA\"}", 400,
         "\"algorithm: must be fixed_window"},
        {"{\"key\":\"k\",\"rate\":\"1/s\",\"algorithm\":\"quota\"}", 400, "\"algorithm: must be"},
        {"{\"key\":\"k\",\"rate\":\"1/s\",\"burst\":2}", 400,
         "\"burst: belongs to token_bucket, gcra and leaky_bucket, not to sliding_window\""},
        {"{\"key\":\"k\",\"rate\":\"1/s burst 2\",\"algorithm\":\"gcra\",\"burst\":2}", 400,
         "\"burst: the rate already has a burst\""},
        {"{\"key\":\"k\",\"rate\":\"1/s\",\"algorithm\":\"gcra\",\"burst\":0}", 400,
         "\"burst: must be 1 to"},
        {"{\"key\":\"k\",\"rate\":\"0/s\",\"algorithm\":\"gcra\",\"burst\":2}", 400,
         "\"rate: a rate of 0"},
        {"{\"key\":\"k\",\"rate\":\"1/s\",\"algorithm\":\"gcra\",\"segments\":2}", 400,
         "\"segments: belongs to sliding_window, not to gcra\""},
        {"{\"key\":\"k\",\"rate\":\"1/s\",\"algorithm\":\"gcra\",\"strict\":true}", 400,
         "\"strict: belongs"},
        {"{\"key\":\"k\",\"rate\":\"1/s\",\"segments\":121}", 400,
         "\"segments: must be 1 to 120\""},
        {"{\"key\":\"k\",\"rate\":\"1/s\",\"segments\":7}", 400, "the nearest that does is 8"},
        {"{\"key\":\"k\",\"rate\":\"1/s\",\"queue\":true}", 400,
         "\"queue: belongs to leaky_bucket"},
        {"{\"key\":\"k\",\"rate\":\"1/s\",\"limit\":1}", 400, "\"limit: belongs to concurrency"},
        {"{\"key\":\"k\",\"rate\":\"1/s\",\"life\":\"1s\"}", 400, "\"life: belongs to concurrency"},
        {"{\"key\":\"k\",\"algorithm\":\"concurrency\"}", 400, "\"limit: is missing"},
        {"{\"key\":\"k\",\"algorithm\":\"concurrency\",\"limit\":10001}", 400,
         "\"limit: must be 0 to 10000\""},
        {"{\"key\":\"k\",\"algorithm\":\"concurrency\",\"limit\":1,\"rate\":\"1/s\"}", 400,
         "\"rate: belongs to the other algorithms"},
        {"{\"key\":\"k\",\"algorithm\":\"concurrency\",\"limit\":1,\"life\":\"x\"}", 400,
         "\"life: "},
        {"{\"key\":\"k\",\"algorithm\":\"concurrency\",\"limit\":1,\"life\":\"400d\"}", 400,
         "\"life: `life` must be 1ms to 366d\""},
        {"[{\"key\":\"a\",\"rate\":\"1/s\"},{\"key\":\"b\",\"rate\":\"x\"}]", 400,
         "\"[1].rate: `x` is not a rate"},
        {"{\"limits\":[{\"key\":\"a\",\"rate\":\"1/s\"},{\"key\":\"a\",\"rate\":\"2/s\"}]}", 400,
         "\"limits[1]: the same key, algorithm and period as number 0; give one of them a "
         "`name`\""},
        {"[{\"key\":\"a\",\"rate\":\"1/s\",\"name\":\"limit-1\"},{\"key\":\"b\",\"rate\":\"2/s\"}]",
         400, "\"[1].name: number 0 is called limit-1, too\""},
        {"{\"key\":\"k\",\"rate\":\"1/s\",\"unknown\":1}", 400, "unknown field"},
        {"[", 400, "\"detail\""},
    };
    struct http_harness *http = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_answer(http, cases[i].body, cases[i].status, cases[i].says);
        assert_true(http_harness_has(http, "Content-Type: application/problem+json"));
    }
}

static void a_refused_request_charges_nothing(void **state)
{
    struct http_harness *http = *state;
    assert_int_equal(ask(http, "[{\"key\":\"k\",\"rate\":\"1/d\"},{\"key\":\"l\",\"rate\":\"\"}]"),
                     400);
    assert_answer(http, "{\"key\":\"k\",\"rate\":\"1/d\"}", 200, "\"remaining\":0");
}

static void the_largest_request_is_answered(void **state)
{
    static char body[32 * 512];
    struct http_harness *http = *state;
    char key[258];
    for (size_t size = 256; size < sizeof key; size++) {
        size_t used = 0;
        for (int i = 0; i < 32; i++) {
            snprintf(key, sizeof key, "%0257d", i);
            used += (size_t)sprintf(body + used,
                                    "%c{\"key\":\"%s\",\"name\":\"%064d\",\"rate\":\"1/366d\","
                                    "\"segments\":120,\"strict\":true}",
                                    i ? ',' : '[', key + sizeof key - 1 - size, i);
        }
        strcpy(body + used, "]");
        assert_int_equal(ask(http, body), 200);
        assert_int_equal(ask(http, body), 429);
    }
}

static void distinct_limits_are_bounded_and_the_error_says_so(void **state)
{
    struct http_harness *http = *state;
    char body[128];
    for (int i = 1; i <= HTTP_HARNESS_LIMITS; i++) {
        snprintf(body, sizeof body, "{\"key\":\"k\",\"rate\":\"%d/d\"}", i);
        assert_true(ask(http, body) != 503);
    }
    assert_answer(http, "{\"key\":\"k\",\"rate\":\"999/d\"}", 503, "too many distinct limits");
    assert_answer(http, "[{\"key\":\"k\",\"rate\":\"999/d\"}]", 503, "\"[0]: too many");
    assert_answer(http, "{\"key\":\"l\",\"rate\":\"7/d\"}", 200, "\"remaining\":6");
}

static void only_trusted_listeners_serve_it(void **state)
{
    struct http_harness *http = http_harness_open(
        "version: 1\nlimits: []\nserver: { http: { address: \"127.0.0.1:0\", trusted: false } }\n",
        WEIR_LISTENER_HTTP);
    (void)state;
    assert_answer(http, "{\"key\":\"k\",\"rate\":\"1/d\"}", 403, "trusted: true");
    http_harness_close(http);
}

static void other_methods_and_types_are_refused(void **state)
{
    struct http_harness *http = *state;
    assert_int_equal(http_harness_get(http, "/v1/limit"), 405);
    assert_int_equal(http_harness_ask(http, "POST", "/v1/limit", "Content-Type: text/plain\r\n",
                                      "{\"key\":\"k\",\"rate\":\"1/d\"}"),
                     415);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        CASE(every_algorithm_admits_what_its_limit_says),
        CASE(an_answer_has_the_rate_limit_fields),
        CASE(several_limits_are_charged_all_or_none),
        CASE(a_dry_run_and_a_cost_of_zero_charge_nothing),
        CASE(a_limit_that_changes_its_rate_keeps_what_was_used),
        CASE(keys_are_bytes_of_any_length),
        CASE(a_lease_is_released_by_its_token),
        CASE(a_limit_that_makes_no_sense_is_refused_with_its_path),
        CASE(a_refused_request_charges_nothing),
        CASE(the_largest_request_is_answered),
        CASE(distinct_limits_are_bounded_and_the_error_says_so),
        CASE(only_trusted_listeners_serve_it),
        CASE(other_methods_and_types_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
