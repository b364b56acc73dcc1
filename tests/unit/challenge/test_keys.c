/* SPDX-License-Identifier: Apache-2.0 */
/* Secret files and signatures. */
#include "challenge_test.h"
#include "core/bytes.h"
#include "test.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

static int read_text(const char *text, uint32_t *line, char *why)
{
    struct weir_challenge_keys keys;
    struct weir_reason reason = {{0}};
    int err = weir_challenge_keys_read(&keys, weir_bytes_of(text), line, &reason);
    strcpy(why, reason.text);
    return err;
}

TEST("a file has one key a line with comments and white space")
{
    struct weir_challenge_keys keys, plain;
    read_keys(&keys, "# new\n\n  " KEY_A "\t\r\n#old\n" KEY_B);
    read_keys(&plain, KEY_A "\n");
    assert_int_equal(keys.count, 2);
    assert_memory_equal(keys.keys[0].id, plain.keys[0].id, WEIR_CHALLENGE_KEY_ID);
    assert_ptr_equal(weir_challenge_key_find(&keys, keys.keys[1].id), &keys.keys[1]);
    assert_null(weir_challenge_key_find(&plain, keys.keys[1].id));
}

TEST("a wrong file is refused with its line")
{
    uint32_t line;
    char why[sizeof(struct weir_reason)], text[WEIR_CHALLENGE_SECRET_MAX + 2];
    assert_int_equal(read_text("", &line, why), WEIR_ERR_SYNTAX);
    assert_int_equal(line, 0);
    assert_int_equal(read_text("# nothing\n\n", &line, why), WEIR_ERR_SYNTAX);
    assert_int_equal(line, 0);
    assert_int_equal(read_text(KEY_A "\n0123456789abcdef0123456789abcde\n", &line, why),
                     WEIR_ERR_SYNTAX);
    assert_int_equal(line, 2);
    assert_non_null(strstr(why, "31 bytes"));
    assert_int_equal(read_text(KEY_A "\n" KEY_B "\n\n" KEY_A "\n", &line, why), WEIR_ERR_SYNTAX);
    assert_int_equal(line, 4);
    memset(text, 'k', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(read_text(text, &line, why), WEIR_ERR_SYNTAX);
    text[sizeof text - 2] = '\0';
    assert_int_equal(read_text(text, &line, why), 0);
}

TEST("at most eight keys are read")
{
    char text[9 * 40] = "", why[sizeof(struct weir_reason)];
    uint32_t line;
    for (int i = 0; i < 8; i++)
        sprintf(text + strlen(text), "%032d\n", i);
    assert_int_equal(read_text(text, &line, why), 0);
    sprintf(text + strlen(text), "%032d\n", 8);
    assert_int_equal(read_text(text, &line, why), WEIR_ERR_SYNTAX);
    assert_int_equal(line, 9);
}

/* Against OpenSSL's HMAC, with a key of a block, a shorter and a longer one. */
TEST("the signature is hmac sha256")
{
    static const size_t sizes[] = {32, 64, 65, 512};
    const struct weir_address client = address_of("2001:db8:1:2:3::4");
    for (size_t i = 0; i < 4; i++) {
        char secret[513];
        unsigned char mac[32], right[32], message[2 + 16 + 3] = {WEIR_CHALLENGE_TOKEN, 6};
        unsigned int size = sizeof right;
        struct weir_challenge_keys keys;
        memset(secret, 'a' + (int)i, sizes[i]);
        secret[sizes[i]] = '\0';
        read_keys(&keys, secret);
        memcpy(message + 2, client.bytes, 8);
        memcpy(message + 18, "xyz", 3);
        HMAC(EVP_sha256(), secret, (int)sizes[i], message, sizeof message, right, &size);
        weir_challenge_sign(&keys.keys[0], WEIR_CHALLENGE_TOKEN, &client,
                            (const unsigned char *)"xyz", 3, mac);
        assert_memory_equal(mac, right, sizeof mac);
    }
}

RUN_TESTS()
