/* SPDX-License-Identifier: Apache-2.0 */
/* The library as a program uses it, by its public header alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "library_place.h"
#include "test.h"

#include <weir/embed.h>

#define SECOND UINT64_C(1000000000)

static const struct weir_attribute_value login[] = {
    {"method", "POST"}, {"path", "/login"}, {"client.ip", "192.0.2.1"}};

static const char three_a_day[] =
    "limits:\n"
    "  - { name: login, match: { path: /login }, key: [client.ip], rate: 3/day,"
    " algorithm: token_bucket }\n";

TEST_WITH(place_setup, place_teardown, "a request is allowed until its limit is used up")
{
    struct place *place = *state;
    struct weir_answer_summary answer;
    write_rules(place, three_a_day);
    struct weir *weir = open_weir(place, NULL);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(weir_check(weir, login, 3, 1, &answer), 0);
        assert_true(answer.allowed);
        assert_int_equal(answer.remaining, 2 - i);
        assert_int_equal(answer.retry_after_ns, 0);
        assert_string_equal(answer.denied_by, "");
        assert_string_equal(answer.lease.text, "");
    }
    assert_int_equal(weir_check(weir, login, 3, 1, &answer), 0);
    assert_false(answer.allowed);
    assert_string_equal(answer.denied_by, "login");
    assert_in_range(answer.retry_after_ns, 1, 8 * 3600 * SECOND);
    assert_int_equal(weir_check(weir, login, 3, 4, &answer), 0);
    assert_true(answer.retry_after_ns == WEIR_NEVER);
    weir_close(weir);
}

TEST_WITH(place_setup, place_teardown, "a threshold that is reached is a warning")
{
    struct place *place = *state;
    struct weir_answer_summary answer;
    static const unsigned expected[] = {0, 40, 50, 75, 75, 0};
    write_rules(place,
                "limits:\n"
                "  - { name: l, key: [client.ip], quota: 5/year, warn_at: [40%, 50%, 75%] }\n"
                "  - { name: m, key: [client.ip], quota: 9/year }\n");
    struct weir *weir = open_weir(place, NULL);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_int_equal(weir_check(weir, login, 3, 1, &answer), 0);
        assert_int_equal(answer.allowed, i < 5);
        assert_int_equal(answer.warning, expected[i]);
    }
    weir_close(weir);
}

TEST_WITH(place_setup, place_teardown, "an answer has the action of its limits")
{
    struct place *place = *state;
    struct weir_answer_summary answer;
    static const char *const expected[] = {NULL, "mark", "delay", "tarpit"};
    static const uint64_t delays_ns[] = {0, 0, 20000000, 3000000000};
    write_rules(place, "limits:\n"
                       "  - { name: l, key: [client.ip], rate: 3/d, reject: { tarpit: 3s },\n"
                       "      steps: [{ at: 60%, mark: true }, { at: 90%, delay: 20ms }] }\n");
    struct weir *weir = open_weir(place, NULL);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_int_equal(weir_check(weir, login, 3, 1, &answer), 0);
        assert_int_equal(answer.allowed, i < 3);
        assert_int_equal(answer.action != NULL, expected[i] != NULL);
        if (expected[i] != NULL)
            assert_string_equal(answer.action, expected[i]);
        assert_int_equal(answer.delay_ns, delays_ns[i]);
    }
    weir_close(weir);
}

TEST_WITH(place_setup, place_teardown, "attributes that no rule reads or that are null are ignored")
{
    struct place *place = *state;
    struct weir_answer_summary answer;
    write_rules(place, "limits:\n  - { name: k, key: [header.x-key], rate: 1/day }\n");
    struct weir *weir = open_weir(place, NULL);
    struct weir_attribute_value request[] = {{"nobody.reads", "this"}, {"header.x-key", NULL}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_check(weir, request, 2, 1, &answer), 0);
        assert_true(answer.allowed);
        assert_true(answer.remaining == WEIR_NEVER); /* no limit applies */
    }
    struct weir_attribute_value header[] = {{"Header.X-KEY", "a"}};
    assert_int_equal(weir_check(weir, header, 1, 1, &answer), 0);
    assert_true(answer.allowed);
    assert_int_equal(weir_check(weir, header, 1, 1, &answer), 0);
    assert_false(answer.allowed);
    weir_close(weir);
}

