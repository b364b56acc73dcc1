/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic wider than 64 bits: as much as exact limits need.
 *
 * A product of a counter (32 bits) and a window (55 bits), or of a depth (62 bits) and a
 * denominator (40 bits), does not fit 64 bits. Here are the few 128-bit operations for it, unsigned
 * and without any compiler support routine (__udivti3, __multi3), so that they link into wasm32 and
 * BPF: the division is Knuth's algorithm D (TAOCP 2, 4.3.1) with two 32-bit digits, as in Hacker's
 * Delight, 2nd edition, figure 9-5 (divlu).
 *
 * Where a 64-bit machine multiplies into 128 bits in one instruction, the compiler's __int128 is
 * used for the product alone. Define WEIR_WIDE_PORTABLE to test the other path there.
 */
#ifndef WEIR_CORE_WIDE_H
#define WEIR_CORE_WIDE_H

#include <stdbool.h>
#include <stdint.h>

/* BPF returns no structs, so what returns one must be inlined. */
#define WIDE_INLINE static inline __attribute__((always_inline))

struct wide {
    uint64_t hi, lo;
};

#if !defined(WEIR_WIDE_PORTABLE) && (defined(__x86_64__) || defined(__aarch64__))
#define WIDE_NATIVE_PRODUCT 1
__extension__ typedef unsigned __int128 wide_native;
#endif

WIDE_INLINE struct wide wide_multiply(uint64_t a, uint64_t b)
{
#ifdef WIDE_NATIVE_PRODUCT
    wide_native product = (wide_native)a * b;

    return (struct wide){(uint64_t)(product >> 64), (uint64_t)product};
#else
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t low = a0 * b0;
    uint64_t mid = a1 * b0 + (low >> 32); /* at most (2^32-1)^2 + 2^32-1: no carry */
    uint64_t mid2 = a0 * b1 + (uint32_t)mid;

    return (struct wide){a1 * b1 + (mid >> 32) + (mid2 >> 32), (mid2 << 32) | (uint32_t)low};
#endif
}

WIDE_INLINE struct wide wide_add(struct wide a, uint64_t b)
{
    uint64_t lo = a.lo + b;

    return (struct wide){a.hi + (lo < b), lo};
}

WIDE_INLINE bool wide_less(struct wide a, struct wide b)
{
    return a.hi != b.hi ? a.hi < b.hi : a.lo < b.lo;
}

/* Leading zero bits of x > 0. clang 14 crashes on __builtin_clzll for BPF. */
WIDE_INLINE int wide_leading_zeros(uint64_t x)
{
#ifdef WIDE_NATIVE_PRODUCT
    return __builtin_clzll(x);
#else
    int zeros = 0;

    for (int half = 32; half > 0; half /= 2) {
        if (x >> (64 - half) == 0) {
            x <<= half;
            zeros += half;
        }
    }
    return zeros;
#endif
}

/* One step of the schoolbook division: a digit of (remainder:next) / divisor. The divisor's top bit
 * is set, remainder < divisor, next < 2^32. The estimate is at most 2 too large, so two rounds are
 * enough; the kernel's verifier accepts only a loop whose bound it sees. */
WIDE_INLINE uint64_t wide_digit(uint64_t *remainder, uint64_t next, uint64_t divisor)
{
    uint64_t d1 = divisor >> 32, d0 = (uint32_t)divisor;
    uint64_t digit = *remainder / d1, rest = *remainder - digit * d1;

    for (int round = 0; round < 2; round++) {
        if (digit >> 32 == 0 && digit * d0 <= ((rest << 32) | next))
            break;
        digit--;
        rest += d1;
        if (rest >> 32 != 0)
            break;
    }
    *remainder = ((*remainder << 32) | next) - digit * divisor; /* the true value fits 64 bits */
    return digit;
}

/* (hi:lo) / divisor, the rest to *remainder. Needs hi < divisor, so that the quotient fits. */
WIDE_INLINE uint64_t wide_divide(uint64_t hi, uint64_t lo, uint64_t divisor, uint64_t *remainder)
{
    if (hi == 0) {
        uint64_t quotient = lo / divisor;

        *remainder = lo - quotient * divisor;
        return quotient;
    }
    int shift = wide_leading_zeros(divisor);

    if (shift > 0) {
        divisor <<= shift;
        hi = (hi << shift) | (lo >> (64 - shift));
        lo <<= shift;
    }
    uint64_t high = wide_digit(&hi, lo >> 32, divisor);
    uint64_t low = wide_digit(&hi, (uint32_t)lo, divisor);

    *remainder = hi >> shift;
    return (high << 32) + low;
}

#endif
