/* SPDX-License-Identifier: Apache-2.0 */
/* Checks in JSON: whatever is accepted lies within the text, is UTF-8 without NUL, and keeps to the
 * stated numbers; whatever is refused has a reason. */
#include "json_string.h"

#include <string.h>

#include "core/check.h"
#include "wire/json/check.h"

static void pairs_check(const char *text, size_t size, const struct weir_check_pair *pairs,
                        unsigned count)
{
    REQUIRE(count <= WEIR_CHECK_JSON_PAIRS_MAX);
    for (unsigned i = 0; i < count; i++) {
        REQUIRE(pairs[i].name.size > 0 && pairs[i].value.data != NULL);
        string_check(text, size, pairs[i].name);
        string_check(text, size, pairs[i].value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_check_cursor cursor;
    struct weir_check_json check;
    struct weir_reason reason = {""};
    char *text = fuzz_copy(data, size);
    int more;

    weir_check_cursor_init(&cursor, text, size);
    while ((more = weir_check_cursor_next(&cursor, &check, &reason)) > 0) {
        string_check(text, size, check.method);
        string_check(text, size, check.path);
        string_check(text, size, check.host);
        string_check(text, size, check.ip);
        string_check(text, size, check.idempotency_key);
        REQUIRE(check.idempotency_key.size <= WEIR_IDEMPOTENCY_KEY_MAX);
        pairs_check(text, size, check.headers, check.header_count);
        pairs_check(text, size, check.attributes, check.attribute_count);
        REQUIRE(check.t_ns < UINT64_C(1) << 62);
    }
    REQUIRE((more < 0) == (reason.text[0] != '\0'));
    REQUIRE(more < 0 || cursor.index <= WEIR_CHECK_JSON_BATCH_MAX);
    REQUIRE(memchr(reason.text, '\n', strlen(reason.text)) == NULL);
    free(text);
    return 0;
}