TEST_WITH(place_setup, place_teardown, "parameters of the query and cookies are attributes")
{
    struct place *place = *state;
    struct weir_answer_summary answer;
    write_rules(place, "limits:\n  - { name: q, key: [query.key, cookie.s], rate: 1/day }\n");
    struct weir *weir = open_weir(place, NULL);
    struct weir_attribute_value one[] = {{"path", "/a?x=1&key=1"}, {"header.cookie", "a=b; s=1"}};
    struct weir_attribute_value same[] = {{"path", "/b?%6Bey=%31"}, {"header.Cookie", "s=\"1\""}};
    struct weir_attribute_value other[] = {{"path", "/a?key=1"}, {"header.cookie", "s=2"}};
    struct weir_attribute_value given[] = {{"query.key", "1"}, {"cookie.s", "1"}};
    assert_int_equal(weir_check(weir, one, 2, 1, &answer), 0);
    assert_true(answer.allowed);
    assert_int_equal(weir_check(weir, same, 2, 1, &answer), 0);
    assert_false(answer.allowed);
    assert_int_equal(weir_check(weir, other, 2, 1, &answer), 0);
    assert_true(answer.allowed);
    assert_int_equal(weir_check(weir, given, 2, 1, &answer), 0);
    assert_false(answer.allowed);
    weir_close(weir);
}

TEST_WITH(place_setup, place_teardown, "a malformed request is an error and charges nothing")
{
    struct place *place = *state;
    struct weir_answer_summary answer;
    write_rules(place, three_a_day);
    struct weir *weir = open_weir(place, NULL);
    struct weir_attribute_value bad_path[] = {{"path", "/%zz"}, {"client.ip", "192.0.2.1"}};
    struct weir_attribute_value bad_client[] = {{"path", "/login"}, {"client.ip", "192.0.2.256"}};
    assert_int_equal(weir_check(weir, bad_path, 2, 1, &answer), WEIR_ERR_SYNTAX);
    assert_int_equal(weir_check(weir, bad_client, 2, 1, &answer), WEIR_ERR_SYNTAX);
    assert_int_equal(weir_check(weir, login, 3, 1, &answer), 0);
    assert_int_equal(answer.remaining, 2);
    weir_close(weir);
}

TEST_WITH(place_setup, place_teardown, "bad rules are explained with their place")
{
    struct place *place = *state;
    struct weir *weir;
    struct weir_reason reason;
    write_rules(place, "limits:\n  - { name: a, key: [], rate: 3/fortnight }\n");
    assert_int_equal(weir_open(&weir, place->rules, NULL, &reason), WEIR_ERR_RULES);
    assert_null(weir);
    assert_non_null(strstr(reason.text, "rules.yaml:3:"));
    assert_int_equal(weir_open(&weir, "/nonexistent/rules.yaml", NULL, &reason), WEIR_ERR_RULES);
    assert_non_null(strstr(reason.text, "/nonexistent/rules.yaml"));
    assert_int_equal(weir_open(&weir, place->rules, NULL, NULL), WEIR_ERR_RULES);
    weir_close(NULL);
}

TEST_WITH(place_setup, place_teardown, "state in a file outlives the process that made it")
{
    struct place *place = *state;
    struct weir_answer_summary answer;
    struct weir_options options = {.state_file = place->state, .state_bytes = 1 << 20};
    write_rules(place, three_a_day);
    for (uint64_t i = 0; i < 3; i++) {
        struct weir *weir = open_weir(place, &options);
        assert_int_equal(weir_check(weir, login, 3, 1, &answer), 0);
        assert_int_equal(answer.remaining, 2 - i);
        weir_close(weir);
    }
    struct weir *one = open_weir(place, &options), *two = open_weir(place, &options);
    assert_int_equal(weir_check(one, login, 3, 1, &answer), 0);
    assert_false(answer.allowed);
    assert_int_equal(weir_check(two, login, 3, 1, &answer), 0);
    assert_false(answer.allowed);
    weir_close(one);
    weir_close(two);
}

TEST_WITH(place_setup, place_teardown, "a file that is no state is refused and left alone")
{
    struct place *place = *state;
    struct weir_options options = {
        .state_file = place->state, .state_bytes = 1 << 20, .state_must_open = true};
    struct weir *weir;
    struct weir_reason reason;
    char text[32] = {0};
    write_rules(place, three_a_day);
    FILE *file = fopen(place->state, "w");
    assert_non_null(file);
    fputs("somebody's diary", file);
    assert_int_equal(fclose(file), 0);
    int err = weir_open(&weir, place->rules, &options, &reason);
    assert_true(err == WEIR_ERR_FORMAT || err == WEIR_ERR_DAMAGED);
    assert_int_not_equal(strlen(reason.text), 0);
    file = fopen(place->state, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, "somebody's diary");
}

