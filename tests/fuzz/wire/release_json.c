/* SPDX-License-Identifier: Apache-2.0 */
/* Releases in JSON: an accepted lease lies within the text; a refusal has a reason. */
#include "fuzz.h"

#include "wire/json/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_reason reason = {""};
    struct weir_bytes lease = {0};
    char *text = fuzz_copy(data, size);
    int err = weir_release_json_parse(text, size, &lease, &reason);
    REQUIRE((err < 0) == (reason.text[0] != '\0'));
    REQUIRE(err < 0 || (lease.data >= text && lease.data + lease.size <= text + size));
    free(text);
    return 0;
}
