/* SPDX-License-Identifier: Apache-2.0 */
/* see asked.h */
#include "server/use/asked.h"

#include <string.h>

#include "core/bytes.h"
#include "rules/identity/keys.h"

#define DIGEST "sha256:"

/* A value that is the text itself; and, where the text is a digest, one of that digest. */
static void read_value(struct weir_bytes text, struct weir_bytes kind,
                       struct weir_shown_asked *real, struct weir_shown_asked *digest)
{
    const size_t size = sizeof DIGEST - 1;
    *real = (struct weir_shown_asked){.kind = kind, .value = text};
    rules_sha256(text, real->digest);
    real->digest_size = sizeof real->digest;
    *digest = (struct weir_shown_asked){.kind = kind};
    if (text.size > size && memcmp(text.data, DIGEST, size) == 0)
        digest->digest_size = weir_shown_digest_read(
            (struct weir_bytes){text.data + size, text.size - size}, digest->digest);
}

void weir_asked_read(struct weir_asked *asked, struct weir_bytes text)
{
    const struct weir_bytes none = {NULL, 0};
    const char *equals = text.size > 0 ? memchr(text.data, '=', text.size) : NULL;
    *asked = (struct weir_asked){.text = text};
    read_value(text, none, &asked->any, &asked->any_digest);
    if (equals && equals > text.data) {
        struct weir_bytes kind = {text.data, (size_t)(equals - text.data)};
        read_value((struct weir_bytes){equals + 1, text.size - kind.size - 1}, kind,
                   &asked->of_kind, &asked->kind_digest);
    }
}

void weir_asked_read_kind(struct weir_asked *asked, const char *kind, struct weir_bytes value)
{
    *asked = (struct weir_asked){.text = value};
    read_value(value, weir_bytes_of(kind), &asked->of_kind, &asked->kind_digest);
}

bool weir_asked_find(const struct weir_asked *asked, struct weir_bytes packed,
                     struct weir_shown *found)
{
    return (asked->of_kind.kind.size > 0 && weir_shown_find(packed, &asked->of_kind, found)) ||
           (asked->kind_digest.digest_size > 0 &&
            weir_shown_find(packed, &asked->kind_digest, found));
}

bool weir_asked_has(const struct weir_asked *asked, struct weir_bytes packed)
{
    char text[WEIR_SHOWN_TEXT_MAX];
    struct weir_shown found;
    if (!asked->text.data || weir_asked_find(asked, packed, &found))
        return true;
    if (asked->any.value.data && weir_shown_has(packed, &asked->any))
        return true;
    if (asked->any_digest.digest_size > 0 && weir_shown_has(packed, &asked->any_digest))
        return true;
    if (!asked->any.value.data || asked->text.size == 0)
        return false;
    struct weir_bytes shown = {text, weir_shown_text(packed, text)};
    return weir_bytes_equal(shown, asked->text);
}
