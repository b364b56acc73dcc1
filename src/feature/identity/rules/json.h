/* SPDX-License-Identifier: Apache-2.0 */
/* JSON that others wrote, as a tree: of tokens, which anybody may send, and of sets of keys.
 *
 * jansson reads it (RFC 8259, UTF-8 checked, no NUL in strings) and makes a tree. What it leaves
 * open is settled here: the text is one object, a member given twice makes it invalid (two readers
 * of one token must not see two tokens), and depth and number of values are bounded before a tree
 * is made: each value costs an allocation and some 80 ns, so that 6 KiB of "[[],[],[]," would cost
 * more than a signature.
 *
 * Memory: jansson's own, freed by json_decref. Threads: none is shared.
 */
#ifndef WEIR_FEATURE_IDENTITY_RULES_JSON_H
#define WEIR_FEATURE_IDENTITY_RULES_JSON_H

#include <jansson.h>

#include <weir/bytes.h>

#define RULES_JSON_DEPTH_MAX 16 /* claims are nested three deep where they are nested at all */

/* The object that `text` is, for the caller to json_decref; NULL: it is none, or has more than
 * `most` values, all objects, lists and what is in them counted (an empty one as two). */
json_t *rules_json_read(struct weir_bytes text, uint32_t most);

/* A member that is a string; data == NULL: there is none. It lives as long as the object. */
struct weir_bytes rules_json_text(const json_t *object, const char *name);

#endif
