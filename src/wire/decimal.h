/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as decimal text, written by hand: every answer needs them, where
 * snprintf would cost more than the decision. */
#ifndef WEIR_WIRE_DECIMAL_H
#define WEIR_WIRE_DECIMAL_H

#include <stdint.h>
#include <string.h>

#define WEIR_DECIMAL_MAX 20 /* digits of 2^64 - 1 */

/* "00".."99": two digits a step. */
extern const char weir_decimal_pairs[200];

/* 0, 10, 100, ... 10^19. */
extern const uint64_t weir_decimal_powers[WEIR_DECIMAL_MAX];

/* How many digits `value` has: its bits x log10(2), as a fraction of 4,096, and a look whether that
 * power of ten is above it. */
static inline unsigned weir_decimal_size(uint64_t value)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
    unsigned digits = bits * 1233 >> 12;
    return digits + (value >= weir_decimal_powers[digits]);
}

/* Writes `value` without leading zeros and returns where it ends. */
static inline char *weir_decimal_write(char *out, uint64_t value)
{
    if (value < 10) {
        *out = (char)('0' + value);
        return out + 1;
    }
    char *end = out + weir_decimal_size(value), *at = end;
    for (; value > UINT32_MAX; value /= 100) {
        at -= 2;
        memcpy(at, weir_decimal_pairs + value % 100 * 2, 2);
    }
    uint32_t rest = (uint32_t)value; /* whose division takes half as many instructions */
    for (; rest >= 10; rest /= 100) {
        at -= 2;
        memcpy(at, weir_decimal_pairs + rest % 100 * 2, 2);
    }
    if (at > out)
        *out = (char)('0' + rest);
    return end;
}

/* Writes text of a fixed size and returns where it ends. */
#define WEIR_LITERAL_WRITE(out, literal)                                                           \
    ((char *)memcpy((out), "" literal "", sizeof(literal) - 1) + (sizeof(literal) - 1))

#endif
