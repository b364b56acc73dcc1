/* SPDX-License-Identifier: Apache-2.0 */
/* The reasons of a map of standing: each text once, with the number of entries that have it.
 *
 * A text that no entry has gives its place to another. The counts and the way from a text to its
 * place are in the writer's own memory.
 */
#ifndef WEIR_FEATURE_STANDING_REASONS_H
#define WEIR_FEATURE_STANDING_REASONS_H

#include "feature/standing/layout.h"

#define STANDING_REASON_BUCKETS 16384

struct standing_reasons {
    uint32_t buckets[STANDING_REASON_BUCKETS]; /* by hash, numbers of reasons */
    uint32_t next[WEIR_STANDING_REASONS_MAX];
    uint32_t users[WEIR_STANDING_REASONS_MAX];
    uint32_t used, free;
};

/* The number of a text, for one more entry; 0 for an empty text or when there is no place. */
uint32_t standing_reasons_take(struct weir_standing *map, struct standing_reasons *reasons,
                               const char *text, uint8_t size);
void standing_reasons_release(struct weir_standing *map, struct standing_reasons *reasons,
                              uint32_t number);

/* For readers: copies the text of a number (0: empty). What it copies may change meanwhile: the
 * caller finds that out by `changes`. */
void standing_reasons_read(const struct weir_standing *map, uint32_t number,
                           struct weir_standing_entry *entry);

#endif
