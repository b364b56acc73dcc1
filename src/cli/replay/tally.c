/* SPDX-License-Identifier: Apache-2.0 */
/* see tally.h */
#include "cli/replay/tally.h"

#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#define SLOTS_MIN 1024 /* a power of two */

struct replay_tally {
    struct replay_count *counts;
    uint32_t rules;
    struct replay_key *slots; /* open addressing; requests == 0: empty */
    size_t slot_count, used;  /* slot_count is a power of two, at most 3/4 are used */
    uint64_t keys_max;
};

struct replay_tally *replay_tally_open(uint32_t rules, uint64_t keys_max)
{
    struct replay_tally *tally = calloc(1, sizeof *tally);
    if (!tally)
        return NULL;
    tally->rules = rules;
    tally->keys_max = keys_max;
    tally->slot_count = SLOTS_MIN;
    tally->counts = calloc(rules > 0 ? rules : 1, sizeof *tally->counts);
    tally->slots = calloc(SLOTS_MIN, sizeof *tally->slots);
    if (!tally->counts || !tally->slots) {
        replay_tally_close(tally);
        return NULL;
    }
    for (uint32_t i = 0; i < rules; i++)
        tally->counts[i].keys_complete = true;
    return tally;
}

void replay_tally_close(struct replay_tally *tally)
{
    if (!tally)
        return;
    for (size_t i = 0; tally->slots && i < tally->slot_count; i++)
        free(tally->slots[i].text);
    free(tally->slots);
    free(tally->counts);
    free(tally);
}

/* The slot of a key, or the empty one where it belongs. */
static struct replay_key *find_slot(struct replay_key *slots, size_t slot_count, uint32_t rule,
                                    const uint64_t hash[2])
{
    size_t at = (size_t)(hash[0] ^ rule) & (slot_count - 1);
    for (;; at = (at + 1) & (slot_count - 1)) {
        struct replay_key *slot = &slots[at];
        if (slot->requests == 0 ||
            (slot->hash[0] == hash[0] && slot->hash[1] == hash[1] && slot->rule == rule))
            return slot;
    }
}

static int grow(struct replay_tally *tally)
{
    size_t slot_count = tally->slot_count * 2;
    struct replay_key *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return WEIR_ERR_MEMORY;
    for (size_t i = 0; i < tally->slot_count; i++) {
        const struct replay_key *key = &tally->slots[i];
        if (key->requests > 0)
            *find_slot(slots, slot_count, key->rule, key->hash) = *key;
    }
    free(tally->slots);
    tally->slots = slots;
    tally->slot_count = slot_count;
    return 0;
}

static int keep_text(struct replay_key *slot, struct weir_bytes key)
{
    slot->text = malloc(key.size > 0 ? key.size : 1);
    if (!slot->text)
        return WEIR_ERR_MEMORY;
    if (key.size > 0)
        memcpy(slot->text, key.data, key.size);
    slot->text_size = (uint32_t)key.size;
    return 0;
}

int replay_tally_add(struct replay_tally *tally, uint32_t rule, const uint64_t hash[2],
                     struct weir_bytes key, bool allowed)
{
    struct replay_count *count = &tally->counts[rule];
    count->requests++;
    count->denied += !allowed;
    struct replay_key *slot = find_slot(tally->slots, tally->slot_count, rule, hash);
    if (slot->requests == 0) {
        if (tally->used >= tally->keys_max) {
            count->keys_complete = false;
            return 0;
        }
        if (tally->used >= tally->slot_count / 4 * 3) {
            if (grow(tally) < 0)
                return WEIR_ERR_MEMORY;
            slot = find_slot(tally->slots, tally->slot_count, rule, hash);
        }
        tally->used++;
        count->keys++;
        slot->rule = rule;
        slot->hash[0] = hash[0];
        slot->hash[1] = hash[1];
    }
    slot->requests++;
    if (allowed)
        return 0;
    count->denied_keys += slot->denied++ == 0;
    return !slot->text ? keep_text(slot, key) : 0;
}

struct replay_count replay_tally_count(const struct replay_tally *tally, uint32_t rule)
{
    return tally->counts[rule];
}

/* Whether `a` is to be listed before `b`. */
static bool is_before(const struct replay_key *a, const struct replay_key *b)
{
    if (a->denied != b->denied)
        return a->denied > b->denied;
    uint32_t size = a->text_size < b->text_size ? a->text_size : b->text_size;
    int order = memcmp(a->text, b->text, size);
    return order != 0 ? order < 0 : a->text_size < b->text_size;
}

size_t replay_tally_top(const struct replay_tally *tally, uint32_t rule,
                        const struct replay_key **top, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < tally->slot_count; i++) {
        const struct replay_key *key = &tally->slots[i];
        if (key->denied == 0 || key->rule != rule)
            continue;
        if (count == max && (max == 0 || !is_before(key, top[max - 1])))
            continue;
        size_t at = count < max ? count++ : max - 1;
        for (; at > 0 && is_before(key, top[at - 1]); at--)
            top[at] = top[at - 1];
        top[at] = key;
    }
    return count;
}
