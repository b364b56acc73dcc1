/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of the challenge. Their sources are page.html, refused.html, page.css, page.js and
 * worker.js in this folder, and what they say in each language is in texts.json;
 * script/build/embed_challenge.py makes the parts and texts below from them.
 *
 * A page loads nothing. Its Content-Security-Policy allows its one script and its one style by
 * their hashes, workers from blobs, and forms to its own origin.
 *
 * Threads: pure.
 */
#ifndef WEIR_FEATURE_CHALLENGE_SERVER_PAGE_H
#define WEIR_FEATURE_CHALLENGE_SERVER_PAGE_H

#include <stddef.h>
#include <weir/bytes.h>

/* The names of texts.json. Those that the server chooses come first. */
enum weir_page_words {
    WEIR_WORDS_EXPIRED,
    WEIR_WORDS_KEY_CHANGED,
    WEIR_WORDS_OTHER_NETWORK,
    WEIR_WORDS_UNSOLVED,
    WEIR_WORDS_REPLAYED,
    WEIR_WORDS_BUSY,
    WEIR_WORDS_NO_ADDRESS,
    WEIR_WORDS_NO_PAGE,
    WEIR_WORDS_AGAIN,
    WEIR_WORDS_GO_ON,
    WEIR_WORDS_HOME,
    WEIR_WORDS_DIRECTION,
    WEIR_WORDS_TITLE,
    WEIR_WORDS_WAIT,
    WEIR_WORDS_WHAT,
    WEIR_WORDS_TIME,
    WEIR_WORDS_SLOW,
    WEIR_WORDS_PROGRESS,
    WEIR_WORDS_NO_SCRIPT,
    WEIR_WORDS_NO_COOKIES,
    WEIR_WORDS_TOO_OLD,
    WEIR_WORDS_FAILED,
    WEIR_WORDS_REFUSED,
    WEIR_WORDS_COUNT
};

enum weir_page_place {
    WEIR_PAGE_TEXT,
    WEIR_PAGE_WORDS,
    WEIR_PAGE_LANGUAGE,
    WEIR_PAGE_SITE,
    WEIR_PAGE_PUZZLE,
    WEIR_PAGE_DIFFICULTY,
    WEIR_PAGE_TO,
    WEIR_PAGE_REASON,
    WEIR_PAGE_LINK,
    WEIR_PAGE_LABEL,
    WEIR_PAGE_PLACES
};

struct weir_page_part {
    enum weir_page_place place;
    enum weir_page_words words; /* of WORDS */
    const char *text;           /* of TEXT, with its size */
    size_t size;
};

extern const struct weir_page_part weir_challenge_parts[], weir_refused_parts[];
extern const unsigned weir_challenge_part_count, weir_refused_part_count;
extern const char weir_challenge_policy[];

/* "en", "de", …; the first is for readers of none of them. */
extern const char *const weir_challenge_languages[];
extern const unsigned weir_challenge_language_count;
/* By language. */
extern const char *const weir_challenge_texts[][WEIR_WORDS_COUNT];

/* Room for either page: 12 kB, and a return path in which each byte is escaped with 5. */
#define WEIR_PAGE_MAX 24576

/* Writes a page in a language, whose places have these values, escaped for HTML; `out` has
 * WEIR_PAGE_MAX bytes. Returns its size; 0: there is no room. */
size_t weir_page_write(const struct weir_page_part *parts, unsigned count, unsigned language,
                       const struct weir_bytes values[WEIR_PAGE_PLACES], char *out);

#endif
