/* SPDX-License-Identifier: Apache-2.0 */
/* How a node follows the changes of standing in Redis: which it knows, and when it has missed one.
 *
 *   poll ─▶ reply ─▶ follow ─┬▶ the next changes, in order, each once
 *                            ├▶ POLL: nothing more is known to be there
 *                            ├▶ AGAIN: there is more, or it has to begin anew
 *                            └▶ READ: all entries have to be read; standing_follow_read ends that
 *
 * Changes have numbers without gaps, counted in Redis. A reply begins with the last change that the
 * node knows, if it is still kept. So the node misses nothing unseen:
 *   - a stream that was trimmed beyond what the node knows: the first number is too high
 *   - a fail-over that lost changes: the number of the last one is too low, or, where others have
 *     made new ones meanwhile, the change of the node's number is another one (its hash differs)
 *   - a Redis that was emptied: the epoch is another one, a random word made with the numbers
 *
 * Reading all begins at the number of the reply that led to it. What changes while it lasts has a
 * higher number and comes again afterwards, in order.
 *
 * Pure: no I/O, no clock, no memory.
 */
#ifndef WEIR_FEATURE_STANDING_SERVER_REDIS_FOLLOW_H
#define WEIR_FEATURE_STANDING_SERVER_REDIS_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/bytes.h>

#define STANDING_EPOCH_MAX 32
/* Changes of one reply, the known one included. */
#define STANDING_CHANGES_MAX 256

/* One change, as the reply has it. */
struct standing_change {
    uint64_t number;
    struct weir_bytes field, text, was; /* record.h; `was`: the level before, empty: none */
};

/* The reply to a poll. */
struct standing_news {
    struct weir_bytes epoch, secret;
    uint64_t last; /* the number of the last change; 0: there was none */
    size_t count;
    struct standing_change changes[STANDING_CHANGES_MAX];
};

enum standing_follow_next { STANDING_POLL, STANDING_AGAIN, STANDING_READ };

/* All zero: nothing is known. */
struct standing_follow {
    char epoch[STANDING_EPOCH_MAX + 1];
    uint64_t number; /* of the last change that is known */
    uint64_t hash;   /* of that change; 0: it was no longer kept when all was read */
    bool whole;      /* what is in force is what Redis has, as of `number` */
    uint64_t gaps, reads;
};

/* Takes a reply. Calls `take` for each change that was not known. */
enum standing_follow_next
standing_follow_take(struct standing_follow *follow, const struct standing_news *news,
                     void (*take)(void *context, const struct standing_change *change),
                     void *context);

/* All entries have been read. */
void standing_follow_read(struct standing_follow *follow);

/* What was read so far is of no use: the next reply begins anew. */
void standing_follow_forget(struct standing_follow *follow);

#endif
