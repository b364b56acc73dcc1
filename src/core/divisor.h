/* SPDX-License-Identifier: Apache-2.0 */
/* The greatest common divisor, by Euclid (Elements, VII, 2). Threads: pure. */
#ifndef WEIR_CORE_DIVISOR_H
#define WEIR_CORE_DIVISOR_H

#include <stdint.h>

/* Of a and 0 it is a. */
static inline uint64_t weir_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
