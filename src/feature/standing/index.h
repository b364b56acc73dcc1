/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a map of standing: from exact values and networks to their first record.
 *
 * Open addressing, at most half full, with groups of eight slots (as in Google's "Swiss tables",
 * 2017): a value is in the group that its hash names, or, where that was full, in the next one that
 * was not. So a walk ends at the first group with an empty slot, mostly the first.
 *
 *   marks   one byte a slot: 0, or 8 bits of the value's hash, never 0; a group's are one word
 *   slots   32 bits of the hash, whose lowest bits are its group, and the number of a record
 *
 * The marks of a million entries are 2 MB, which stay in the caches of a processor: of a value that
 * is not there, as most are, they alone are read, except one time in 70. Then the slots decide.
 *
 * The writer stores a mark before its slot, and takes a slot out before its mark. A slot whose mark
 * is missing is not found, a mark without a slot costs a look. Removing moves a value back into its
 * place; it is copied before its old place is taken, so that a reader that looks there still finds
 * it.
 */
#ifndef WEIR_FEATURE_STANDING_INDEX_H
#define WEIR_FEATURE_STANDING_INDEX_H

#include "feature/standing/layout.h"

/* The 32 bits of a value that the index goes by. */
uint32_t standing_index_tag(const struct weir_standing *map, const uint64_t id[2], uint8_t shape);

/* Asks the memory for the marks that standing_index_read begins with. */
void standing_index_prefetch(const struct weir_standing *map, uint32_t tag);

/* For readers: the first record of a value, whose value and follower it copies; 0: not there.
 * *retry becomes true when the map changed during the walk. */
uint32_t standing_index_read(const struct weir_standing *map, uint32_t tag, const uint64_t id[2],
                             uint8_t shape, struct standing_value *value, uint32_t *next,
                             bool *retry);

/* For the writer: the slot of a value, or that of a new one when `add` (its record is 0 then and
 * must be linked at once). Returns SIZE_MAX when it is not there. */
size_t standing_index_slot(const struct weir_standing *map, uint32_t tag, const uint64_t id[2],
                           uint8_t shape, bool add);
uint32_t standing_index_record(const struct weir_standing *map, size_t slot);
/* Links another first record; 0 removes the slot. */
void standing_index_link(struct weir_standing *map, size_t slot, uint32_t tag, uint32_t record);

#endif
