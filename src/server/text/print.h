/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that came from outside, as people may see them: characters of UTF-8 as they are, and
 * everything else, and what a terminal could take for a command, or what hides other characters, as
 * \xNN.
 *
 * Threads: pure; weir_print_text and weir_print_key read the environment.
 */
#ifndef WEIR_SERVER_TEXT_PRINT_H
#define WEIR_SERVER_TEXT_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Where something is printed, and how. */
struct weir_print {
    FILE *out;
    bool utf8; /* else only ASCII stays as it is */
    bool utc;  /* times in UTC, not in the zone of this machine */
};

/* Prints some `limit` bytes at most (then "..."). */
void weir_print_bytes(const struct weir_print *print, const char *text, size_t size, size_t limit);

/* The same for the text of a key; the one key of a limit with `key: []` is shown as "[]". */
void weir_print_key_bytes(const struct weir_print *print, const char *text, size_t size,
                          size_t limit);

/* Whether the locale of the user has UTF-8; where it names no character set, it has. */
bool weir_print_utf8(void);

/* The same two for the user's locale. */
void weir_print_text(FILE *stream, const char *text, size_t size, size_t limit);
void weir_print_key(FILE *stream, const char *text, size_t size, size_t limit);

#endif
