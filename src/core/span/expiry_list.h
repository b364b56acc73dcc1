/* SPDX-License-Identifier: Apache-2.0 */
/* What concurrency keeps: leases that expire, in the order of their expiry.
 *
 * A doubly linked list in a span, so that entries leave from its middle and expired ones leave
 * together, all with a few words written:
 *
 *   word 0       head | tail << 16 | free << 32 | taken << 48: entries are numbered from 1, and 0
 *                is none; `free` heads the chain of those given back; those above `taken` were
 *                never used
 *   word 1       the sum of the costs in the list, expired or not | room << 48: the span has room
 *                for so many entries, at most N; 0: for N
 *   entry n      word 0: expiry in ns
 *                word 1: cost (32 bits, saturating) | next << 32 | previous << 48
 *                word 2: id, word 3: owner
 *
 * An entry counts while its expiry > t. The running sum makes a decision look at the expired
 * entries only, and a charge unlinks those. No entry has cost 0. All zero words are an empty list.
 *
 * In a file that is shared, another process may have written any of this. A header with numbers of
 * entries for which the span has no words is an empty list, as is one whose live entries the links
 * do not reach; and every walk ends after as many steps as entries were taken.
 */
#ifndef WEIR_CORE_SPAN_EXPIRY_LIST_H
#define WEIR_CORE_SPAN_EXPIRY_LIST_H

#include "core/span/span_change.h"

#define ENTRIES_HEADER_WORDS 2
#define ENTRIES_STRIDE 4

/* Most words that one expiry_list_unlink writes, the header's two not counted. */
#define ENTRIES_UNLINK_EDITS 3

struct entries {
    uint64_t sum;
    uint32_t capacity;
    uint32_t head, tail, free, taken;
};

/* One entry, by value. */
struct entry {
    uint64_t expiry_ns, cost;
    uint32_t next, previous;
};

/* A limit of N = 0 has room for one entry, for debits. */
static inline uint32_t expiry_list_most(const struct weir_limit *limit)
{
    return limit->spec.rate > 0 ? (uint32_t)limit->spec.rate : 1;
}

/* Words of a span that has room for so many entries. */
static inline uint32_t expiry_list_words(uint32_t entries)
{
    return ENTRIES_HEADER_WORDS + ENTRIES_STRIDE * entries;
}

static inline uint32_t expiry_list_word(uint32_t n)
{
    return expiry_list_words(n - 1);
}

/* False: the header cannot be right; the list is then empty. */
bool expiry_list_load(const struct weir_limit *limit, const struct span_change *change,
                      struct entries *list);
void expiry_list_store(const struct span_change *change, const struct entries *list);
void expiry_list_read(const struct span_change *change, uint32_t n, struct entry *entry);

/* The sum of the costs that have not expired at `now_ns`; *first becomes the first of them. */
uint64_t expiry_list_live(const struct span_change *change, const struct entries *list,
                          uint64_t now_ns, uint32_t *first);

/* Unlinks what has expired. */
void expiry_list_purge(const struct span_change *change, struct entries *list, uint64_t now_ns);

/* Takes a free entry and links it behind all that do not expire later. Returns its number; 0 when
 * none is free. The words of a lease are the caller's. */
uint32_t expiry_list_insert(const struct span_change *change, struct entries *list,
                            uint64_t expiry_ns, uint64_t cost);

void expiry_list_unlink(const struct span_change *change, struct entries *list, uint32_t n);

/* Gives back at most what the entry has, and unlinks it when that was all. */
void expiry_list_give_back(const struct span_change *change, struct entries *list, uint32_t n,
                           uint64_t cost);

void expiry_list_report(const struct weir_limit *limit, const struct span_view *span,
                        const struct weir_use *use, struct weir_report *report);
bool expiry_list_valid(const struct weir_limit *limit, const struct span_view *span);
uint64_t expiry_list_fresh_at(const struct weir_limit *limit, const struct span_view *span);

/* See weir_span_words, weir_span_fits, weir_span_needs and weir_span_resize. */
uint32_t expiry_list_span_words(const struct weir_limit *limit, const struct span_view *span);
bool expiry_list_fits(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
                      uint64_t cost, uint32_t count);
uint32_t expiry_list_needs(const struct weir_span_source *source, const struct weir_limit *to,
                           uint64_t cost, uint32_t count);
void expiry_list_resize(const struct weir_span_source *source, const struct weir_limit *to,
                        uint64_t *out, uint32_t words);

/* Words of a list that is full. */
uint32_t expiry_list_full_words(const struct weir_limit *limit);

#endif
