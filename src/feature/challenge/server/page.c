/* SPDX-License-Identifier: Apache-2.0 */
/* see page.h */
#include "feature/challenge/server/page.h"

#include <stdbool.h>
#include <string.h>

#include "core/bytes.h"

struct writer {
    char *out;
    size_t used;
    bool full;
};

static void put(struct writer *writer, const char *data, size_t size)
{
    if (size > WEIR_PAGE_MAX - writer->used) {
        writer->full = true;
        return;
    }
    memcpy(writer->out + writer->used, data, size);
    writer->used += size;
}

static void put_escaped(struct writer *writer, struct weir_bytes value)
{
    for (size_t i = 0; i < value.size; i++) {
        const char *name = value.data[i] == '&'    ? "&amp;"
                           : value.data[i] == '<'  ? "&lt;"
                           : value.data[i] == '>'  ? "&gt;"
                           : value.data[i] == '"'  ? "&#34;"
                           : value.data[i] == '\'' ? "&#39;"
                                                   : NULL;
        put(writer, name ? name : &value.data[i], name ? strlen(name) : 1);
    }
}

/* What is written at a place. */
static struct weir_bytes value_of(const struct weir_page_part *part, unsigned language,
                                  const struct weir_bytes values[WEIR_PAGE_PLACES])
{
    if (part->place == WEIR_PAGE_WORDS)
        return weir_bytes_of(weir_challenge_texts[language][part->words]);
    if (part->place == WEIR_PAGE_LANGUAGE)
        return weir_bytes_of(weir_challenge_languages[language]);
    return values[part->place];
}

size_t weir_page_write(const struct weir_page_part *parts, unsigned count, unsigned language,
                       const struct weir_bytes values[WEIR_PAGE_PLACES], char *out)
{
    struct writer writer = {.out = out};
    for (unsigned i = 0; i < count; i++)
        if (parts[i].place == WEIR_PAGE_TEXT)
            put(&writer, parts[i].text, parts[i].size);
        else
            put_escaped(&writer, value_of(&parts[i], language, values));
    return writer.full ? 0 : writer.used;
}
