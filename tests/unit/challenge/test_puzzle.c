/* SPDX-License-Identifier: Apache-2.0 */
/* Puzzles: what solves one, and what is refused before a hash is computed. */
#include "challenge_test.h"
#include "test.h"

#include <stdio.h>

#include "core/bytes.h"
#include "feature/challenge/puzzle.h"

#define DIFFICULTY 6

static struct weir_challenge_keys keys;
static char puzzle[WEIR_CHALLENGE_PUZZLE_SIZE];
static char solution[WEIR_CHALLENGE_SOLUTION_MAX + 2];
static struct weir_challenge_solved solved;

static enum weir_challenge_verdict check_at(const char *client, uint64_t now_s)
{
    struct weir_address address = address_of(client);
    return weir_challenge_puzzle_check(&keys, &address, now_s,
                                       (struct weir_bytes){puzzle, sizeof puzzle},
                                       weir_bytes_of(solution), &solved);
}

static enum weir_challenge_verdict check(void)
{
    return check_at("192.0.2.1", NOW_S);
}

/* The first number that is a solution, or is none. */
static void find(bool right)
{
    for (unsigned i = 0;; i++) {
        sprintf(solution, "%u", i);
        if ((check() == WEIR_CHALLENGE_GOOD) == right)
            return;
    }
}

static int open_puzzle(void **state)
{
    struct weir_address client = address_of("192.0.2.1");
    (void)state;
    read_keys(&keys, KEY_A);
    weir_challenge_puzzle_make(&keys, &client, DIFFICULTY, NOW_S,
                               (const unsigned char *)"a nonce 15 byte", puzzle);
    find(true);
    return 0;
}

TEST_WITH(open_puzzle, NULL, "a solution is taken with its nonce and difficulty")
{
    memset(&solved, 0, sizeof solved);
    assert_int_equal(check(), WEIR_CHALLENGE_GOOD);
    assert_int_equal(solved.difficulty, DIFFICULTY);
    assert_memory_equal(solved.nonce, "a nonce 15 byte", WEIR_CHALLENGE_NONCE);
    find(false);
    assert_int_equal(check(), WEIR_CHALLENGE_UNSOLVED);
}

/* Counts hashes with that many zero bits: about one of 2^difficulty is. */
TEST_WITH(open_puzzle, NULL, "a solution takes two to the difficulty hashes")
{
    int found = 0;
    for (int i = 0; i < 64000; i++) {
        sprintf(solution, "%d", i);
        found += check() == WEIR_CHALLENGE_GOOD;
    }
    assert_in_range(found, 850, 1150); /* 1000, with a standard deviation of 31 */
}

TEST_WITH(open_puzzle, NULL, "a solution is a number in one form")
{
    static const char *const wrong[] = {
        "", "01", "00", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x1", "12345678901234567", "a"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        strcpy(solution, wrong[i]);
        assert_int_equal(check(), WEIR_CHALLENGE_MALFORMED);
    }
    strcpy(solution, "1234567890123456");
    assert_int_not_equal(check(), WEIR_CHALLENGE_MALFORMED);
}

TEST_WITH(open_puzzle, NULL, "a puzzle expires")
{
    assert_int_equal(check_at("192.0.2.1", NOW_S + WEIR_CHALLENGE_PUZZLE_LIFE_S - 1),
                     WEIR_CHALLENGE_GOOD);
    assert_int_equal(check_at("192.0.2.1", NOW_S + WEIR_CHALLENGE_PUZZLE_LIFE_S),
                     WEIR_CHALLENGE_EXPIRED);
    assert_int_equal(check_at("192.0.2.1", NOW_S - WEIR_CHALLENGE_SKEW_S), WEIR_CHALLENGE_GOOD);
    assert_int_equal(check_at("192.0.2.1", NOW_S - WEIR_CHALLENGE_SKEW_S - 1),
                     WEIR_CHALLENGE_EXPIRED);
    assert_int_equal(check_at("192.0.2.1", 0), WEIR_CHALLENGE_EXPIRED);
}

TEST_WITH(open_puzzle, NULL, "a puzzle of another network or key is refused")
{
    assert_int_equal(check_at("192.0.2.2", NOW_S), WEIR_CHALLENGE_FORGED);
    assert_int_equal(check_at("2001:db8::1", NOW_S), WEIR_CHALLENGE_FORGED);
    read_keys(&keys, KEY_B "\n" KEY_A);
    assert_int_equal(check(), WEIR_CHALLENGE_GOOD);
    read_keys(&keys, KEY_B);
    assert_int_equal(check(), WEIR_CHALLENGE_UNKNOWN_KEY);
}

TEST_WITH(open_puzzle, NULL, "every flipped bit is found")
{
    for (size_t i = 0; i < sizeof puzzle; i++) {
        for (int bit = 0; bit < 8; bit++) {
            puzzle[i] = (char)(puzzle[i] ^ 1 << bit);
            enum weir_challenge_verdict verdict = check();
            assert_true(verdict == WEIR_CHALLENGE_MALFORMED ||
                        verdict == WEIR_CHALLENGE_UNKNOWN_KEY || verdict == WEIR_CHALLENGE_FORGED);
            puzzle[i] = (char)(puzzle[i] ^ 1 << bit);
        }
    }
    assert_int_equal(check(), WEIR_CHALLENGE_GOOD);
}

TEST_WITH(open_puzzle, NULL, "a cut puzzle is malformed")
{
    struct weir_address client = address_of("192.0.2.1");
    for (size_t size = 0; size < sizeof puzzle; size++)
        assert_int_equal(weir_challenge_puzzle_check(&keys, &client, NOW_S,
                                                     (struct weir_bytes){puzzle, size},
                                                     weir_bytes_of(solution), &solved),
                         WEIR_CHALLENGE_MALFORMED);
}

/* A token is signed with the same key, and is no puzzle; nor the other way round. */
TEST_WITH(open_puzzle, NULL, "a signature of a token does not hold for a puzzle")
{
    struct weir_address client = address_of("192.0.2.1");
    unsigned char mac[WEIR_CHALLENGE_MAC];
    weir_challenge_sign(&keys.keys[0], WEIR_CHALLENGE_TOKEN, &client, (unsigned char *)"x", 1, mac);
    assert_false(weir_challenge_verify(&keys.keys[0], WEIR_CHALLENGE_PUZZLE, &client,
                                       (unsigned char *)"x", 1, mac));
    assert_true(weir_challenge_verify(&keys.keys[0], WEIR_CHALLENGE_TOKEN, &client,
                                      (unsigned char *)"x", 1, mac));
}

RUN_TESTS()
