/* SPDX-License-Identifier: Apache-2.0 */
/* see lease.h */
#include "engine/lease.h"

#include "engine/state.h"
#include "engine/token/caller.h"
#include "engine/token/lease_token.h"

static bool asks_for_lease(const struct weir_check *check)
{
    return check->limit && check->limit->spec.algorithm == WEIR_CONCURRENCY;
}

bool weir_lease_wanted(const struct weir_decision *decision)
{
    for (uint16_t i = 0; i < decision->count; i++)
        if (asks_for_lease(&decision->checks[i]))
            return true;
    return false;
}

void weir_lease_prepare(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_decision *decision = &entry->decision;
    if (decision->lease.id == 0) {
        if (!weir_lease_wanted(decision))
            return;
        decision->lease.id = weir_lease_draw(engine->secret, &engine->lease_state);
        decision->lease.owner = engine->lease_owner;
    }
    entry->lender = engine->store;
}

/* --- By its token ----------------------------------------------------------------------------- */

/* The table of a node may have been its store before, and be its local store now, or the other way
 * round. */
bool weir_place_is_local(const struct weir_engine *engine, uint8_t place)
{
    bool table = !engine->store->ops->name_of;
    if (place == WEIR_LEASE_TOKEN_LOCAL)
        return engine->local || !table;
    return place == WEIR_LEASE_TOKEN_TABLE ? !table : table;
}

/* A check that names a state and no limit; the digest lives as long as the decision. */
static void set_named(struct weir_decision *decision, uint16_t i,
                      const struct weir_store_name *name)
{
    struct weir_check *check = &decision->checks[i];
    check->tag = name->tag;
    check->key = weir_decision_keep(
        decision, (struct weir_bytes){(const char *)name->digest, sizeof name->digest});
}

int weir_engine_apply_lease(struct weir_engine *engine, struct weir_decision *decision,
                            struct weir_bytes token)
{
    struct weir_entry *entry = weir_entry_of(decision);
    struct weir_lease_fields lease;
    int err = weir_lease_token_read(&lease, token);
    if (err < 0)
        return err;
    decision->count = lease.count;
    decision->op = WEIR_OP_RELEASE;
    decision->lease.id = lease.id;
    entry->begun = lease.begun;
    /* One that another node has named, or nobody: then the states of the lease are the caller. */
    if (!weir_caller_number_holds(engine->secret, lease.begun.caller))
        entry->begun.caller = lease.hash[0][0];
    entry->local = weir_place_is_local(engine, lease.place);
    for (uint16_t i = 0; i < lease.count; i++) {
        struct weir_store_name name = {.tag = lease.tag[i]};
        decision->checks[i] =
            (struct weir_check){.hash = {lease.hash[i][0], lease.hash[i][1]}, .rule = UINT32_MAX};
        weir_lease_token_digest(&lease, i, name.digest);
        if (lease.place == WEIR_LEASE_TOKEN_REMOTE)
            set_named(decision, i, &name);
    }
    return 0;
}

const struct weir_lease_begun *weir_decision_lease_begun(const struct weir_decision *decision)
{
    return &weir_entry_of(decision)->begun;
}

bool weir_engine_lease_lasted(const struct weir_engine *engine,
                              const struct weir_decision *decision, uint64_t now_ns,
                              uint64_t *lasted_ns)
{
    const struct weir_entry *entry = weir_entry_of(decision);
    uint64_t end_ns = entry->local ? now_ns : weir_engine_store_time(engine, now_ns);
    *lasted_ns = end_ns - entry->begun.ns;
    return entry->begun.count > 0 && end_ns >= entry->begun.ns;
}

/* --- Whose answer no client gets ---------------------------------------------------------------
 */

/* Whether a check of this decision holds a lease. */
static bool holds(const struct weir_decision *decision, uint16_t i)
{
    return decision->outcomes[i].charged && decision->checks[i].cost > 0 &&
           asks_for_lease(&decision->checks[i]);
}

bool weir_lease_abandon(struct weir_engine *engine, struct weir_decision *decision)
{
    struct weir_entry *entry = weir_entry_of(decision);
    const struct weir_store_ops *ops = engine->store->ops;
    struct weir_store_name names[WEIR_CHECKS_MAX];
    uint16_t held = 0;
    bool charges = decision->op == WEIR_OP_DECIDE || decision->op == WEIR_OP_DEBIT;
    /* a request that is repeated by its idempotency key gets the same lease, so it must live */
    if (!charges || decision->lease.id == 0 || weir_engine_has_record(decision))
        return false;
    entry->local = decision->source == WEIR_SOURCE_LOCAL;
    bool named = !entry->local && ops->name_of;
    for (uint16_t i = 0; i < decision->count; i++) {
        if (!holds(decision, i))
            continue;
        if (named)
            ops->name_of(engine->store, &decision->checks[i], &names[held]);
        decision->checks[held++] = decision->checks[i];
    }
    if (held == 0)
        return false;
    decision->count = held;
    decision->op = WEIR_OP_RELEASE;
    decision->policy = WEIR_POLICY_ALL;
    decision->deadline_ns = 0;
    entry->keeps = false;    /* the names were made: the keys' texts may go */
    entry->borrow = NULL;    /* its memory has gone to the names */
    entry->lending = NULL;   /* likewise */
    entry->strike_count = 0; /* likewise */
    for (uint16_t i = 0; i < held; i++) {
        struct weir_check *check = &decision->checks[i];
        *check = (struct weir_check){.hash = {check->hash[0], check->hash[1]}, .rule = UINT32_MAX};
        if (named)
            set_named(decision, i, &names[i]);
    }
    return true;
}
