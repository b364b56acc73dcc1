/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong passwords by address: the pace of the answers, for any client; beside a slow
 * model; and bounded memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "draw.h"
#include "server/net/guesses.h"
#include "test.h"

#define START UINT64_C(1000000)

static struct weir_guesses *guesses;

static int open_guesses(void **state)
{
    static const uint64_t secret[2] = {1, 2};
    (void)state;
    return weir_guesses_open(&guesses, secret);
}

static int close_guesses(void **state)
{
    (void)state;
    weir_guesses_close(guesses);
    return 0;
}

static struct weir_address address(uint32_t number)
{
    struct weir_address made = {.family = 4};
    memcpy(made.bytes, &number, 4);
    return made;
}

static struct weir_guess guess_from(const struct weir_address *peer, uint64_t now_ms, bool right)
{
    struct weir_guess guess;
    weir_guesses_take(guesses, peer, now_ms, right, &guess);
    return guess;
}

static struct weir_guess guess(uint32_t peer, uint64_t now_ms, bool right)
{
    const struct weir_address from = address(peer);
    return guess_from(&from, now_ms, right);
}

TEST_WITH(open_guesses, close_guesses, "a few wrong ones are answered at once then one a second")
{
    uint32_t looked_at = 0;
    for (int i = 0; i <= WEIR_GUESSES_FREE; i++)
        assert_int_equal(guess(1, START, false).wait_ms, 0);
    for (uint32_t i = 1; i < WEIR_GUESS_WAIT_MS / WEIR_GUESS_MS; i++)
        assert_int_equal(guess(1, START, false).wait_ms, i * WEIR_GUESS_MS);
    assert_true(guess(1, START, false).refused);
    for (uint64_t ms = 0; ms < 60000; ms++) /* a thousand a second, for a minute */
        looked_at += !guess(1, START + ms, false).refused;
    assert_int_equal(looked_at, 60000 / WEIR_GUESS_MS);
    assert_int_equal(guess(1, START + 120000, false).wait_ms, 0);
}

TEST_WITH(open_guesses, close_guesses, "a right one waits as long as a wrong one and costs nothing")
{
    for (int i = 0; i < 1000; i++)
        assert_int_equal(guess(1, START, true).wait_ms, 0);
    for (int i = 0; i < 1000; i++) {
        struct weir_guess right = guess(1, START, true);
        struct weir_guess wrong = guess(1, START, false);
        assert_int_equal(right.wait_ms, wrong.wait_ms);
        assert_int_equal(right.refused, wrong.refused);
    }
    assert_true(guess(1, START, true).refused);
    assert_false(guess(1, START + 1, true).refused);
    assert_int_equal(guess(1, START + 1, true).wait_ms, WEIR_GUESS_WAIT_MS - 1);
}

TEST_WITH(open_guesses, close_guesses, "others do not wait")
{
    struct weir_address one = {.family = 6, .bytes = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 1}};
    struct weir_address neighbour = one, other = one;
    const struct weir_address local = {0};
    neighbour.bytes[15] = 9; /* of the same /64 */
    other.bytes[7] = 2;
    for (int i = 0; i < 100; i++)
        (void)guess_from(&one, START, false);
    assert_true(guess_from(&one, START, true).refused);
    assert_true(guess_from(&neighbour, START, true).refused);
    assert_int_equal(guess_from(&other, START, true).wait_ms, 0);
    assert_int_equal(guess_from(&local, START, true).wait_ms, 0);
    assert_int_equal(guess(1, START, true).wait_ms, 0);
}

TEST_WITH(open_guesses, close_guesses, "the log tells the first and then once a minute")
{
    assert_int_equal(guess(1, START, false).reported, 1);
    for (uint64_t i = 1; i < 30; i++)
        assert_int_equal(guess(1, START + i * 2000, false).reported, 0);
    assert_int_equal(guess(1, START + WEIR_LOG_AGAIN_MS + 1, false).reported, 30);
    assert_int_equal(guess(2, START, false).reported, 1);
    assert_int_equal(guess(1, START + 70000, true).reported, 0);
}

/* However many addresses guess: those in debt most are remembered. */
TEST_WITH(open_guesses, close_guesses, "a flood of addresses does not forgive the worst")
{
    for (int i = 0; i < 100; i++)
        (void)guess(1, START, false);
    for (uint32_t i = 2; i < 100 * WEIR_GUESSERS; i++)
        (void)guess(i, START, false);
    assert_true(guess(1, START, false).refused);
}

TEST_WITH(open_guesses, close_guesses, "random guesses are answered as by a slow model")
{
    enum { PEERS = 5 };
    uint64_t random = 88172645463325252, now_ms = START, until_ms[PEERS] = {0};
    uint32_t refused = 0, waited = 0;
    for (int step = 0; step < 200000; step++) {
        (void)draw_next(&random);
        now_ms += random % 3 ? 0 : (random >> 8) % 500;
        uint32_t peer = (uint32_t)(random >> 40) % PEERS;
        bool right = (random >> 50) % 4 == 0;
        uint64_t debt_ms = until_ms[peer] > now_ms ? until_ms[peer] - now_ms : 0;
        uint64_t free_ms = WEIR_GUESSES_FREE * WEIR_GUESS_MS;
        uint64_t wait_ms = debt_ms > free_ms ? debt_ms - free_ms : 0;
        struct weir_guess got = guess(peer, now_ms, right);
        assert_int_equal(got.refused, wait_ms >= WEIR_GUESS_WAIT_MS);
        refused += got.refused;
        if (got.refused)
            continue;
        assert_int_equal(got.wait_ms, wait_ms);
        waited += wait_ms > 0;
        if (!right)
            until_ms[peer] = now_ms + debt_ms + WEIR_GUESS_MS;
    }
    assert_true(refused > 1000 && waited > 1000);
}

/* --- On several threads ----------------------------------------------------------------------- */

enum { THREADS = 4, GUESSES = 20000 };

static void *guess_often(void *context)
{
    uint32_t *looked_at = context;
    for (uint32_t i = 0; i < GUESSES; i++) {
        *looked_at += !guess(1, START, false).refused;
        (void)guess(i % 64 + 2, START, i % 2);
    }
    return NULL;
}

TEST_WITH(open_guesses, close_guesses, "an address has one count on all threads")
{
    pthread_t threads[THREADS];
    uint32_t looked_at[THREADS] = {0}, sum = 0;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, guess_often, &looked_at[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += looked_at[i];
    }
    assert_int_equal(sum, WEIR_GUESSES_FREE + WEIR_GUESS_WAIT_MS / WEIR_GUESS_MS);
}

RUN_TESTS()
