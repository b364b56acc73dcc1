/* SPDX-License-Identifier: Apache-2.0 */
/* Releases in JSON: an accepted lease lies within the text; a refusal has a reason. */
#include "fuzz.h"

#include "wire/json/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_reason reason = {""};
    struct weir_release_json release;
    char *text = fuzz_copy(data, size);
    int err = weir_release_json_parse(text, size, &release, &reason);
    REQUIRE((err < 0) == (reason.text[0] != '\0'));
    REQUIRE(err < 0 ||
            (release.lease.data >= text && release.lease.data + release.lease.size <= text + size));
    REQUIRE(err < 0 || release.status == 0 || (release.status >= 100 && release.status <= 599));
    free(text);
    return 0;
}
