/* SPDX-License-Identifier: Apache-2.0 */
/* The contest of --compare: verdicts that are known, and the worst windows that theory names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/replay/compare/contest.h"
#include "failing_memory.h"
#include "test.h"

#define SECOND UINT64_C(1000000000)
#define MINUTE (60 * SECOND)

static const uint64_t alice[2] = {1, 2};

static struct replay_contest *open_contest(const struct weir_limit_spec *spec)
{
    struct weir_limit limit;
    assert_int_equal(weir_limit_init(&limit, spec, NULL), 0);
    struct replay_contest *contest = replay_contest_open(&limit);
    assert_non_null(contest);
    return contest;
}

static const struct replay_contender *result(const struct replay_contest *contest, const char *name)
{
    const struct replay_contender *contenders;
    size_t count = replay_contest_results(contest, &contenders);
    for (size_t i = 0; i < count; i++)
        if (strcmp(contenders[i].name, name) == 0)
            return &contenders[i];
    fail_msg("no contender '%s'", name);
    return NULL;
}

static void feed(struct replay_contest *contest, const uint64_t key[2], uint64_t t, int times)
{
    for (int i = 0; i < times; i++)
        assert_int_equal(replay_contest_add(contest, key, t, 1), 0);
}

/* A burst at the end of one window and spam from the start of the next: the adversary of every
 * limiter that remembers less than a log. */
TEST("the adversary of windows gets twice the limit from all but strict and log")
{
    struct replay_contest *contest = open_contest(&(struct weir_limit_spec){
        .algorithm = WEIR_FIXED_WINDOW, .rate = 100, .window_ns = MINUTE});
    uint64_t start = 1000 * MINUTE;
    feed(contest, alice, start + MINUTE - 1, 100);
    for (uint64_t t = start + MINUTE; t < start + 2 * MINUTE - 1; t += SECOND / 20)
        feed(contest, alice, t, 1);
    assert_int_equal(result(contest, "sliding_log (exact)")->worst, 100);
    assert_int_equal(result(contest, "fixed_window")->worst, 200);
    assert_int_equal(result(contest, "sliding_window")->worst, 200);
    assert_int_equal(result(contest, "sliding_window, 10 segments")->worst, 200);
    assert_int_equal(result(contest, "token_bucket, gcra, leaky_bucket")->worst, 199);
    assert_int_equal(result(contest, "sliding_window, 60 segments, strict")->worst, 100);
    assert_true(result(contest, "fixed_window")->configured);
    assert_false(result(contest, "sliding_window")->configured);
    replay_contest_close(contest);
}

TEST("wrong verdicts are counted against the exact log")
{
    struct replay_contest *contest = open_contest(&(struct weir_limit_spec){
        .algorithm = WEIR_SLIDING_LOG, .rate = 10, .window_ns = 10 * SECOND});
    feed(contest, alice, 9 * SECOND, 10);  /* all allow */
    feed(contest, alice, 10 * SECOND, 4);  /* the log denies; a new fixed window allows */
    feed(contest, alice, 19 * SECOND, 10); /* the log allows; the fixed window has 6 left */
    const struct replay_contender *exact = result(contest, "sliding_log (exact)");
    assert_int_equal(exact->allowed, 20);
    assert_int_equal(exact->denied, 4);
    assert_true(exact->configured);
    const struct replay_contender *fixed = result(contest, "fixed_window");
    assert_int_equal(fixed->wrong_allows, 4);
    assert_int_equal(fixed->wrong_denials, 4);
    assert_int_equal(fixed->allowed, 20);
    assert_int_equal(fixed->worst, 14);
    replay_contest_close(contest);
}

TEST("keys do not share their limit")
{
    struct replay_contest *contest = open_contest(
        &(struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 2, .window_ns = MINUTE});
    for (uint64_t key = 0; key < 1000; key++)
        feed(contest, (const uint64_t[2]){key % 7, key}, 5 * MINUTE, 3);
    assert_int_equal(replay_contest_keys(contest), 1000);
    assert_int_equal(result(contest, "sliding_log (exact)")->allowed, 2000);
    assert_int_equal(result(contest, "token_bucket, gcra, leaky_bucket")->allowed, 2000);
    assert_true(result(contest, "token_bucket, gcra, leaky_bucket")->configured);
    assert_int_equal(result(contest, "leaky_bucket, queue")->allowed, 3000);
    assert_int_equal(result(contest, "leaky_bucket, queue")->worst, 3 - 1);
    replay_contest_close(contest);
}

TEST("a limit that is none of the usual ones competes too")
{
    struct replay_contest *contest = open_contest(&(struct weir_limit_spec){
        .algorithm = WEIR_TOKEN_BUCKET, .rate = 10, .window_ns = MINUTE, .burst = 3});
    feed(contest, alice, MINUTE, 10);
    assert_true(result(contest, "token_bucket, burst 3")->configured);
    assert_int_equal(result(contest, "token_bucket, burst 3")->wrong_denials, 7);
    assert_int_equal(result(contest, "token_bucket, gcra, leaky_bucket")->wrong_denials, 0);
    replay_contest_close(contest);
}

TEST("a window that 60 does not divide gets fewer segments")
{
    struct replay_contest *contest = open_contest(&(struct weir_limit_spec){
        .algorithm = WEIR_FIXED_WINDOW, .rate = 10, .window_ns = 1000000});
    feed(contest, alice, MINUTE, 11);
    assert_int_equal(result(contest, "sliding_window, 50 segments")->denied, 1);
    replay_contest_close(contest);
}

TEST("a rate beyond the windows range is left to the buckets")
{
    struct replay_contest *contest = open_contest(&(struct weir_limit_spec){
        .algorithm = WEIR_TOKEN_BUCKET, .rate = UINT64_C(1) << 40, .window_ns = MINUTE});
    const struct replay_contender *contenders;
    assert_int_equal(replay_contest_add(contest, alice, MINUTE, UINT64_C(1) << 40), 0);
    assert_int_equal(replay_contest_results(contest, &contenders), 3);
    assert_int_equal(contenders[0].allowed, 1);
    assert_int_equal(contenders[1].allowed, 1);
    replay_contest_close(contest);
}

TEST("running out of memory is reported at each allocation")
{
    struct weir_limit limit;
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_SLIDING_WINDOW, .rate = 10, .window_ns = MINUTE};
    assert_int_equal(weir_limit_init(&limit, &spec, NULL), 0);
    int refusals = 0;
    for (long successes = 0;; successes++) {
        failing_memory_after(successes);
        struct replay_contest *contest = replay_contest_open(&limit);
        int error = contest == NULL ? WEIR_ERR_MEMORY : 0;
        for (uint64_t key = 0; key < 200 && error == 0; key++)
            error = replay_contest_add(contest, (const uint64_t[2]){key, 0}, MINUTE, 1);
        replay_contest_close(contest);
        if (!failing_memory_stop())
            break;
        assert_int_equal(error, WEIR_ERR_MEMORY);
        refusals++;
    }
    assert_true(refusals > 200);
}

RUN_TESTS()
