/* SPDX-License-Identifier: Apache-2.0 */
/* The hash beside a literal SipHash-c-d, which is itself checked against the authors' vectors for
 * SipHash-2-4 with 128 bits (vectors_sip128 of their reference code: key 00..0f, data 00, 01, ...).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/text/siphash.h"
#include "test.h"

static uint64_t rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static void rounds(uint64_t v[4], int count)
{
    while (count-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13);
        v[3] = rotate(v[3], 16);
        v[1] ^= v[0];
        v[3] ^= v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17);
        v[3] = rotate(v[3], 21);
        v[1] ^= v[2];
        v[3] ^= v[0];
        v[2] = rotate(v[2], 32);
    }
}

/* SipHash-c-d-128 as the paper words it: the message is padded with zeros and its length. */
static void literal_siphash(int c, int d, const uint64_t key[2], const uint8_t *data, size_t size,
                            uint64_t hash[2])
{
    uint8_t padded[128] = {0};
    size_t words = size / 8 + 1;
    uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                     key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};

    memcpy(padded, data, size);
    padded[words * 8 - 1] = (uint8_t)size;
    v[1] ^= 0xee;
    for (size_t i = 0; i < words; i++) {
        uint64_t m = 0;

        for (int b = 7; b >= 0; b--)
            m = m << 8 | padded[i * 8 + (size_t)b];
        v[3] ^= m;
        rounds(v, c);
        v[0] ^= m;
    }
    v[2] ^= 0xee;
    rounds(v, d);
    hash[0] = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd;
    rounds(v, d);
    hash[1] = v[0] ^ v[1] ^ v[2] ^ v[3];
}

static const uint64_t reference_key[2] = {UINT64_C(0x0706050403020100),
                                          UINT64_C(0x0f0e0d0c0b0a0908)};

TEST("the literal hash gives the authors vectors")
{
    /* Of 0 and 1 bytes: a3817f04ba25a8e66df67214c7550293, da87c1d86b99af44347659119b22fc45. */
    const uint8_t data[1] = {0};
    uint64_t hash[2];

    literal_siphash(2, 4, reference_key, data, 0, hash);
    assert_int_equal(hash[0], UINT64_C(0xe6a825ba047f81a3));
    assert_int_equal(hash[1], UINT64_C(0x930255c71472f66d));
    literal_siphash(2, 4, reference_key, data, 1, hash);
    assert_int_equal(hash[0], UINT64_C(0x44af996bd8c187da));
    assert_int_equal(hash[1], UINT64_C(0x45fc229b11597634));
}

TEST("every length hashes as the literal hash does")
{
    uint8_t data[100];
    uint64_t secret[2] = {UINT64_C(0x0123456789abcdef), UINT64_C(0xf0e1d2c3b4a59687)};

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 37 + 11);
    for (size_t size = 0; size < 64; size++) {
        for (size_t offset = 0; offset < 9; offset++) { /* not only aligned data */
            uint64_t hash[2], expected[2];

            weir_siphash128(secret, data + offset, size, hash);
            literal_siphash(1, 3, secret, data + offset, size, expected);
            assert_int_equal(hash[0], expected[0]);
            assert_int_equal(hash[1], expected[1]);
        }
        secret[size % 2] += size;
    }
}

TEST("the secret and each byte change both halves")
{
    char data[] = "twelve bytes";
    uint64_t hash[2], other[2], secret[2] = {1, 2};

    weir_siphash128(secret, data, 12, hash);
    for (size_t i = 0; i < 12; i++) {
        data[i] ^= 1;
        weir_siphash128(secret, data, 12, other);
        data[i] ^= 1;
        assert_int_not_equal(hash[0], other[0]);
        assert_int_not_equal(hash[1], other[1]);
    }
    secret[1] ^= 1;
    weir_siphash128(secret, data, 12, other);
    assert_int_not_equal(hash[0], other[0]);
    assert_int_not_equal(hash[1], other[1]);
}

RUN_TESTS()
