/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: a client that has one passes, and every way in which one does not hold. */
#include "challenge_test.h"
#include "test.h"

#include "feature/challenge/token.h"

#define LIFE_S 3600

static struct weir_challenge_keys keys;
static char text[WEIR_CHALLENGE_TOKEN_SIZE];

static int open_token(void **state)
{
    struct weir_address client = address_of("192.0.2.1");
    (void)state;
    read_keys(&keys, KEY_A);
    weir_challenge_token_make(&keys, &client, 18, NOW_S + LIFE_S, text);
    return 0;
}

static enum weir_challenge_verdict check_bytes(struct weir_bytes token, const char *client,
                                               uint64_t now_s)
{
    struct weir_address address = address_of(client);
    uint8_t difficulty;
    return weir_challenge_token_check(&keys, &address, now_s, LIFE_S, token, &difficulty);
}

static enum weir_challenge_verdict check(const char *client, uint64_t now_s)
{
    return check_bytes((struct weir_bytes){text, sizeof text}, client, now_s);
}

TEST_WITH(open_token, NULL, "a token holds until it expires")
{
    struct weir_address client = address_of("192.0.2.1");
    uint8_t difficulty = 0;
    assert_int_equal(weir_challenge_token_check(&keys, &client, NOW_S, LIFE_S,
                                                (struct weir_bytes){text, sizeof text},
                                                &difficulty),
                     WEIR_CHALLENGE_GOOD);
    assert_int_equal(difficulty, 18);
    assert_int_equal(check("192.0.2.1", NOW_S + LIFE_S - 1), WEIR_CHALLENGE_GOOD);
    assert_int_equal(check("192.0.2.1", NOW_S + LIFE_S), WEIR_CHALLENGE_EXPIRED);
    assert_int_equal(check("192.0.2.1", UINT64_MAX), WEIR_CHALLENGE_EXPIRED);
}

TEST_WITH(open_token, NULL, "a token that lives longer than a life is expired")
{
    assert_int_equal(check("192.0.2.1", NOW_S - WEIR_CHALLENGE_SKEW_S), WEIR_CHALLENGE_GOOD);
    assert_int_equal(check("192.0.2.1", NOW_S - WEIR_CHALLENGE_SKEW_S - 1), WEIR_CHALLENGE_EXPIRED);
}

TEST_WITH(open_token, NULL, "a token holds for its network only")
{
    struct weir_address client = address_of("2001:db8:1:2::1");
    assert_int_equal(check("192.0.2.2", NOW_S), WEIR_CHALLENGE_FORGED);
    assert_int_equal(check("c000:201::", NOW_S), WEIR_CHALLENGE_FORGED);
    weir_challenge_token_make(&keys, &client, 18, NOW_S + LIFE_S, text);
    assert_int_equal(check("2001:db8:1:2:ffff:ffff:ffff:ffff", NOW_S), WEIR_CHALLENGE_GOOD);
    assert_int_equal(check("2001:db8:1:3::1", NOW_S), WEIR_CHALLENGE_FORGED);
}

TEST_WITH(open_token, NULL, "every flipped bit is found")
{
    for (size_t i = 0; i < sizeof text; i++) {
        for (int bit = 0; bit < 8; bit++) {
            text[i] = (char)(text[i] ^ 1 << bit);
            assert_int_not_equal(check("192.0.2.1", NOW_S), WEIR_CHALLENGE_GOOD);
            text[i] = (char)(text[i] ^ 1 << bit);
        }
    }
    assert_int_equal(check("192.0.2.1", NOW_S), WEIR_CHALLENGE_GOOD);
}

TEST_WITH(open_token, NULL, "every flipped bit of the bytes is found")
{
    unsigned char bytes[WEIR_CHALLENGE_TOKEN_BYTES];
    assert_int_equal(weir_base64url_read((struct weir_bytes){text, sizeof text}, bytes),
                     sizeof bytes);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        (void)weir_base64url_write(bytes, sizeof bytes, text);
        enum weir_challenge_verdict wanted = bit < 8    ? WEIR_CHALLENGE_MALFORMED
                                             : bit < 56 ? WEIR_CHALLENGE_UNKNOWN_KEY
                                                        : WEIR_CHALLENGE_FORGED;
        assert_int_equal(check("192.0.2.1", NOW_S), wanted);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}

TEST_WITH(open_token, NULL, "a text of another length is malformed")
{
    char longer[sizeof text + 1];
    memcpy(longer, text, sizeof text);
    longer[sizeof text] = 'A';
    for (size_t size = 0; size < sizeof text; size++)
        assert_int_equal(check_bytes((struct weir_bytes){text, size}, "192.0.2.1", NOW_S),
                         WEIR_CHALLENGE_MALFORMED);
    assert_int_equal(check_bytes((struct weir_bytes){longer, sizeof longer}, "192.0.2.1", NOW_S),
                     WEIR_CHALLENGE_MALFORMED);
}

TEST_WITH(open_token, NULL, "keys are rotated without losing tokens")
{
    struct weir_address client = address_of("192.0.2.1");
    read_keys(&keys, KEY_B "\n" KEY_A);
    assert_int_equal(check("192.0.2.1", NOW_S), WEIR_CHALLENGE_GOOD);
    weir_challenge_token_make(&keys, &client, 18, NOW_S + LIFE_S, text);
    read_keys(&keys, KEY_B);
    assert_int_equal(check("192.0.2.1", NOW_S), WEIR_CHALLENGE_GOOD);
    read_keys(&keys, KEY_A);
    assert_int_equal(check("192.0.2.1", NOW_S), WEIR_CHALLENGE_UNKNOWN_KEY);
}

RUN_TESTS()
