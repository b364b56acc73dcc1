/* SPDX-License-Identifier: Apache-2.0 */
/* Accept-Encoding: a coding that is put before any field is taken, and one that is refused there is
 * not, whatever follows. */
#include "fuzz.h"

#include <string.h>

#include "wire/http/accept_encoding.h"

static bool takes(const char *before, const uint8_t *data, size_t size)
{
    size_t head = strlen(before);
    uint8_t *joined = malloc(head + size + 1);
    REQUIRE(joined != NULL);
    memcpy(joined, before, head);
    if (size > 0)
        memcpy(joined + head, data, size);
    char *text = fuzz_copy(joined, head + size);
    bool taken = weir_accepts_coding((struct weir_bytes){text, head + size}, "gzip");
    free(text);
    free(joined);
    return taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)takes("", data, size);
    REQUIRE(takes("gzip,", data, size));
    REQUIRE(!takes("gzip;q=0,", data, size));
    return 0;
}
