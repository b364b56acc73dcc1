/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a keys file in the shape that programs write:
 *
 *   2cf24dba…938b9824: { user: alice, org: acme, plan: pro }
 *   9b94dc1a…10cf98aa: { user: bob, limits: { api: 5000/min burst 200, month: [10/s, 500/h] } }
 *
 * A YAML parser needs two seconds for a million of these lines. A file that has nothing but them,
 * comments and empty lines means the same read line by line, in a sixth of the time. The shape is
 * narrow on purpose: words of letters, digits and "_.@-", rates of letters, digits, '/' and spaces,
 * nothing quoted, spaces only. Whatever is not of it, wrong or just written in another way, is left
 * to the YAML parser: the whole file is.
 *
 * Source: YAML 1.1, 7.4.2 and 7.3.3 (flow mappings, plain scalars). Allocates nothing. One owner.
 */
#ifndef WEIR_FEATURE_IDENTITY_RULES_KEYS_LINES_H
#define WEIR_FEATURE_IDENTITY_RULES_KEYS_LINES_H

#include <stdbool.h>
#include <stdio.h>

#include <weir/bytes.h>

#include "feature/identity/rules/keys.h"

#define RULES_KEYS_LINE_BYTES 16384 /* a longer line is none of the shape */

struct rules_keys_lines {
    FILE *file;
    uint32_t number; /* of the line at hand */
    size_t from, to; /* what of `bytes` is to come */
    char bytes[RULES_KEYS_LINE_BYTES];
};

struct rules_keys_line {
    uint8_t digest[WEIR_DIGEST_BYTES];
    struct weir_bytes user, org, plan; /* user is there */
    struct weir_bytes limits;          /* the text between the braces; for rules_keys_lines_limit */
};

enum rules_keys_line_kind {
    RULES_KEYS_LINE_OTHER,  /* not of the shape */
    RULES_KEYS_LINE_CALLER, /* `line` is filled */
    RULES_KEYS_LINE_END,    /* of the file */
};

/* Reads the next line that is neither empty nor a comment. All of `lines` is zero at first, but the
 * file. */
enum rules_keys_line_kind rules_keys_lines_next(struct rules_keys_lines *lines,
                                                struct rules_keys_line *line);

/* Takes the next limit of a line's `limits`, name and rates, off *rest. False: none is left. */
bool rules_keys_lines_limit(struct weir_bytes *rest, struct weir_bytes *name,
                            struct weir_bytes *rates);

/* 64 hexadecimal digits of any case; false for anything else. */
bool rules_digest_read(uint8_t digest[WEIR_DIGEST_BYTES], const char *text, size_t size);

#endif
