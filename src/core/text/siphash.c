/* SPDX-License-Identifier: Apache-2.0 */
/* see siphash.h */
#include "core/text/siphash.h"

void weir_siphash128(const uint64_t secret[2], const void *data, size_t size, uint64_t hash[2])
{
    siphash128(secret, data, size, hash);
}
