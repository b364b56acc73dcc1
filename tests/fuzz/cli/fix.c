/* SPDX-License-Identifier: Apache-2.0 */
/* `weir validate --fix`: a text is only ever made longer, all of it stays in its order, and a text
 * of which nothing was said is not changed. */
#include "cli/validate/fix.h"

#include <stdarg.h>
#include <string.h>

#include "fuzz.h"

/* That of the program. */
void cli_error(const char *format, ...);
void cli_error(const char *format, ...)
{
    (void)format;
}

static void load(const char *text, size_t size, struct weir_problems *problems)
{
    struct weir_rules *rules;
    if (weir_rules_parse(&rules, "fuzz.yaml", "/nonexistent", text, size, problems) == 0)
        weir_rules_unref(rules);
}

static void check_kept(const char *text, size_t size, const char *fixed, size_t fixed_size)
{
    size_t at = 0;
    for (size_t i = 0; i < fixed_size && at < size; i++)
        at += fixed[i] == text[at];
    REQUIRE(at == size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_problems problems = {0}, after = {0};
    char *text = fuzz_copy(data, size);
    size_t fixed_size = 0;
    load(text, size, &problems);
    char *fixed = cli_fix_text(text, size, &problems, &fixed_size);
    if (fixed) {
        REQUIRE(problems.count > 0 && fixed_size > size);
        check_kept(text, size, fixed, fixed_size);
        load(fixed, fixed_size, &after);
    }
    weir_problems_free(&problems);
    weir_problems_free(&after);
    free(fixed);
    free(text);
    return 0;
}
