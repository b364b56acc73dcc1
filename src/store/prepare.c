/* SPDX-License-Identifier: Apache-2.0 */
/* see weir_store_prepare in store.h */
#include "store/store.h"

int weir_store_prepare(struct weir_store *store, struct weir_store *local, struct weir_limit *limit,
                       struct weir_reason *reason)
{
    int err = store->ops->prepare(store, limit, reason);

    if (err < 0 || local == NULL)
        return err;

    /* It stands in the same rules as the limit, which are not shared yet. */
    struct weir_limit *part = limit->local != NULL ? (struct weir_limit *)limit->local : limit;

    err = local->ops->prepare(local, part, reason);
    limit->id = part->id;
    return err;
}
