/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of a directory: by digest, bounded, each entry for a time.
 *
 *   slots    uint32_t, open addressing, at most half full  ──▶  entries  | digest, times, record |
 *
 * Full, it takes the place of an entry that has not been found since the hand passed it last
 * (CLOCK, Corbató 1968): one pass costs little, and what is in use stays. A digest's place is mixed
 * with a seed, so that a client that tries keys cannot aim at one.
 *
 * Memory: 72 bytes an entry and 8 to 16 for its slot, reserved at once and touched as it fills;
 * records are the heap's. Nothing is allocated after opening.
 * Threads: one owner.
 */
#ifndef WEIR_FEATURE_IDENTITY_SERVER_DIRECTORY_CACHE_H
#define WEIR_FEATURE_IDENTITY_SERVER_DIRECTORY_CACHE_H

#include "feature/identity/rules/caller.h"

struct weir_directory_record;

struct weir_directory_entry {
    uint8_t digest[WEIR_DIGEST_BYTES];
    uint64_t refresh_ns;     /* from then on who finds it asks again; UINT64_MAX: has */
    uint64_t fresh_until_ns; /* from then on it is not used */
    uint64_t stale_until_ns; /* but where it cannot be asked again, not from then on */
    struct weir_directory_record *record; /* the cache's; NULL: no caller has this key */
    bool found;                           /* since the hand passed */
};

struct weir_directory_cache {
    struct weir_directory_entry *entries;
    uint32_t *slots; /* index + 1; 0: empty */
    uint32_t count, max, hand, mask;
    uint64_t seed;
};

/* For at most `max` entries, 1 to 2^28. Errors: WEIR_ERR_MEMORY. */
int weir_directory_cache_open(struct weir_directory_cache *cache, uint32_t max, uint64_t seed)
    __attribute__((warn_unused_result));
void weir_directory_cache_close(struct weir_directory_cache *cache);

/* The entry of a digest, or NULL. Valid until the next put or remove. */
struct weir_directory_entry *weir_directory_cache_find(struct weir_directory_cache *cache,
                                                       const uint8_t digest[WEIR_DIGEST_BYTES]);

/* The entry of a digest, its times and record for the caller to set: that of before (its record
 * stays the caller's to free or keep), or one without a record, for which another may have to go.
 */
struct weir_directory_entry *weir_directory_cache_put(struct weir_directory_cache *cache,
                                                      const uint8_t digest[WEIR_DIGEST_BYTES]);

void weir_directory_cache_remove(struct weir_directory_cache *cache,
                                 const uint8_t digest[WEIR_DIGEST_BYTES]);

#endif
