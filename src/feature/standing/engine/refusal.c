/* SPDX-License-Identifier: Apache-2.0 */
/* see refusal.h */
#include "feature/standing/engine/refusal.h"

#include "engine/failure.h"
#include "engine/state.h"
#include "feature/use/engine/pack.h"
#include "feature/use/engine/top_denied.h"

/* Not inlined, as record_denial. */
static __attribute__((noinline)) void record_refusal(struct weir_engine *engine,
                                                     const struct weir_caller_standing *standing)
{
    static const struct weir_bytes name = {WEIR_ANSWER_BY_STANDING,
                                           sizeof(WEIR_ANSWER_BY_STANDING) - 1};
    struct weir_shown_list key;
    if (!weir_top_denied_count(engine->top_denied, standing->hash))
        return;
    weir_pack_text(&key, standing->by);
    weir_top_denied_name(engine->top_denied, name, weir_shown_packed(&key));
}

/* The standing of the caller, at the time of the decision: it may deny, with no check there. */
static void decided(struct weir_engine *engine, struct weir_entry *entry)
{
    const struct weir_caller_standing *standing = &entry->standing;
    struct weir_standing_refusals *c = &engine->standing_refusals;
    struct weir_decision *d = &entry->decision;
    uint64_t until_ns = standing->entry.until_ns, left_ns = 1; /* it ended since it was found */
    if (until_ns > engine->now_ns)
        left_ns = until_ns - engine->now_ns;
    entry->standing_ends_ns = standing->missing        ? WEIR_FAILURE_RETRY_NS
                              : until_ns == WEIR_NEVER ? WEIR_NEVER
                                                       : left_ns;
    if (!standing->refused)
        return;
    d->verdict = WEIR_DENIED;
    d->source = standing->missing ? WEIR_SOURCE_CLOSED : WEIR_SOURCE_STORE;
    d->error = standing->missing ? WEIR_ERR_STORE : d->error;
    d->now_ns = engine->now_ns;
    if (d->op != WEIR_OP_DECIDE || standing->missing)
        return;
    weir_count(standing->entry.level == WEIR_STANDING_REVOKED     ? &c->revoked
               : standing->entry.level == WEIR_STANDING_SUSPENDED ? &c->suspended
                                                                  : &c->unknown,
               1);
    if (standing->by.size > 0)
        record_refusal(engine, standing);
}

const struct weir_hook weir_hook_standing = {.decided = decided};
