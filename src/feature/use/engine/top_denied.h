/* SPDX-License-Identifier: Apache-2.0 */
/* The most denied keys: a summary of heavy hitters (feature/use/heavy.h, which states the error) of
 * WEIR_TOP_DENIED_KEYS keys a worker, that other threads may read.
 *
 * Memory: about 85 KiB. No allocation after opening.
 *
 * Threads: one thread records (the worker); any thread may collect. A one-word lock lets them in
 * one at a time. The worker never waits for it: a denial that comes in the microseconds while a
 * reader copies is not recorded.
 */
#ifndef WEIR_FEATURE_USE_ENGINE_TOP_DENIED_H
#define WEIR_FEATURE_USE_ENGINE_TOP_DENIED_H

#include "feature/use/heavy.h"

#define WEIR_TOP_DENIED_KEYS 256 /* a worker */

struct weir_top_denied;

/* Errors: WEIR_ERR_MEMORY. */
int weir_top_denied_open(struct weir_top_denied **top_denied) __attribute__((warn_unused_result));
void weir_top_denied_close(struct weir_top_denied *top_denied);

/* Counts one denial of the key with `hash` (of limit and key values). True: the key is new here,
 * and weir_top_denied_name has to be called next, with the limit's name and what is shown of the
 * key (core/text/shown.h), which is copied. */
bool weir_top_denied_count(struct weir_top_denied *top_denied, const uint64_t hash[2])
    __attribute__((warn_unused_result));
void weir_top_denied_name(struct weir_top_denied *top_denied, struct weir_bytes name,
                          struct weir_bytes key);

/* Adds the keys of the limit `name` (data == NULL: of all limits) to list[0..count), one entry a
 * key, so that several workers' keys can be collected into one list; an entry's count is its
 * denials, its name the limit's, its text the key's. Keys that find no room are left out. Returns
 * the new count, at most `max`; WEIR_TOP_DENIED_KEYS times the number of workers is always
 * enough. */
size_t weir_top_denied_collect(struct weir_top_denied *top_denied, struct weir_bytes name,
                               struct weir_heavy_entry *list, size_t count, size_t max);

/* Sorts a list by denials, most first; ties by name and key. */
void weir_top_denied_sort(struct weir_heavy_entry *list, size_t count);

#endif
