/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of a key or of a caller: its values with their kinds, packed into one small text of
 * bytes that is kept, copied and compared as a whole. Everything that names someone (pages, the
 * API, logs of denials, searches) is made from it, so that one value has one name.
 *
 *   user=ann,header.x-api-key=sha256:…   ─▶   form | kind | value,  form | kind | digest,  …
 *
 * Forms of a value:
 *   MISSING   form, kind                            the request had none
 *   WHOLE     form, kind, size, bytes               up to WEIR_SHOWN_WHOLE_MAX bytes
 *   ADDRESS   the same                              an address in the place of another value
 *   LONG      form, kind, size, bytes, SHA-256, id  its first bytes, and the hash of all of it
 *   SECRET    form, kind, size, digest, id          what must not be shown: its SHA-256, or the
 *                                                   first bytes of that
 *   CUT       form, kind, size, bytes               its first bytes; more is not known
 *   MORE      form                                  further values found no room
 * The id is that of standing (feature/standing/standing.h); 0, 0: not known.
 *
 * The text for people has the real characters: "user=علي". What could be read as syntax, what moves
 * or hides other characters, and what is not UTF-8 is percent-encoded, so that different values
 * have different texts (LONG ones up to collisions of 64 bits).
 *
 * Threads: plain data. Allocates nothing.
 */
#ifndef WEIR_CORE_TEXT_SHOWN_H
#define WEIR_CORE_TEXT_SHOWN_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/bytes.h>

#define WEIR_SHOWN_MAX 256      /* bytes of a list: a long value, a secret and their kinds fit */
#define WEIR_SHOWN_WHOLE_MAX 96 /* of a value: most names, and all addresses */
#define WEIR_SHOWN_SHA256 32
#define WEIR_SHOWN_VALUES_MAX 16 /* more are not read */
#define WEIR_SHOWN_TEXT_MAX 1024 /* three bytes for each of a list, and digests */

enum weir_shown_form {
    WEIR_SHOWN_MISSING = 1,
    WEIR_SHOWN_WHOLE,
    WEIR_SHOWN_ADDRESS,
    WEIR_SHOWN_LONG,
    WEIR_SHOWN_SECRET,
    WEIR_SHOWN_CUT,
    WEIR_SHOWN_MORE,
};

/* One value. Its texts belong to the list that it was read from. */
struct weir_shown {
    uint8_t form;
    uint8_t digest_size;    /* bytes of `digest`; 0: not known */
    struct weir_bytes kind; /* "user"; empty: the key has none */
    struct weir_bytes value;
    const uint8_t *digest; /* of LONG and SECRET */
    uint64_t id[2];
};

struct weir_shown_list {
    uint16_t size;
    unsigned char bytes[WEIR_SHOWN_MAX];
};

/* Appends a value. False: there is no room; nothing was appended. Of LONG as many first bytes are
 * kept as there is room for. `kind` has at most 255 bytes. */
bool weir_shown_add(struct weir_shown_list *list, const struct weir_shown *value);
/* Says that further values found no room. */
void weir_shown_add_more(struct weir_shown_list *list);

/* Takes the next value off a packed list. False: it is at its end, or is no such list. */
bool weir_shown_next(struct weir_bytes *rest, struct weir_shown *value);

/* The text of a packed list for people. Returns its size. */
size_t weir_shown_text(struct weir_bytes packed, char text[WEIR_SHOWN_TEXT_MAX]);

/* What somebody looks for: a value, of any kind or of one. */
struct weir_shown_asked {
    struct weir_bytes kind;  /* size 0: any */
    struct weir_bytes value; /* data == NULL: by its digest alone */
    uint8_t digest[WEIR_SHOWN_SHA256];
    uint8_t digest_size; /* bytes of it that count; 0: not known, so that neither long values nor
                            secrets are found */
};

/* Whether the list has the value. CUT values have only their first bytes to compare. */
bool weir_shown_has(struct weir_bytes packed, const struct weir_shown_asked *asked);
/* The first value of the list that is the one that is asked for. */
bool weir_shown_find(struct weir_bytes packed, const struct weir_shown_asked *asked,
                     struct weir_shown *found);

/* Whether a well-formed UTF-8 character of that many bytes may be in a text for people as it is:
 * it is no control, and does not hide or turn what is around it. */
bool weir_text_is_plain(const char *character, size_t size);

/* Reads a digest of 8 to 32 bytes in hexadecimal. Returns its size in bytes; 0: it is none. */
uint8_t weir_shown_digest_read(struct weir_bytes text, uint8_t digest[WEIR_SHOWN_SHA256]);

static inline struct weir_bytes weir_shown_packed(const struct weir_shown_list *list)
{
    return (struct weir_bytes){(const char *)list->bytes, list->size};
}

#endif
