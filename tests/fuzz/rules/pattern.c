/* SPDX-License-Identifier: Apache-2.0 */
/* A glob, a newline, a text: what is in a glob, as an obvious model says it, in any case of
 * letters; and what of the glob looks like a pattern of another program, which a backslash ends. */
#include "fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "rules/foreign.h"
#include "rules/match/pattern.h"
#include "rules/request.h"

#define MODEL_MAX 400 /* bytes of glob and of text: the model is quadratic */

/* reached[i]: the glob so far takes the first i bytes of the text. */
static bool model(struct weir_bytes glob, struct weir_bytes text)
{
    bool reached[MODEL_MAX + 1] = {true}, next[MODEL_MAX + 1];
    for (size_t g = 0; g < glob.size; g++) {
        char byte = glob.data[g];
        bool star = byte == '*', seen = false;
        if (byte == '\\' && g + 1 < glob.size)
            byte = glob.data[++g];
        for (size_t i = 0; i <= text.size; i++) {
            seen = seen || reached[i];
            next[i] = star ? seen : i > 0 && reached[i - 1] && text.data[i - 1] == byte;
        }
        memcpy(reached, next, sizeof reached);
    }
    return reached[text.size];
}

static void fold(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] >= 'A' && text[i] <= 'Z')
            text[i] = (char)(text[i] - 'A' + 'a');
}

/* Backslashes end it, after as many as there are bytes. */
static void check_foreign(struct weir_bytes glob, uint16_t attribute)
{
    struct rules_foreign found;
    char *text = malloc(2 * glob.size + 1);
    size_t size = glob.size, times = 0;
    REQUIRE(text != NULL);
    memcpy(text, glob.data, size);
    while (rules_find_foreign((struct weir_bytes){text, size}, attribute, &found)) {
        REQUIRE(found.at < size && found.what[0] != '\0' && times++ < glob.size);
        memmove(text + found.at + 1, text + found.at, size - found.at);
        text[found.at] = '\\';
        size++;
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = fuzz_copy(data, size);
    const char *end = size > 0 ? memchr(bytes, '\n', size) : NULL;
    struct weir_bytes glob = {bytes, end ? (size_t)(end - bytes) : size};
    struct weir_bytes text = {end ? end + 1 : bytes + size, end ? size - glob.size - 1 : 0};
    static const uint16_t attributes[] = {WEIR_ATTR_METHOD, WEIR_ATTR_HOST, UINT16_MAX};
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        check_foreign(glob, attributes[i]);
    if (glob.size <= MODEL_MAX && text.size <= MODEL_MAX && weir_glob_fits(glob)) {
        REQUIRE(weir_glob_match(glob, text) == model(glob, text));
        fold(bytes, glob.size);
        bool folded = weir_glob_match_folded(glob, text);
        fold(bytes, size);
        REQUIRE(folded == weir_glob_match(glob, text));
    }
    free(bytes);
    return 0;
}
