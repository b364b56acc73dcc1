/* SPDX-License-Identifier: Apache-2.0 */
/* Lease tokens: what is read is written back as the same text, and nothing else is read. */
#include "fuzz.h"

#include <string.h>

#include "engine/token/lease_token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_lease_fields lease;
    char text[WEIR_LEASE_TOKEN_TEXT_MAX], *copy = fuzz_copy(data, size);

    if (weir_lease_token_read(&lease, (struct weir_bytes){copy, size}) == 0) {
        REQUIRE(lease.id != 0 && lease.count > 0 && lease.count <= WEIR_CHECKS_MAX);
        REQUIRE(weir_lease_token_write(&lease, text) == size);
        REQUIRE(memcmp(text, copy, size) == 0);
    }
    free(copy);
    return 0;
}
