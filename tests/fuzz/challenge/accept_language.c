/* SPDX-License-Identifier: Apache-2.0 */
/* The field Accept-Language, of any bytes. What is chosen is one of the languages; a language that
 * the field names nowhere is not chosen; and a language that is put in front with full weight is.
 */
#include "fuzz.h"

#include <string.h>
#include <strings.h>

#include "feature/challenge/language.h"

static const char *const languages[] = {"en", "de", "zh"};

static int names(const char *text, size_t size, const char *language)
{
    for (size_t i = 0; i + 2 <= size; i++)
        if (strncasecmp(text + i, language, 2) == 0)
            return 1;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char front[] = "zh-TW, ";
    char *copy = fuzz_copy(data, size);
    unsigned chosen = weir_language_choose((struct weir_bytes){copy, size}, languages, 3);
    REQUIRE(chosen < 3);
    REQUIRE(chosen == 0 || names(copy, size, languages[chosen]));
    char *longer = malloc(size + sizeof front);
    REQUIRE(longer != NULL);
    memcpy(longer, front, sizeof front - 1);
    if (size > 0)
        memcpy(longer + sizeof front - 1, copy, size);
    REQUIRE(weir_language_choose((struct weir_bytes){longer, size + sizeof front - 1}, languages,
                                 3) == 2);
    free(longer);
    free(copy);
    return 0;
}
