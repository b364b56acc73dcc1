/* SPDX-License-Identifier: Apache-2.0 */
/* Idempotency-Key: what is accepted keeps to its size and is printable. */
#include "fuzz.h"

#include "wire/http/idempotency_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size);
    char *key = malloc(WEIR_IDEMPOTENCY_KEY_MAX);
    REQUIRE(key != NULL);
    long got = weir_idempotency_key_parse((struct weir_bytes){text, size}, key);
    REQUIRE(got == WEIR_ERR_SYNTAX || (got > 0 && got <= WEIR_IDEMPOTENCY_KEY_MAX));
    for (long i = 0; i < got; i++)
        REQUIRE(key[i] >= ' ' && key[i] <= '~');
    free(key);
    free(text);
    return 0;
}
