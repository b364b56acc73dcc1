/* SPDX-License-Identifier: Apache-2.0 */
/* Whom somebody asks for: as a text, which may be
 *   the text of a key as it is shown      user=ann,client.ip=192.0.2.1
 *   one value with its kind               user=ann, user=sha256:…, header.x-api-key=the-key-itself
 *   one value of any kind                 ann, 192.0.2.1, sha256:…
 * Values are the real ones; long ones and secrets are found by themselves or by their SHA-256.
 *
 * Threads: plain data.
 */
#ifndef WEIR_SERVER_USE_ASKED_H
#define WEIR_SERVER_USE_ASKED_H

#include "core/text/shown.h"

struct weir_asked {
    struct weir_bytes text; /* borrowed; data == NULL: anybody */
    struct weir_shown_asked any, of_kind;
    struct weir_shown_asked any_digest, kind_digest; /* digest_size 0: it has none */
};

/* Reads a text, which is borrowed. */
void weir_asked_read(struct weir_asked *asked, struct weir_bytes text);
/* The value of one kind, real or as "sha256:…". */
void weir_asked_read_kind(struct weir_asked *asked, const char *kind, struct weir_bytes value);

/* Whether a packed list is, or has, what is asked for. */
bool weir_asked_has(const struct weir_asked *asked, struct weir_bytes packed);

/* The value of a list that is asked for by one kind and value. */
bool weir_asked_find(const struct weir_asked *asked, struct weir_bytes packed,
                     struct weir_shown *found);

#endif
