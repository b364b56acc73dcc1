/* SPDX-License-Identifier: Apache-2.0 */
/* see language.h */
#include "feature/challenge/language.h"

#include <string.h>

#include "core/bytes.h"

#define WHOLE 1000 /* weights have three decimals */

/* Takes the part before `mark` off *rest, and the mark. */
static struct weir_bytes take_until(struct weir_bytes *rest, char mark)
{
    const char *stop = rest->size > 0 ? memchr(rest->data, mark, rest->size) : NULL;
    struct weir_bytes part = {rest->data, stop ? (size_t)(stop - rest->data) : rest->size};
    size_t taken = part.size + (stop ? 1 : 0);
    rest->data += taken;
    rest->size -= taken;
    return weir_bytes_trim(part);
}

/* "0.8" is 800; what is no weight is 0. */
static unsigned read_weight(struct weir_bytes text)
{
    unsigned weight = 0, unit = WHOLE;
    if (text.size == 0 || text.size > 5 || (text.size > 1 && text.data[1] != '.'))
        return 0;
    for (size_t i = 0; i < text.size; i++) {
        if (i == 1)
            continue;
        if (text.data[i] < '0' || text.data[i] > '9')
            return 0;
        weight += (unsigned)(text.data[i] - '0') * unit;
        unit /= 10;
    }
    return weight <= WHOLE ? weight : 0;
}

/* The weight among the parameters of a language; without one it is whole. */
static unsigned weight_of(struct weir_bytes parameters)
{
    while (parameters.size > 0) {
        struct weir_bytes one = take_until(&parameters, ';');
        if (one.size >= 2 && (one.data[0] | 0x20) == 'q' && one.data[1] == '=')
            return read_weight((struct weir_bytes){one.data + 2, one.size - 2});
    }
    return WHOLE;
}

/* Whether the tag is the language, or begins with it and a hyphen. */
static bool is_language(struct weir_bytes tag, const char *language)
{
    size_t size = strlen(language);
    if (tag.size < size || (tag.size > size && tag.data[size] != '-'))
        return false;
    for (size_t i = 0; i < size; i++)
        if ((tag.data[i] | 0x20) != language[i])
            return false;
    return true;
}

unsigned weir_language_choose(struct weir_bytes accept, const char *const *languages,
                              unsigned count)
{
    unsigned chosen = 0, highest = 0;
    while (accept.size > 0) {
        struct weir_bytes one = take_until(&accept, ',');
        struct weir_bytes tag = take_until(&one, ';');
        unsigned weight = weight_of(one);
        for (unsigned i = 0; i < count && weight > highest; i++)
            if (is_language(tag, languages[i])) {
                chosen = i;
                highest = weight;
            }
    }
    return chosen;
}
