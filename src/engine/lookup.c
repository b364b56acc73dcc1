/* SPDX-License-Identifier: Apache-2.0 */
/* see lookup.h */
#include "engine/lookup.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/reason.h"
#include "engine/apply.h"
#include "engine/state.h"
#include "engine/turn.h"
#include "feature/reserve/engine/reservation.h"

/* --- The copy --------------------------------------------------------------------------------- */

/* NULL: it does not fit, or there is no memory. */
static struct weir_lookup *copy_request(struct weir_engine *engine,
                                        const struct weir_rules_query *query)
{
    const struct weir_request *request = query->request;
    size_t bytes = 0, size = sizeof(struct weir_lookup);
    for (uint16_t i = 0; i < request->count; i++)
        bytes += request->values[i].data != NULL ? request->values[i].size : 0;
    size += request->count * sizeof(struct weir_bytes) + bytes;
    if (bytes > WEIR_LOOKUP_BYTES_MAX || size > WEIR_LOOKUPS_BYTES_MAX - engine->lookup_bytes)
        return NULL;
    struct weir_lookup *lookup = malloc(size);
    if (!lookup)
        return NULL;
    memset(lookup, 0, sizeof *lookup);
    lookup->size = size;
    lookup->client = request->client;
    memcpy(lookup->trusted, request->trusted, sizeof lookup->trusted);
    lookup->cost = request->cost;
    lookup->fields = request->fields;
    lookup->resting = query->resting;
    lookup->now_ns = query->now_ns;
    lookup->count = request->count;
    char *at = (char *)&lookup->values[request->count];
    for (uint16_t i = 0; i < request->count; i++) {
        const struct weir_bytes *value = &request->values[i];
        lookup->values[i] = (struct weir_bytes){NULL, 0};
        if (!value->data)
            continue;
        lookup->values[i] = (struct weir_bytes){at, value->size};
        if (value->size > 0)
            memcpy(at, value->data, value->size);
        at += value->size;
    }
    return lookup;
}

/* --- Waiting ---------------------------------------------------------------------------------- */

static void wait_for(struct weir_engine *engine, struct weir_lookup *lookup)
{
    engine->directory->ops->wait(engine->directory, &lookup->waiter);
    lookup->waits = true;
    engine->looking++;
}

static void wait_no_more(struct weir_engine *engine, struct weir_lookup *lookup)
{
    lookup->waits = false;
    engine->looking--;
}

/* By what the directory has. */
static int hurry(struct weir_engine *engine, struct weir_entry *entry,
                 struct weir_rules_query *query)
{
    engine->directory->hurried = true;
    int err = weir_engine_evaluate(engine, entry, query);
    engine->directory->hurried = false;
    return err == WEIR_ERR_PENDING ? WEIR_ERR_STORE : err;
}

/* The rules once more, and what was asked for behind them. */
static int apply_again(struct weir_engine *engine, struct weir_lookup *lookup)
{
    struct weir_entry *entry = lookup->entry;
    struct weir_decision *decision = &entry->decision;
    struct weir_reason *reason = &lookup->reason;
    struct weir_request request; /* of its values, only those below `count` are ever read */
    request.client = lookup->client;
    memcpy(request.trusted, lookup->trusted, sizeof request.trusted);
    request.cost = lookup->cost;
    request.fields = lookup->fields;
    request.count = lookup->count;
    memcpy(request.values, lookup->values, lookup->count * sizeof *lookup->values);
    struct weir_rules_query query = {.request = &request,
                                     .now_ns = lookup->now_ns,
                                     .resting = lookup->resting,
                                     .reason = reason};
    int err = ++lookup->rounds < WEIR_LOOKUP_ROUNDS ? weir_engine_evaluate(engine, entry, &query)
                                                    : hurry(engine, entry, &query);
    if (err == 0 && lookup->idempotency_key.data)
        err = weir_engine_apply_idempotency(engine, decision, lookup->idempotency_key, reason);
    if (err == 0 && lookup->reserves)
        err = weir_engine_apply_reservation(engine, decision, entry->estimate, entry->life_ns,
                                            reason);
    return err;
}

/* Nothing of it is charged, and its front end says why. */
static void refuse(struct weir_engine *engine, struct weir_lookup *lookup, int err)
{
    struct weir_decision *decision = &lookup->entry->decision;
    lookup->refused = true;
    if (lookup->reason.text[0] == '\0')
        reason_text(&lookup->reason, weir_error_text(err));
    decision->count = 0;
    decision->error = (int8_t)err;
    decision->verdict = WEIR_DENIED;
    decision->source = WEIR_SOURCE_CLOSED;
    decision->now_ns = engine->now_ns;
}

/* What the directory calls. */
static void on_found(struct weir_directory_waiter *waiter)
{
    struct weir_lookup *lookup = (struct weir_lookup *)(void *)waiter;
    struct weir_engine *engine = lookup->engine;
    struct weir_entry *entry = lookup->entry;
    assert(entry->state == WEIR_ENTRY_LOOKING);
    wait_no_more(engine, lookup);
    int err = apply_again(engine, lookup);
    if (err == WEIR_ERR_PENDING) {
        wait_for(engine, lookup);
        return;
    }
    if (err < 0)
        refuse(engine, lookup, err);
    bool held = lookup->held;
    lookup->held = false;
    entry->state = WEIR_ENTRY_TAKEN;
    if (held)
        engine->done(engine->done_context, &entry->decision);
    else if (err == 0)
        weir_engine_queue(engine, &entry->decision);
    else
        entry->purpose->finish(engine, entry);
}

int weir_lookup_begin(struct weir_engine *engine, struct weir_entry *entry,
                      struct weir_rules_query *query)
{
    struct weir_lookup *lookup = NULL;
    if (engine->looking < engine->pool.size / 2)
        lookup = copy_request(engine, query);
    if (!lookup)
        return hurry(engine, entry, query);
    weir_engine_pin(engine, entry, 0);
    lookup->engine = engine;
    lookup->entry = entry;
    lookup->waiter.done = on_found;
    engine->lookup_bytes += lookup->size;
    entry->lookup = lookup;
    wait_for(engine, lookup);
    return 0;
}

/* --- For front ends --------------------------------------------------------------------------- */

bool weir_engine_looks(const struct weir_decision *decision)
{
    return weir_lookup_waits(weir_entry_of(decision));
}

void weir_engine_look(struct weir_engine *engine, struct weir_decision *decision)
{
    struct weir_entry *entry = weir_entry_of(decision);
    assert(entry->state == WEIR_ENTRY_TAKEN && weir_lookup_waits(entry));
    (void)engine;
    entry->state = WEIR_ENTRY_LOOKING;
    entry->lookup->held = true;
}

const struct weir_reason *weir_engine_refusal(const struct weir_decision *decision)
{
    const struct weir_lookup *lookup = weir_entry_of(decision)->lookup;
    return lookup && lookup->refused ? &lookup->reason : NULL;
}
