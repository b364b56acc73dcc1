/* SPDX-License-Identifier: Apache-2.0 */
/* Copying states into a new region, from one of another size or share of spans.
 *
 * Live states move to the buckets that their keys have in the new region (position.h), and into
 * spans as large as their content. If the region is too small, states are evicted as for new keys
 * (placement.h). Parameters are copied. Overflow cells are not, because it is unknown which keys
 * are in them. */
#ifndef WEIR_TABLE_FILE_COPY_H
#define WEIR_TABLE_FILE_COPY_H

#include "table/region.h"

/* Fills `to`, which no other process can see yet, from `from`, which no other process has open.
 * Both have the same secret. Errors: WEIR_ERR_MEMORY. */
int copy_region(struct weir_table *to, const struct weir_table *from)
    __attribute__((warn_unused_result));

#endif
