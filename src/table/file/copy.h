/* SPDX-License-Identifier: Apache-2.0 */
/* Copying states into a new region: from one of another size, or of an older version.
 *
 * Live states move to the buckets that their keys have in the new region (position.h), and into
 * spans as large as their content. If the region is too small, states are evicted as for new keys
 * (placement.h). Parameters are copied. Overflow cells are not, because it is unknown which keys
 * are in them. */
#ifndef WEIR_TABLE_FILE_COPY_H
#define WEIR_TABLE_FILE_COPY_H

#include "core/span/span_change.h"
#include "table/region.h"

/* Fills `to`, which no other process can see yet, from `from`, which no other process has open.
 * Both have the same secret. Errors: WEIR_ERR_MEMORY. */
int copy_region(struct weir_table *to, const struct weir_table *from)
    __attribute__((warn_unused_result));

/* The same, one state at a time, for a region of another format: copy_begin, copy_state for each
 * state, and copy_end, also after a copy_begin that failed. */
struct copy {
    struct weir_table *to;
    struct weir_table_owner *owner; /* writes to `to` */
    struct position_map map;        /* of the source */
    uint32_t identity_bits;         /* of the source */
    uint64_t now_ns;
};

/* A live state. `at`: the first bucket and the tag of its key in the source. */
struct copy_state {
    struct position at;
    const struct weir_limit *limit; /* that it was made under */
    struct span_view span;          /* where limit needs one; else none, and ... */
    uint32_t state[3];              /* ... this is the packed cell */
    uint16_t param;                 /* of the new region */
};

/* `copy` has its first fields but `owner`; `mark_ns` is the latest time of the source. Errors:
 * WEIR_ERR_MEMORY. */
int copy_begin(struct copy *copy, uint64_t mark_ns) __attribute__((warn_unused_result));
void copy_state(struct copy *copy, const struct copy_state *state);
void copy_end(struct copy *copy);

#endif
