/* SPDX-License-Identifier: Apache-2.0 */
/* Counting keys: exact, bounded, the most denied in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/replay/tally.h"
#include "core/bytes.h"
#include "failing_memory.h"
#include "test.h"

#include <weir/error.h>

static int add(struct replay_tally *tally, uint32_t rule, const char *key, bool allowed)
{
    uint64_t hash[2] = {0, 0}; /* few buckets on purpose: keys collide in hash[0] */
    for (const char *at = key; *at != '\0'; at++)
        hash[1] = hash[1] * 257 + (unsigned char)*at;
    hash[0] = hash[1] % 3;
    return replay_tally_add(tally, rule, hash, weir_bytes_of(key), allowed);
}

static bool is(const struct replay_key *key, const char *text, uint64_t denied, uint64_t requests)
{
    return key->text_size == strlen(text) && memcmp(key->text, text, key->text_size) == 0 &&
           key->denied == denied && key->requests == requests;
}

TEST("requests denials and keys are counted for each limit")
{
    struct replay_tally *tally = replay_tally_open(2, 100);
    assert_non_null(tally);
    assert_int_equal(add(tally, 0, "a", true), 0);
    assert_int_equal(add(tally, 0, "a", false), 0);
    assert_int_equal(add(tally, 0, "b", true), 0);
    assert_int_equal(add(tally, 1, "a", true), 0);
    struct replay_count first = replay_tally_count(tally, 0);
    assert_int_equal(first.requests, 3);
    assert_int_equal(first.denied, 1);
    assert_int_equal(first.keys, 2);
    assert_true(first.keys_complete);
    assert_int_equal(replay_tally_count(tally, 1).keys, 1);
    replay_tally_close(tally);
}

TEST("the most denied come first and ties in the order of their text")
{
    struct replay_tally *tally = replay_tally_open(1, 100);
    assert_non_null(tally);
    const struct replay_key *top[3];
    assert_int_equal(replay_tally_top(tally, 0, top, 3), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(add(tally, 0, "worst", false), 0);
    for (const char *const *key = (const char *const[]){"d", "bb", "b", "c", NULL}; *key; key++) {
        assert_int_equal(add(tally, 0, *key, true), 0);
        assert_int_equal(add(tally, 0, *key, false), 0);
    }
    assert_int_equal(add(tally, 0, "good", true), 0);
    assert_int_equal(replay_tally_top(tally, 0, top, 3), 3);
    assert_true(is(top[0], "worst", 3, 3));
    assert_true(is(top[1], "b", 1, 2));
    assert_true(is(top[2], "bb", 1, 2));
    assert_int_equal(replay_tally_top(tally, 0, top, 0), 0);
    replay_tally_close(tally);
}

TEST("ten thousand keys are counted exactly")
{
    struct replay_tally *tally = replay_tally_open(1, 10000);
    assert_non_null(tally);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 10000; i++) {
            char key[16];
            snprintf(key, sizeof key, "k%d", i);
            assert_int_equal(add(tally, 0, key, i % 2 == 0), 0);
        }
    }
    struct replay_count count = replay_tally_count(tally, 0);
    assert_int_equal(count.keys, 10000);
    assert_int_equal(count.denied, 10000);
    assert_true(count.keys_complete);
    assert_int_equal(add(tally, 0, "one more", false), 0);
    count = replay_tally_count(tally, 0);
    assert_int_equal(count.keys, 10000); /* the bound holds, and is reported */
    assert_int_equal(count.denied, 10001);
    assert_false(count.keys_complete);
    replay_tally_close(tally);
}

TEST("running out of memory is reported at each allocation")
{
    int refusals = 0;
    for (long successes = 0;; successes++) {
        failing_memory_after(successes);
        struct replay_tally *tally = replay_tally_open(1, 10000);
        int error = tally == NULL ? WEIR_ERR_MEMORY : 0;
        for (int i = 0; i < 1000 && error == 0; i++) {
            char key[16];
            snprintf(key, sizeof key, "k%d", i);
            error = add(tally, 0, key, i > 5);
        }
        replay_tally_close(tally);
        if (!failing_memory_stop())
            break;
        assert_int_equal(error, WEIR_ERR_MEMORY);
        refusals++;
    }
    assert_int_equal(refusals, 3 + 1 + 6); /* opening, growing once, six texts */
}

RUN_TESTS()
