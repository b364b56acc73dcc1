/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-1-3 with a 128-bit result: the keyed hash that names a key in the table.
 *
 * Source: Aumasson, Bernstein, "SipHash: a fast short-input PRF" (2012); the 128-bit output and its
 * constants (v1 ^= 0xee, v2 ^= 0xee, v1 ^= 0xdd) as in the authors' reference code. One round for a
 * word and three at the end is the variant that Rust and Ruby use for hash tables.
 * The secret belongs to a region; who doesn't know it cannot aim keys at one bucket.
 */
#ifndef WEIR_CORE_SIPHASH_H
#define WEIR_CORE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

void weir_siphash128(const uint64_t secret[2], const void *data, size_t size, uint64_t hash[2]);

#endif
