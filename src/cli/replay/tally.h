/* SPDX-License-Identifier: Apache-2.0 */
/* What a replay counts: per limit its requests, verdicts and keys, and who was denied most.
 *
 * Keys are counted exactly, by their 128-bit hash, and keep their text from their first denial on.
 * That takes 85 to 171 bytes a key, unlike the state table, whose size is fixed; so there is a
 * bound over all limits, and beyond it a key that is new is counted in its limit's requests, but
 * not as a key ("at least" in the report).
 *
 * Threads: one owner.
 */
#ifndef WEIR_CLI_REPLAY_TALLY_H
#define WEIR_CLI_REPLAY_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/bytes.h>

struct replay_tally;

/* One key of one limit: a line of the cache. */
struct replay_key {
    uint64_t hash[2];
    uint64_t requests, denied;
    char *text; /* NULL until the first denial; text_size bytes, not NUL-terminated */
    uint32_t text_size;
    uint32_t rule;
} __attribute__((aligned(64)));

struct replay_count {
    uint64_t requests, denied, keys;
    uint64_t denied_keys; /* denied at least once */
    bool keys_complete;   /* false: more keys than the bound */
};

/* `rules` limits, at most `keys_max` keys. Returns NULL when out of memory. */
struct replay_tally *replay_tally_open(uint32_t rules, uint64_t keys_max);
void replay_tally_close(struct replay_tally *tally);

/* A verdict of this key will be counted soon: asks for its memory. Keys are spread over all of it,
 * and to wait for it would take as long as the decision. */
void replay_tally_prefetch(const struct replay_tally *tally, uint32_t rule, const uint64_t hash[2]);

/* Counts one verdict of one limit; `key` is copied when it is denied. Returns 0 or WEIR_ERR_MEMORY.
 */
int replay_tally_add(struct replay_tally *tally, uint32_t rule, const uint64_t hash[2],
                     struct weir_bytes key, bool allowed) __attribute__((warn_unused_result));

struct replay_count replay_tally_count(const struct replay_tally *tally, uint32_t rule);

/* The most denied keys of a limit, most first (ties: in the order of their text); those that were
 * never denied are left out. Fills at most `max`; returns how many. They are valid until the next
 * add. */
size_t replay_tally_top(const struct replay_tally *tally, uint32_t rule,
                        const struct replay_key **top, size_t max);

#endif
