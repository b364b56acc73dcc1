/* SPDX-License-Identifier: Apache-2.0 */
/* State files of version 1, which weir wrote until November 2026: reading them, to copy their
 * states into a region of the present format.
 *
 * This module has its own copy of the old format: the structs of the region, of the compiled limits
 * in it, and of the logs in spans, which were linked lists of 16 bytes an event with room for N of
 * them. Cells, segments and leases have not changed. Everything is checked before it is used, and
 * nothing is written to the file: what dead owners left unfinished is undone in a private copy of
 * its pages.
 *
 * Overflow states are not copied, because it is unknown which keys were in them. */
#ifndef WEIR_TABLE_FILE_VERSION1_H
#define WEIR_TABLE_FILE_VERSION1_H

#include "table/region.h"

struct version1;

/* Whether the beginning of a file is that of version 1; `size`: how many bytes of it are there. */
bool version1_is(const void *header, size_t size);

/* Maps and checks a file of `size` bytes that no other process has open. `wall_ns`: the wall clock
 * now. Errors: WEIR_ERR_DAMAGED, WEIR_ERR_IO, WEIR_ERR_MEMORY. */
int version1_open(struct version1 **old, int fd, uint64_t size, uint64_t wall_ns,
                  struct weir_reason *reason) __attribute__((warn_unused_result));
void version1_close(struct version1 *old);

const uint64_t *version1_secret(const struct version1 *old);

/* Fills `to`, which no other process can see yet, and which was made with the same secret. Errors:
 * WEIR_ERR_MEMORY. */
int version1_copy(struct weir_table *to, struct version1 *old) __attribute__((warn_unused_result));

#endif
