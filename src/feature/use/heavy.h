/* SPDX-License-Identifier: Apache-2.0 */
/* Heavy hitters: a bounded summary of who is met most, of a stream of weighted observations.
 *
 * Source: Metwally, Agrawal, El Abbadi, "Efficient Computation of Frequent and Top-k Elements in
 * Data Streams" (ICDT 2005), Space-Saving; merged as Agarwal et al., "Mergeable Summaries" (PODS
 * 2012). It keeps m items. An item that it has is counted; one that it does not have takes the
 * place of the item with the smallest count, and inherits that count as its possible error.
 *
 *   heap[0..used)    entry numbers, smallest count first
 *   index[2m]        hash -> entry number, linear probing
 *   counts[m]        hash, count: what each observation touches, two items a cache line
 *   entries[m]       texts and sums: touched when an item is new or is shown
 *
 * Stated error. After observations of weight W: a count is never too low, at most `error` too high,
 * and `error` is at most W / m. Each item of weight above W / m is in the summary. Merging keeps
 * both, with W the sum of both weights. `floor` is the most that an item without entry can have.
 *
 * Memory: about 460 bytes an entry. No allocation after opening.
 * Threads: one owner at a time.
 */
#ifndef WEIR_FEATURE_USE_HEAVY_H
#define WEIR_FEATURE_USE_HEAVY_H

#include <stdbool.h>

#include <weir/bytes.h>
#include <weir/error.h>

#define WEIR_HEAVY_NAME_MAX 64 /* the longest name of a limit */
#define WEIR_HEAVY_TEXT_MAX                                                                        \
    256 /* any bytes; longer texts are cut and get their hash as a suffix                          \
         */
#define WEIR_HEAVY_ROOM_MAX 16384

/* What came with an observation, beside who it was. */
struct weir_heavy_use {
    uint64_t cost, denied, exhausted; /* sums over the observations, by weight */
    uint64_t capacity, remaining;     /* as last seen; capacity 0: not known */
    uint64_t reset_after_ns, seen_ns; /* likewise; seen_ns: when that was */
    uint32_t route;                   /* the route of most observations, if one has more than half
                                         (Boyer, Moore); the user's own numbers */
    uint32_t route_votes;             /* for it, over those against it */
    uint32_t rule, generation;        /* of the rules, as last seen: the user's own numbers */
};

struct weir_heavy_entry {
    uint64_t hash[2];
    uint64_t count, error;
    struct weir_heavy_use use;
    uint8_t name_size;
    uint16_t text_size;
    char name[WEIR_HEAVY_NAME_MAX];
    char text[WEIR_HEAVY_TEXT_MAX];
};

struct weir_heavy;

/* Room for 1..WEIR_HEAVY_ROOM_MAX items. Errors: WEIR_ERR_MEMORY. */
int weir_heavy_open(struct weir_heavy **heavy, uint32_t room) __attribute__((warn_unused_result));
void weir_heavy_close(struct weir_heavy *heavy);
void weir_heavy_clear(struct weir_heavy *heavy);

/* Counts an observation of `weight` (1 or more). Returns the item's `use`, to which the caller adds
 * what came with it; *fresh: the item is new here and `use` is all zero: the caller gives it its
 * texts by weir_heavy_name. Valid until the next call. */
struct weir_heavy_use *weir_heavy_count(struct weir_heavy *heavy, const uint64_t hash[2],
                                        uint64_t weight, bool *fresh);
/* The texts of the item that the last weir_heavy_count has made; copied, and cut where too long. */
void weir_heavy_name(struct weir_heavy *heavy, struct weir_bytes name, struct weir_bytes text);
/* Votes for the route of an observation, with its weight. */
void weir_heavy_vote(struct weir_heavy_use *use, uint32_t route, uint64_t weight);

/* Adds all of `from` to `into`, which keeps the largest counts that it has room for. Takes
 * O(n log n) and memory for a list of both. Errors: WEIR_ERR_MEMORY (`into` is as it was). */
int weir_heavy_merge(struct weir_heavy *into, const struct weir_heavy *from)
    __attribute__((warn_unused_result));

/* Weight of all observations; items; the most that an item without an entry can have. */
uint64_t weir_heavy_weight(const struct weir_heavy *heavy);
uint32_t weir_heavy_used(const struct weir_heavy *heavy);
uint64_t weir_heavy_floor(const struct weir_heavy *heavy);
uint32_t weir_heavy_room(const struct weir_heavy *heavy);

/* Copies item number `at` < weir_heavy_used; they are in no order. */
void weir_heavy_get(const struct weir_heavy *heavy, uint32_t at, struct weir_heavy_entry *entry);

#endif
