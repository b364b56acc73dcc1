/* SPDX-License-Identifier: Apache-2.0 */
/* The most denied keys: a bounded space-saving sketch.
 *
 * Source: Metwally, Agrawal, El Abbadi, "Efficient Computation of Frequent and Top-k Elements in
 * Data Streams" (ICDT 2005), Space-Saving. It keeps m keys with counters. A key that it has is
 * counted; one that it doesn't have takes the place of the key with the smallest count, inherits
 * that count as its possible error, and adds one. So every key denied more than D / m times, of D
 * denials, is in it, and a count is at most `error` too high.
 *
 *   heap[0..m)   entry numbers, smallest count first (replacing is O(log m), 8 steps)
 *   index[2m]    key hash -> entry number, linear probing
 *   entries[m]   hash, count, error, name of the limit, text of the key
 *
 * Memory: WEIR_TOP_DENIED_KEYS entries of about 240 bytes: 64 KiB. No allocation after opening.
 *
 * Threads: one thread records (the worker); any thread may collect. A one-word lock lets them in
 * one at a time. The worker never waits for it: a denial that comes in the microseconds while a
 * reader copies is not recorded.
 */
#ifndef WEIR_ENGINE_TOP_DENIED_H
#define WEIR_ENGINE_TOP_DENIED_H

#include <weir/bytes.h>
#include <weir/error.h>

#define WEIR_TOP_DENIED_KEYS 256    /* m: keys kept a worker */
#define WEIR_TOP_DENIED_KEY_MAX 128 /* longer texts are cut and get their hash as a suffix */
#define WEIR_TOP_DENIED_NAME_MAX 64 /* the longest name of a limit */

struct weir_top_denied;

struct weir_denied_key {
    uint64_t hash[2];
    uint64_t denied; /* at most `error` too high */
    uint64_t error;
    uint8_t name_size, key_size;
    char name[WEIR_TOP_DENIED_NAME_MAX];
    char key[WEIR_TOP_DENIED_KEY_MAX];
};

/* Errors: WEIR_ERR_MEMORY. */
int weir_top_denied_open(struct weir_top_denied **top_denied) __attribute__((warn_unused_result));
void weir_top_denied_close(struct weir_top_denied *top_denied);

/* Counts one denial of the key with `hash` (of limit and key values); `name` and `key` are copied
 * when the key is new here. */
void weir_top_denied_record(struct weir_top_denied *top_denied, const uint64_t hash[2],
                            struct weir_bytes name, struct weir_bytes key);

/* Adds the keys of the limit `name` (data == NULL: of all limits) to list[0..count), one entry a
 * key, so that several workers' sketches can be collected into one list. Keys that find no room are
 * left out. Returns the new count, at most `max`; WEIR_TOP_DENIED_KEYS times the number of workers
 * is always enough. */
size_t weir_top_denied_collect(struct weir_top_denied *top_denied, struct weir_bytes name,
                               struct weir_denied_key *list, size_t count, size_t max);

/* Sorts a list by denials, most first; ties by name and key. */
void weir_top_denied_sort(struct weir_denied_key *list, size_t count);

#endif
