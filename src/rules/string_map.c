/* SPDX-License-Identifier: Apache-2.0 */
/* see string_map.h */
#include "rules/string_map.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST 16

/* Odd numbers with well-mixed bits: 2^64 / golden ratio, and the one of Fowler, Noll and Vo. */
#define MIX_A UINT64_C(0x9E3779B97F4A7C15)
#define MIX_B UINT64_C(0xC6A4A7935BD1E995)

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * MIX_A;
    return hash ^ hash >> 32;
}

static uint64_t load(const char *text, size_t size)
{
    uint64_t word = 0;
    memcpy(&word, text, size);
    return word;
}

uint64_t rules_text_hash(const char *text, size_t size)
{
    uint64_t hash = size * MIX_B;
    if (size >= 8) {
        for (size_t at = 0; at + 8 < size; at += 8)
            hash = mix(hash, load(text + at, 8));
        return mix(hash, load(text + size - 8, 8));
    }
    if (size >= 4)
        return mix(hash, load(text, 4) | load(text + size - 4, 4) << 32);
    if (size > 0) {
        unsigned char first = (unsigned char)text[0], middle = (unsigned char)text[size / 2];
        unsigned char last = (unsigned char)text[size - 1];
        return mix(hash, first | (uint64_t)middle << 8 | (uint64_t)last << 16);
    }
    return hash;
}

static uint32_t word_check(uint32_t scope, uint64_t hash)
{
    return (uint32_t)(mix(hash, scope * MIX_B) >> 16);
}

uint32_t rules_string_map_find(const struct rules_string_map *words, uint32_t scope, uint64_t hash,
                               const char *text, size_t size)
{
    if (words->count == 0)
        return RULES_NONE;
    uint32_t check = word_check(scope, hash);
    for (uint32_t at = check & words->mask;; at = (at + 1) & words->mask) {
        const struct rules_word *word = &words->slots[at];
        if (!word->text)
            return RULES_NONE;
        if (word->check == check && word->scope == scope && word->size == size &&
            memcmp(word->text, text, size) == 0)
            return word->number;
    }
}

static void words_put(struct rules_string_map *words, const struct rules_word *word)
{
    uint32_t at = word->check & words->mask;
    while (words->slots[at].text)
        at = (at + 1) & words->mask;
    words->slots[at] = *word;
}

static bool words_grow(struct rules_string_map *words)
{
    size_t room = !words->slots ? SLOTS_FIRST : ((size_t)words->mask + 1) * 2;
    if (room > UINT32_MAX / 2)
        return false;
    struct rules_string_map grown = {.count = words->count, .mask = (uint32_t)room - 1};
    grown.slots = calloc(room, sizeof(*grown.slots));
    if (!grown.slots)
        return false;
    for (size_t i = 0; words->slots && i <= words->mask; i++)
        if (words->slots[i].text)
            words_put(&grown, &words->slots[i]);
    free(words->slots);
    *words = grown;
    return true;
}

bool rules_string_map_add(struct rules_string_map *words, uint32_t scope, const char *text,
                          size_t size, uint32_t number)
{
    if ((!words->slots || words->count >= (words->mask + 1) / 2) && !words_grow(words))
        return false;
    uint32_t check = word_check(scope, rules_text_hash(text, size));
    struct rules_word word = {text, (uint32_t)size, scope, number, check};
    words_put(words, &word);
    words->count++;
    return true;
}

void rules_string_map_free(struct rules_string_map *words)
{
    free(words->slots);
    memset(words, 0, sizeof(*words));
}

static uint32_t pair_slot(uint64_t key, uint32_t mask)
{
    return (uint32_t)(mix(0, key) >> 8) & mask;
}

uint32_t rules_pairs_find(const struct rules_pairs *pairs, uint32_t first, uint32_t second)
{
    if (pairs->count == 0)
        return RULES_NONE;
    uint64_t key = (uint64_t)first << 32 | second;
    for (uint32_t at = pair_slot(key, pairs->mask);; at = (at + 1) & pairs->mask) {
        const struct rules_pair *pair = &pairs->slots[at];
        if (pair->key == key || pair->number == RULES_NONE)
            return pair->number;
    }
}

static void pairs_put(struct rules_pairs *pairs, const struct rules_pair *pair)
{
    uint32_t at = pair_slot(pair->key, pairs->mask);
    while (pairs->slots[at].number != RULES_NONE)
        at = (at + 1) & pairs->mask;
    pairs->slots[at] = *pair;
}

static bool pairs_grow(struct rules_pairs *pairs)
{
    size_t room = !pairs->slots ? SLOTS_FIRST : ((size_t)pairs->mask + 1) * 2;
    if (room > UINT32_MAX / 2)
        return false;
    struct rules_pairs grown = {.count = pairs->count, .mask = (uint32_t)room - 1};
    grown.slots = malloc(room * sizeof(*grown.slots));
    if (!grown.slots)
        return false;
    memset(grown.slots, 0xFF, room * sizeof(*grown.slots));
    for (size_t i = 0; pairs->slots && i <= pairs->mask; i++)
        if (pairs->slots[i].number != RULES_NONE)
            pairs_put(&grown, &pairs->slots[i]);
    free(pairs->slots);
    *pairs = grown;
    return true;
}

bool rules_pairs_add(struct rules_pairs *pairs, uint32_t first, uint32_t second, uint32_t number)
{
    if ((!pairs->slots || pairs->count >= (pairs->mask + 1) / 2) && !pairs_grow(pairs))
        return false;
    struct rules_pair pair = {(uint64_t)first << 32 | second, number};
    pairs_put(pairs, &pair);
    pairs->count++;
    return true;
}

void rules_pairs_free(struct rules_pairs *pairs)
{
    free(pairs->slots);
    memset(pairs, 0, sizeof(*pairs));
}
