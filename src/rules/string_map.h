/* SPDX-License-Identifier: Apache-2.0 */
/* Two hash tables of the compiled rules, both built once and read by all workers:
 *
 *   words   (scope, text)  -> number    literals of an attribute, segments below a path node, names
 *   pairs   (number, number) -> number  the children of an index node
 *
 * Open addressing, linear probing, at most half full. Their contents come from the rules file,
 * never from traffic, so the hash needs no secret: a request can only look up. The hash of a text
 * does not depend on the scope, so one hash serves several look-ups. Texts are borrowed. Memory: 24
 * bytes a word and 16 a pair, at a quarter to a half full.
 */
#ifndef WEIR_RULES_STRING_MAP_H
#define WEIR_RULES_STRING_MAP_H

#include <stdbool.h>
#include <string.h>

#include <weir/bytes.h>

#define RULES_NONE UINT32_MAX /* no such word; also no number to be stored */

struct rules_word {
    const char *text; /* NULL: free */
    uint32_t size, scope, number, check;
};

/* All zero is empty. */
struct rules_string_map {
    struct rules_word *slots;
    uint32_t count, mask;
};

uint64_t rules_text_hash(const char *text, size_t size);

/* The number of (scope, text), or RULES_NONE; `hash` is rules_text_hash of the text. */
uint32_t rules_string_map_find(const struct rules_string_map *words, uint32_t scope, uint64_t hash,
                               const char *text, size_t size);

/* Adds a word that is not in yet. Returns false when memory is out. */
bool rules_string_map_add(struct rules_string_map *words, uint32_t scope, const char *text,
                          size_t size, uint32_t number);
void rules_string_map_free(struct rules_string_map *words);

struct rules_pair {
    uint64_t key; /* first << 32 | second */
    uint32_t number;
};

/* All zero is empty. */
struct rules_pairs {
    struct rules_pair *slots;
    uint32_t count, mask;
};

uint32_t rules_pairs_find(const struct rules_pairs *pairs, uint32_t first, uint32_t second);
bool rules_pairs_add(struct rules_pairs *pairs, uint32_t first, uint32_t second, uint32_t number);
void rules_pairs_free(struct rules_pairs *pairs);

#endif
