/* SPDX-License-Identifier: Apache-2.0 */
/* see ladder_shared.h */
#include "feature/penalties/server/ladder_shared.h"
#include "core/bytes.h"

#include <string.h>

static void job_done(struct weir_keeper_job *job)
{
    struct weir_ladder_call *call = job->context;

    call->err = job->err;
    call->reason = job->reason;
    call->swapped = job->found;
    weir_keeper_free(call->keeper, job);
    call->done(call);
}

static int start(struct weir_ladder_store *base, struct weir_ladder_call *call,
                 enum weir_keeper_op op)
{
    struct weir_keeper *keeper = ((struct weir_ladder_shared *)base)->keeper;
    const struct weir_standing_value *value = call->value;
    struct weir_keeper_job *job =
        weir_keeper_take(keeper, op, value->kind->name, weir_bytes_of(value->shown), call->by);

    if (!job)
        return WEIR_ERR_FULL;
    job->now_ns = call->now_ns;
    job->entry.network = value->kind->address;
    job->entry.entry = call->entry;
    memcpy(job->entry.id, value->id, sizeof value->id);
    job->swap = &call->swap;
    job->ladders = &call->found;
    job->done = job_done;
    job->context = call;
    call->keeper = keeper;
    weir_keeper_start(keeper, job);
    return 0;
}

static int shared_read(struct weir_ladder_store *store, struct weir_ladder_call *call)
{
    return start(store, call, WEIR_KEEPER_LADDERS);
}

static int shared_swap(struct weir_ladder_store *store, struct weir_ladder_call *call)
{
    return start(store, call, WEIR_KEEPER_SWAP);
}

void weir_ladder_shared_init(struct weir_ladder_shared *shared, struct weir_keeper *keeper)
{
    shared->base = (struct weir_ladder_store){.read = shared_read, .swap = shared_swap};
    shared->keeper = keeper;
}
