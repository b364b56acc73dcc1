/* Copying a region into one of another size: what fits.
 *
 * Live states move to the buckets that their keys have in the new region (position.h); where it is
 * too small, those nearest to fresh are left behind, denying ones last. Parameters and their
 * overflow states come along. Overflow states of single buckets don't: the keys that share one are
 * scattered.
 */
#ifndef WEIR_TABLE_COPY_H
#define WEIR_TABLE_COPY_H

#include "table/region.h"

/* Fills `to`, new and not yet seen by others, from `from`, which nobody else has open. Takes over
 * its secret's meaning: both have the same one. Errors: WEIR_ERR_MEMORY. */
int copy_region(struct weir_table *to, const struct weir_table *from)
    __attribute__((warn_unused_result));

#endif
