/* SPDX-License-Identifier: Apache-2.0 */
/* see store.h: preparing limits, and the embedded store, which is the table itself */
#include "store/store.h"

#include <stdlib.h>

#include "core/text/reason.h"
#include "table/submit.h"
#include "table/table.h"

int weir_store_prepare(struct weir_store *store, struct weir_store *local, struct weir_limit *limit,
                       struct weir_reason *reason)
{
    int err = store->ops->prepare(store, limit, reason);

    if (err < 0 || !local)
        return err;

    /* It belongs to the same rules as the limit, which no other thread has yet. */
    struct weir_limit *part = limit->local ? (struct weir_limit *)limit->local : limit;

    if (part == limit && limit->id != 0) /* both are on one table */
        return 0;
    err = local->ops->prepare(local, part, reason);
    if (limit->id == 0)
        limit->id = part->id;
    return err;
}

/* --- The embedded store ----------------------------------------------------------------------- */

struct embedded {
    struct weir_store store;
    struct weir_table *table;
    struct weir_table_owner *owner;
};

static struct embedded *embedded_of(struct weir_store *store)
{
    return (struct embedded *)(void *)store; /* its first member */
}

static int prepare(struct weir_store *store, struct weir_limit *limit, struct weir_reason *reason)
{
    int err = weir_table_intern(embedded_of(store)->table, limit);

    reason->text[0] = '\0';
    if (err == WEIR_ERR_FULL)
        reason_text(reason, "state.size is too small for it");
    return err;
}

static size_t submit(struct weir_store *store, uint64_t now_ns,
                     struct weir_decision *const *decisions, size_t count)
{
    weir_table_submit(embedded_of(store)->owner, now_ns, decisions, count);
    return 0;
}

static void prefetch(struct weir_store *store, const struct weir_decision *decision)
{
    weir_table_prefetch(embedded_of(store)->owner, decision);
}

/* A spare knows what was decided on it. */
static int prepare_spare(struct weir_store *store, struct weir_limit *limit,
                         struct weir_reason *reason)
{
    reason->text[0] = '\0';
    return 0;
}

static bool adopt(struct weir_table *spare, const struct weir_decision *decision)
{
    for (uint32_t i = 0; i < decision->count; i++) {
        const struct weir_limit *limit = decision->checks[i].limit;

        /* Checks of these operations have no limit. */
        if (decision->op < WEIR_OP_RELEASE && limit && limit->id != 0 &&
            weir_table_adopt(spare, limit) < 0)
            return false;
    }
    return true;
}

static size_t submit_spare(struct weir_store *store, uint64_t now_ns,
                           struct weir_decision *const *decisions, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (adopt(embedded_of(store)->table, decisions[i]))
            weir_table_submit(embedded_of(store)->owner, now_ns, &decisions[i], 1);
        else
            decisions[i]->error = WEIR_ERR_RANGE;
    return 0;
}

static void flush(struct weir_store *store)
{
}

/* Nothing is ever pending. */
static void cancel(struct weir_store *store, struct weir_decision *decision)
{
}

static void embedded_close(struct weir_store *store)
{
    weir_table_detach(embedded_of(store)->owner);
    free(embedded_of(store));
}

static int open_with(struct weir_store **store, struct weir_table *table,
                     const struct weir_store_ops *ops)
{
    struct embedded *embedded = calloc(1, sizeof *embedded);

    if (!embedded)
        return WEIR_ERR_MEMORY;
    embedded->store.ops = ops;
    embedded->table = table;

    int err = weir_table_attach(table, &embedded->owner);

    if (err < 0) {
        free(embedded);
        return err;
    }
    *store = &embedded->store;
    return 0;
}

int weir_store_embedded_open(struct weir_store **store, struct weir_table *table)
{
    static const struct weir_store_ops ops = {
        .name = "embedded",
        .prepare = prepare,
        .submit = submit,
        .prefetch = prefetch,
        .flush = flush,
        .cancel = cancel,
        .close = embedded_close,
    };

    return open_with(store, table, &ops);
}

int weir_store_embedded_move(struct weir_store *store, struct weir_table *table)
{
    struct embedded *embedded = embedded_of(store);
    struct weir_table_owner *owner;
    int err = weir_table_attach(table, &owner);

    if (err < 0)
        return err;
    weir_table_detach(embedded->owner);
    embedded->owner = owner;
    embedded->table = table;
    return 0;
}

struct weir_table_owner *weir_store_embedded_owner(struct weir_store *store)
{
    return embedded_of(store)->owner;
}

static bool needs_state(const struct weir_decision *decision)
{
    if (decision->op >= WEIR_OP_RELEASE) /* whose checks have no limit */
        return true;
    for (uint32_t i = 0; i < decision->count; i++)
        if (weir_check_has_state(&decision->checks[i]))
            return true;
    return false;
}

static size_t fail_all(struct weir_store *store, uint64_t now_ns,
                       struct weir_decision *const *decisions, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (needs_state(decisions[i]))
            decisions[i]->error = WEIR_ERR_STORE;
        else
            weir_table_submit(embedded_of(store)->owner, now_ns, &decisions[i], 1);
    return 0;
}

int weir_store_absent_open(struct weir_store **store, struct weir_table *stand_in)
{
    static const struct weir_store_ops ops = {
        .name = "absent",
        .prepare = prepare,
        .submit = fail_all,
        .flush = flush,
        .cancel = cancel,
        .close = embedded_close,
    };

    return open_with(store, stand_in, &ops);
}

int weir_store_spare_open(struct weir_store **store, struct weir_table *spare)
{
    static const struct weir_store_ops ops = {
        .name = "spare",
        .prepare = prepare_spare,
        .submit = submit_spare,
        .flush = flush,
        .cancel = cancel,
        .close = embedded_close,
    };

    return open_with(store, spare, &ops);
}
