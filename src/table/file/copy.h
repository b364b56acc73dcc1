/* SPDX-License-Identifier: Apache-2.0 */
/* Copying states into a new region: from one of another size, or of an older version.
 *
 * Live states move to the buckets that their keys have in the new region (position.h), and into
 * spans as large as their content; where it is too small, the states that go are those that would
 * go for a new one (placement.h). Parameters come along. Overflow cells don't: nobody knows whose
 * keys are in them.
 */
#ifndef WEIR_TABLE_FILE_COPY_H
#define WEIR_TABLE_FILE_COPY_H

#include "table/region.h"

/* Fills `to`, new and not yet seen by others, from `from`, which nobody else has open. Takes over
 * its secret's meaning: both have the same one. Errors: WEIR_ERR_MEMORY. */
int copy_region(struct weir_table *to, const struct weir_table *from)
    __attribute__((warn_unused_result));

/* The same one state at a time, for a region of another format: copy_begin, copy_state for each,
 * copy_end, which goes after every copy_begin. */
struct copy {
    struct weir_table *to;
    struct weir_table_owner *owner; /* writes to `to` */
    struct position_map map;        /* of the source */
    uint32_t identity_bits;         /* of the source */
    uint64_t now_ns;
};

/* A live state. `at` is where the source has its key: its first bucket, and its tag. */
struct copy_state {
    struct position at;
    const struct weir_limit *limit; /* that it was made under */
    const uint64_t *span;           /* where limit needs one; else NULL, and ... */
    uint32_t state[3];              /* ... this is the packed cell */
    uint16_t param;                 /* of the new region */
};

/* `copy` has its first fields but `owner`; `mark_ns` is the latest time of the source. Errors:
 * WEIR_ERR_MEMORY. */
int copy_begin(struct copy *copy, uint64_t mark_ns) __attribute__((warn_unused_result));
void copy_state(struct copy *copy, const struct copy_state *state);
void copy_end(struct copy *copy);

#endif