TEST_WITH(place_setup, place_teardown, "a lease is held until it is released")
{
    struct place *place = *state;
    struct weir_answer_summary first, second;
    write_rules(place, "limits:\n"
                       "  - { name: jobs, key: [], algorithm: concurrency, limit: 1, life: 1h }\n");
    struct weir *weir = open_weir(place, NULL);
    assert_int_equal(weir_check(weir, login, 3, 1, &first), 0);
    assert_true(first.allowed);
    assert_int_not_equal(strlen(first.lease.text), 0);
    assert_int_equal(weir_check(weir, login, 3, 1, &second), 0);
    assert_false(second.allowed);
    assert_string_equal(second.lease.text, "");
    assert_int_equal(weir_release(weir, &first.lease), 0);
    assert_int_equal(weir_release(weir, &first.lease), WEIR_ERR_NOT_FOUND);
    assert_int_equal(weir_release(weir, &second.lease), WEIR_ERR_SYNTAX);
    assert_int_equal(weir_check(weir, login, 3, 1, &second), 0);
    assert_true(second.allowed);
    assert_string_not_equal(first.lease.text, second.lease.text);
    weir_close(weir);
}

TEST_WITH(place_setup, place_teardown, "a request with an idempotency key is charged once")
{
    struct place *place = *state;
    struct weir_answer_summary first, again;
    char long_key[257];
    write_rules(place,
                "limits:\n"
                "  - { name: rate, key: [client.ip], algorithm: fixed_window, rate: 3/day }\n"
                "  - { name: jobs, key: [], algorithm: concurrency, limit: 2, life: 1h }\n");
    struct weir *weir = open_weir(place, NULL);
    assert_int_equal(weir_check_once(weir, login, 3, 1, "a", &first), 0);
    assert_true(first.allowed && !first.repeated);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(weir_check_once(weir, login, 3, 1, "a", &again), 0);
        assert_true(again.allowed && again.repeated);
        assert_int_equal(again.remaining, 1);
        assert_string_equal(again.lease.text, first.lease.text);
    }
    assert_int_equal(weir_check_once(weir, login, 3, 2, "a", &again), 0); /* another cost */
    assert_true(!again.repeated);
    assert_int_equal(weir_release(weir, &first.lease), 0);
    memset(long_key, 'k', sizeof long_key);
    long_key[256] = '\0';
    assert_int_equal(weir_check_once(weir, login, 3, 1, long_key, &again), WEIR_ERR_RANGE);
    assert_int_equal(weir_check_once(weir, login, 3, 1, "", &again), WEIR_ERR_RANGE);
    weir_close(weir);
}

TEST_WITH(place_setup, place_teardown, "reloading keeps state and bad rules change nothing")
{
    struct place *place = *state;
    struct weir_answer_summary answer;
    struct weir_reason reason;
    write_rules(place, three_a_day);
    struct weir *weir = open_weir(place, NULL);
    assert_int_equal(weir_check(weir, login, 3, 2, &answer), 0);
    write_rules(place, "limits: [ { name: login } ]\n");
    assert_int_equal(weir_reload(weir, &reason), WEIR_ERR_RULES);
    assert_int_not_equal(strlen(reason.text), 0);
    assert_int_equal(weir_check(weir, login, 3, 0, &answer), 0);
    assert_int_equal(answer.remaining, 1);
    write_rules(place, "limits:\n"
                       "  - { name: login, match: { path: /login }, key: [client.ip],"
                       " rate: 10/day, algorithm: token_bucket }\n");
    assert_int_equal(weir_reload(weir, &reason), 0);
    assert_int_equal(weir_check(weir, login, 3, 0, &answer), 0);
    assert_int_equal(answer.remaining, 8); /* used stays used */
    weir_close(weir);
}

