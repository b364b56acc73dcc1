/* SPDX-License-Identifier: Apache-2.0 */
/* Rules files as they are shown: every line stays where it is, and what is shown is UTF-8. */
#include "fuzz.h"

#include <string.h>

#include "core/text/utf8.h"
#include "feature/dashboard/rules/shown_rules.h"
#include "rules/rules.h"

static size_t lines(const char *text, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += text[i] == '\n';
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = "version: 1\nlimits: []\n";
    static struct weir_rules *rules;
    struct weir_problems problems = {0};
    if (!rules)
        REQUIRE(weir_rules_parse(&rules, "fuzz", ".", text, sizeof text - 1, &problems) == 0);
    char *copy = fuzz_copy(data, size);
    char *shown = weir_shown_rules(rules, copy, size);
    if (shown) {
        REQUIRE(lines(shown, strlen(shown)) == lines(copy, size));
        REQUIRE(weir_utf8_valid(shown, strlen(shown)));
    }
    free(shown);
    free(copy);
    return 0;
}
