/* SPDX-License-Identifier: Apache-2.0 */
/* Lease tokens: what is read is written back as the same text, and nothing else is read. */
#include "fuzz.h"

#include <string.h>

#include "engine/lease_token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_lease_fields ticket;
    char text[WEIR_LEASE_TOKEN_TEXT_MAX], *copy = fuzz_copy(data, size);

    if (weir_lease_token_read(&ticket, (struct weir_bytes){copy, size}) == 0) {
        REQUIRE(ticket.id != 0 && ticket.count > 0 && ticket.count <= WEIR_CHECKS_MAX);
        REQUIRE(weir_lease_token_write(&ticket, text) == size);
        REQUIRE(memcmp(text, copy, size) == 0);
    }
    free(copy);
    return 0;
}
