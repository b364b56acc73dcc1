/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: a client that has one passes, and every way in which one does not hold. */
#include "challenge_test.h"

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

static void a_token_holds_until_it_expires(void **state)
{
    struct weir_address client = address_of("192.0.2.1");
    uint8_t difficulty = 0;
    (void)state;
    assert_int_equal(weir_challenge_token_check(&keys, &client, NOW_S, LIFE_S,
                                                (struct weir_bytes){text, sizeof text},
                                                &difficulty),
                     WEIR_CHALLENGE_GOOD);
    assert_int_equal(difficulty, 18);
    assert_int_equal(check("192.0.2.1", NOW_S + LIFE_S - 1), WEIR_CHALLENGE_GOOD);
    assert_int_equal(check("192.0.2.1", NOW_S + LIFE_S), WEIR_CHALLENGE_EXPIRED);
    assert_int_equal(check("192.0.2.1", UINT64_MAX), WEIR_CHALLENGE_EXPIRED);
}

static void a_token_that_lives_longer_than_a_life_is_expired(void **state)
{
    (void)state;
    assert_int_equal(check("192.0.2.1", NOW_S - WEIR_CHALLENGE_SKEW_S), WEIR_CHALLENGE_GOOD);
    assert_int_equal(check("192.0.2.1", NOW_S - WEIR_CHALLENGE_SKEW_S - 1), WEIR_CHALLENGE_EXPIRED);
}

static void a_token_holds_for_its_network_only(void **state)
{
    struct weir_address client = address_of("2001:db8:1:2::1");
    (void)state;
    assert_int_equal(check("192.0.2.2", NOW_S), WEIR_CHALLENGE_FORGED);
    assert_int_equal(check("c000:201::", NOW_S), WEIR_CHALLENGE_FORGED);
    weir_challenge_token_make(&keys, &client, 18, NOW_S + LIFE_S, text);
    assert_int_equal(check("2001:db8:1:2:ffff:ffff:ffff:ffff", NOW_S), WEIR_CHALLENGE_GOOD);
    assert_int_equal(check("2001:db8:1:3::1", NOW_S), WEIR_CHALLENGE_FORGED);
}

static void every_flipped_bit_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof text; i++) {
        for (int bit = 0; bit < 8; bit++) {
            text[i] = (char)(text[i] ^ 1 << bit);
            assert_int_not_equal(check("192.0.2.1", NOW_S), WEIR_CHALLENGE_GOOD);
            text[i] = (char)(text[i] ^ 1 << bit);
        }
    }
    assert_int_equal(check("192.0.2.1", NOW_S), WEIR_CHALLENGE_GOOD);
}

static void every_flipped_bit_of_the_bytes_is_found(void **state)
{
    unsigned char bytes[WEIR_CHALLENGE_TOKEN_BYTES];
    (void)state;
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

static void a_text_of_another_length_is_malformed(void **state)
{
    char longer[sizeof text + 1];
    (void)state;
    memcpy(longer, text, sizeof text);
    longer[sizeof text] = 'A';
    for (size_t size = 0; size < sizeof text; size++)
        assert_int_equal(check_bytes((struct weir_bytes){text, size}, "192.0.2.1", NOW_S),
                         WEIR_CHALLENGE_MALFORMED);
    assert_int_equal(check_bytes((struct weir_bytes){longer, sizeof longer}, "192.0.2.1", NOW_S),
                     WEIR_CHALLENGE_MALFORMED);
}

static void keys_are_rotated_without_losing_tokens(void **state)
{
    struct weir_address client = address_of("192.0.2.1");
    (void)state;
    read_keys(&keys, KEY_B "\n" KEY_A);
    assert_int_equal(check("192.0.2.1", NOW_S), WEIR_CHALLENGE_GOOD);
    weir_challenge_token_make(&keys, &client, 18, NOW_S + LIFE_S, text);
    read_keys(&keys, KEY_B);
    assert_int_equal(check("192.0.2.1", NOW_S), WEIR_CHALLENGE_GOOD);
    read_keys(&keys, KEY_A);
    assert_int_equal(check("192.0.2.1", NOW_S), WEIR_CHALLENGE_UNKNOWN_KEY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_token_holds_until_it_expires, open_token),
        cmocka_unit_test_setup(a_token_that_lives_longer_than_a_life_is_expired, open_token),
        cmocka_unit_test_setup(a_token_holds_for_its_network_only, open_token),
        cmocka_unit_test_setup(every_flipped_bit_is_found, open_token),
        cmocka_unit_test_setup(every_flipped_bit_of_the_bytes_is_found, open_token),
        cmocka_unit_test_setup(a_text_of_another_length_is_malformed, open_token),
        cmocka_unit_test_setup(keys_are_rotated_without_losing_tokens, open_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
