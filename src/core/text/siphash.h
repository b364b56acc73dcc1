/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-1-3 with a 128-bit result: the keyed hash that names a key in the table.
 *
 * Source: Aumasson, Bernstein, "SipHash: a fast short-input PRF" (2012); the 128-bit output and its
 * constants (v1 ^= 0xee, v2 ^= 0xee, v1 ^= 0xdd) as in the authors' reference code. One round for a
 * word and three at the end is the variant that Rust and Ruby use for hash tables.
 * The secret belongs to a region; who doesn't know it cannot aim keys at one bucket.
 */
#ifndef WEIR_CORE_TEXT_SIPHASH_H
#define WEIR_CORE_TEXT_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

void weir_siphash128(const uint64_t secret[2], const void *data, size_t size, uint64_t hash[2]);

#define SIPHASH_INLINE static inline __attribute__((always_inline))

struct siphash {
    uint64_t v0, v1, v2, v3;
};

SIPHASH_INLINE uint64_t siphash_rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

SIPHASH_INLINE void siphash_round(struct siphash *s)
{
    s->v0 += s->v1;
    s->v1 = siphash_rotate(s->v1, 13) ^ s->v0;
    s->v0 = siphash_rotate(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = siphash_rotate(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = siphash_rotate(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = siphash_rotate(s->v1, 17) ^ s->v2;
    s->v2 = siphash_rotate(s->v2, 32);
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SIPHASH_LITTLE_ENDIAN 1
#endif

SIPHASH_INLINE uint64_t siphash_load(const uint8_t *bytes)
{
    uint64_t word = 0;

#ifdef SIPHASH_LITTLE_ENDIAN
    __builtin_memcpy(&word, bytes, 8);
#else
    for (int i = 0; i < 8; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
#endif
    return word;
}

/* The last left < 8 bytes of size. Where there are 8 before the end, they are one load, shifted. */
SIPHASH_INLINE uint64_t siphash_load_tail(const uint8_t *bytes, size_t left, size_t size)
{
    uint64_t word = 0;

    if (size >= 8)
        return left == 0 ? 0 : siphash_load(bytes + left - 8) >> (64 - 8 * left);
    for (size_t i = 0; i < left; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

/* --- In steps: begin, absorb each whole word and then the last one, finish. For BPF, and for data
 * whose words are at hand. */
SIPHASH_INLINE struct siphash siphash_begin(const uint64_t secret[2])
{
    return (struct siphash){
        /* "somepseudorandomlygeneratedbytes" */
        secret[0] ^ UINT64_C(0x736f6d6570736575),
        secret[1] ^ UINT64_C(0x646f72616e646f6d) ^ 0xee,
        secret[0] ^ UINT64_C(0x6c7967656e657261),
        secret[1] ^ UINT64_C(0x7465646279746573),
    };
}

SIPHASH_INLINE void siphash_absorb(struct siphash *s, uint64_t word)
{
    s->v3 ^= word;
    siphash_round(s);
    s->v0 ^= word;
}

/* The last word: the bytes behind the whole words, and the size of all. */
SIPHASH_INLINE uint64_t siphash_last(uint64_t tail, size_t size)
{
    return (uint64_t)size << 56 | tail;
}

/* The first half of the result. */
SIPHASH_INLINE uint64_t siphash_finish(struct siphash *s)
{
    s->v2 ^= 0xee;
    for (int i = 0; i < 3; i++)
        siphash_round(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* The same as weir_siphash128, inlined: for BPF, which passes no pointers to functions that the
 * verifier checks on their own, and for data of constant size. */
SIPHASH_INLINE void siphash128(const uint64_t secret[2], const void *data, size_t size,
                               uint64_t hash[2])
{
    const uint8_t *bytes = data;
    struct siphash s = siphash_begin(secret);
    size_t left = size;

    for (; left >= 8; left -= 8, bytes += 8)
        siphash_absorb(&s, siphash_load(bytes));
    siphash_absorb(&s, siphash_last(siphash_load_tail(bytes, left, size), size));
    hash[0] = siphash_finish(&s);
    s.v1 ^= 0xdd;
    for (int i = 0; i < 3; i++)
        siphash_round(&s);
    hash[1] = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

#endif
