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

/* Writes `value` without leading zeros and returns where it ends. */
static inline char *weir_decimal_write(char *out, uint64_t value)
{
    char digits[WEIR_DECIMAL_MAX + 2]; /* a pair more than needed, which compilers cannot see */
    char *at = digits + sizeof digits;

    if (value < 10) {
        *out = (char)('0' + value);
        return out + 1;
    }
    for (; value > UINT32_MAX; value /= 100) {
        at -= 2;
        memcpy(at, weir_decimal_pairs + value % 100 * 2, 2);
    }
    uint32_t rest = (uint32_t)value; /* whose division takes half as many instructions */
    for (; rest >= 10; rest /= 100) {
        at -= 2;
        memcpy(at, weir_decimal_pairs + rest % 100 * 2, 2);
    }
    if (rest > 0)
        *--at = (char)('0' + rest);
    size_t size = (size_t)(digits + sizeof digits - at);
    memcpy(out, at, size);
    return out + size;
}

/* Writes text of a fixed size and returns where it ends. */
#define WEIR_LITERAL_WRITE(out, literal)                                                           \
    ((char *)memcpy((out), "" literal "", sizeof(literal) - 1) + (sizeof(literal) - 1))

#endif
