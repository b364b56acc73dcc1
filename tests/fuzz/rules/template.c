/* SPDX-License-Identifier: Apache-2.0 */
/* Templates of bodies: the first byte chooses the kind, the rest is the text. What is written has
 * room, and nothing of a reason escapes from a JSON string or from markup. */
#include "rules/actions/template.h"

#include <string.h>

#include "../fuzz.h"

static const char raw[] = "\"<>&'\\\n\x01{{limit}}";

static size_t count_of(const char *text, size_t size, char byte)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += text[i] == byte;
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char out[WEIR_TEMPLATE_OUT_MAX], plain[WEIR_TEMPLATE_OUT_MAX];
    static char longest[2 * WEIR_TEMPLATE_REASON_MAX];
    struct weir_template_values values = {.retry_after_s = UINT64_MAX - 1,
                                          .limit = UINT64_MAX,
                                          .remaining = UINT64_MAX,
                                          .reason = {longest, sizeof longest}};
    struct weir_template template;
    struct weir_reason reason;
    size_t at;
    if (size == 0)
        return 0;
    char *copy = fuzz_copy(data + 1, size - 1);
    enum weir_template_kind kind = (enum weir_template_kind)(data[0] % 3);
    struct weir_bytes text = {copy, size - 1};
    if (weir_template_parse(&template, kind, text, &at, &reason) < 0) {
        REQUIRE(at <= text.size && reason.text[0] != '\0');
    } else {
        memset(longest, '"', sizeof longest);
        REQUIRE(weir_template_write(&template, &values, out) <= sizeof out);
        values.reason = (struct weir_bytes){"", 0};
        size_t empty = weir_template_write(&template, &values, plain);
        values.reason = (struct weir_bytes){raw, sizeof raw - 1};
        size_t full = weir_template_write(&template, &values, out);
        REQUIRE(full >= empty);
        if (kind != WEIR_TEMPLATE_TEXT)
            REQUIRE(count_of(out, full, '\n') == count_of(plain, empty, '\n'));
        if (kind == WEIR_TEMPLATE_MARKUP)
            REQUIRE(count_of(out, full, '<') == count_of(plain, empty, '<') &&
                    count_of(out, full, '"') == count_of(plain, empty, '"'));
    }
    free(copy);
    return 0;
}
