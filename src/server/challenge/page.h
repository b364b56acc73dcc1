/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of the challenge. Their sources are page.html, refused.html, page.css, page.js and
 * worker.js in this folder; script/build/embed_challenge.py makes the parts below from them.
 *
 * A page loads nothing. Its Content-Security-Policy allows its one script and its one style by
 * their hashes, workers from blobs, and forms to its own origin.
 *
 * Threads: pure.
 */
#ifndef WEIR_SERVER_CHALLENGE_PAGE_H
#define WEIR_SERVER_CHALLENGE_PAGE_H

#include <stddef.h>
#include <weir/bytes.h>

enum weir_page_place {
    WEIR_PAGE_TEXT,
    WEIR_PAGE_PUZZLE,
    WEIR_PAGE_DIFFICULTY,
    WEIR_PAGE_TO,
    WEIR_PAGE_REASON,
    WEIR_PAGE_PLACES
};

struct weir_page_part {
    enum weir_page_place place;
    const char *text; /* of TEXT, with its size */
    size_t size;
};

extern const struct weir_page_part weir_challenge_parts[], weir_refused_parts[];
extern const unsigned weir_challenge_part_count, weir_refused_part_count;
extern const char weir_challenge_policy[];

/* Room for either page: 10 kB, and a return path in which each byte is escaped with 5. */
#define WEIR_PAGE_MAX 24576

/* Writes a page whose places have these values, escaped for HTML; `out` has WEIR_PAGE_MAX bytes.
 * Returns its size; 0: there is no room. */
size_t weir_page_write(const struct weir_page_part *parts, unsigned count,
                       const struct weir_bytes values[WEIR_PAGE_PLACES], char *out);

#endif