/* The state of 256 KiB has 32 places for different limits. */
TEST_WITH(place_setup, place_teardown, "limits that change at each reload give their places back")
{
    struct place *place = *state;
    const struct weir_options options = {.state_bytes = 1 << 18};
    struct weir_answer_summary answer;
    struct weir_reason reason;
    write_rules(place, three_a_day);
    struct weir *weir = open_weir(place, &options);
    for (unsigned round = 0; round < 100; round++) {
        char text[512] = "limits:\n";
        for (unsigned i = 0; i < 4; i++)
            snprintf(text + strlen(text), sizeof text - strlen(text),
                     "  - { name: l%u, key: [client.ip], rate: %u/day, algorithm: gcra }\n", i,
                     1000 + round);
        write_rules(place, text);
        int err = weir_reload(weir, &reason);
        if (err < 0)
            fail_msg("round %u: %s", round, reason.text);
        assert_int_equal(weir_check(weir, login, 3, 1, &answer), 0);
        assert_true(answer.allowed);
        assert_in_range(answer.remaining, 0, 1000 + round - 1);
    }
    weir_close(weir);
}

#define MINUTE_NS (UINT64_C(60) * 1000000000)
#define NEW_YEAR_NS (UINT64_C(1767225600) * 1000000000) /* 2026-01-01T00:00:00Z */

static const char five_a_minute[] =
    "state: { file: must-not-be-made }\nlimits:\n"
    "  - { name: l, key: [client.ip], rate: 5/min, algorithm: sliding_log }\n"
    "  - { name: q, key: [client.ip], quota: 7/month }\n";

TEST_WITH(place_setup, place_teardown, "a clock for tests stands still until it is advanced")
{
    struct place *place = *state;
    const struct weir_options options = {.test_clock_ns = NEW_YEAR_NS};
    struct weir_answer_summary answer;
    write_rules(place, five_a_minute);
    struct weir *weir = open_weir(place, &options);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(weir_check(weir, login, 3, 1, &answer), 0);
    assert_false(answer.allowed);
    assert_true(answer.retry_after_ns == MINUTE_NS);
    assert_int_equal(weir_advance(weir, MINUTE_NS - 1), 0);
    assert_int_equal(weir_check(weir, login, 3, 1, &answer), 0);
    assert_true(!answer.allowed && answer.retry_after_ns == 1);
    assert_int_equal(weir_advance(weir, 1), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(weir_check(weir, login, 3, 1, &answer), 0);
    assert_false(answer.allowed); /* by the quota: until the first of February */
    assert_string_equal(answer.denied_by, "q");
    assert_true(answer.retry_after_ns == (31 * 24 * 60 - 1) * MINUTE_NS);
    assert_int_equal(weir_advance(weir, answer.retry_after_ns), 0);
    assert_int_equal(weir_check(weir, login, 3, 1, &answer), 0);
    assert_true(answer.allowed);
    assert_int_equal(access("must-not-be-made", F_OK), -1);
    assert_int_equal(weir_advance(weir, UINT64_MAX), WEIR_ERR_RANGE);
    weir_close(weir);
}

TEST_WITH(place_setup, place_teardown, "only a clock for tests can be advanced")
{
    struct place *place = *state;
    struct weir *weir;
    struct weir_reason reason;
    const struct weir_options both = {.test_clock_ns = NEW_YEAR_NS, .state_file = place->state},
                              late = {.test_clock_ns = UINT64_MAX},
                              small = {.state_bytes = 1 << 18};
    write_rules(place, three_a_day);
    assert_int_equal(weir_open(&weir, place->rules, &both, &reason), WEIR_ERR_UNSUPPORTED);
    assert_non_null(strstr(reason.text, "leave the state file out"));
    assert_int_equal(weir_open(&weir, place->rules, &late, &reason), WEIR_ERR_RANGE);
    weir = open_weir(place, &small);
    assert_int_equal(weir_advance(weir, 1), WEIR_ERR_UNSUPPORTED);
    assert_int_equal(weir_memory(weir), 1 << 18);
    weir_close(weir);
}

TEST_WITH(place_setup, place_teardown, "a child cannot use what its parent opened")
{
    struct place *place = *state;
    struct weir_answer_summary answer;
    write_rules(place, three_a_day);
    struct weir *weir = open_weir(place, NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct weir_lease_token lease = {""};
        int wrong = weir_check(weir, login, 3, 1, &answer) != WEIR_ERR_UNSUPPORTED;
        wrong += weir_release(weir, &lease) != WEIR_ERR_UNSUPPORTED;
        wrong += weir_reload(weir, NULL) != WEIR_ERR_UNSUPPORTED;
        weir_close(weir);
        _exit(wrong);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(weir_check(weir, login, 3, 1, &answer), 0);
    assert_int_equal(answer.remaining, 2);
    weir_close(weir);
}

RUN_TESTS()
