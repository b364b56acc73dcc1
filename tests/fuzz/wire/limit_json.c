/* SPDX-License-Identifier: Apache-2.0 */
/* Limits in JSON: whatever is accepted lies within the text, is UTF-8 without NUL, and keeps to the
 * stated numbers; whatever is refused has a reason. */
#include "json_string.h"

#include <string.h>

#include "wire/json/limit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct weir_given_limits limits;
    struct weir_reason reason = {""};
    char *text = fuzz_copy(data, size);
    int err = weir_limits_json_parse(text, size, &limits, &reason);

    REQUIRE((err < 0) == (reason.text[0] != '\0'));
    REQUIRE(memchr(reason.text, '\n', strlen(reason.text)) == NULL);
    if (err == 0) {
        REQUIRE(limits.count >= 1 && limits.count <= WEIR_CHECKS_MAX);
        REQUIRE(limits.listed || limits.count == 1);
        for (unsigned i = 0; i < limits.count; i++) {
            const struct weir_given_limit *limit = &limits.limits[i];
            REQUIRE(limit->key.data != NULL && limit->key.size > 0);
            REQUIRE(limit->name.size <= WEIR_LIMIT_NAME_MAX);
            REQUIRE(limit->given & 1u << WEIR_LIMIT_KEY);
            string_check(text, size, limit->key);
            string_check(text, size, limit->name);
            string_check(text, size, limit->rate);
            string_check(text, size, limit->algorithm);
            string_check(text, size, limit->life);
        }
    }
    free(text);
    return 0;
}
