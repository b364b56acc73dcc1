/* SPDX-License-Identifier: Apache-2.0 */
/* see apply.h */
#include "engine/apply.h"

#include <assert.h>
#include <string.h>

#include "core/text/reason.h"
#include "engine/hook.h"
#include "engine/lease.h"
#include "engine/state.h"
#include "engine/token/caller.h"
#include "feature/challenge/rules/solution.h"
#include "feature/standing/rules/match.h"
#include "rules/charge/top_up.h"
#include "rules/counted.h"
#include "rules/match/key_values.h"

/* Sets the time of a query, and which schedules are at rest then. */
static void set_time(struct weir_engine *engine, struct weir_rules_query *query)
{
    struct weir_moment *moment = &engine->moment;
    uint64_t now_ns = engine->clock ? engine->clock(engine->clock_context) : engine->now_ns;
    if (now_ns < moment->from_ns || now_ns >= moment->until_ns)
        weir_rules_moment(engine->generation->rules, now_ns, moment);
    query->now_ns = now_ns;
    query->resting = moment->resting;
}

/* Keeps the names of the caller: what a limit had to find out, else what the request says. A denial
 * is known when the request is gone. */
static __attribute__((noinline)) void keep_names(struct weir_entry *entry,
                                                 const struct weir_generation *generation,
                                                 const struct weir_request *request)
{
    struct weir_identity *identity = &entry->identity;
    if (!identity->user.data && request->count > WEIR_ATTR_USER)
        identity->user = request->values[WEIR_ATTR_USER];
    if (!identity->org.data && request->count > WEIR_ATTR_ORG)
        identity->org = request->values[WEIR_ATTR_ORG];
    if (identity->user.data)
        identity->user = weir_entry_keep_name(&entry->decision, identity->user);
    if (identity->org.data)
        identity->org = weir_entry_keep_name(&entry->decision, identity->org);
    if (generation->warns && identity->plan.data)
        identity->plan = weir_entry_keep_name(&entry->decision, identity->plan);
}

/* Whether there is any of them. */
static inline bool has_names(const struct weir_entry *entry, const struct weir_request *request)
{
    return entry->identity.user.data || entry->identity.org.data || entry->identity.plan.data ||
           (request->count > WEIR_ATTR_USER && request->values[WEIR_ATTR_USER].data) ||
           (request->count > WEIR_ATTR_ORG && request->values[WEIR_ATTR_ORG].data);
}

/* Numbers the caller, for limits that follow health: as keep_names, before that. */
static __attribute__((noinline)) void number_caller(const struct weir_engine *engine,
                                                    struct weir_entry *entry,
                                                    const struct weir_request *request,
                                                    const struct weir_address *client)
{
    struct weir_bytes user = entry->identity.user;
    if (!user.data && request->count > WEIR_ATTR_USER)
        user = request->values[WEIR_ATTR_USER];
    entry->caller = weir_caller_number(engine->secret, user, client);
}

/* What few rules want to know of a caller: one test on the path of all others. */
static __attribute__((noinline)) void look_at_caller(const struct weir_engine *engine,
                                                     const struct weir_generation *generation,
                                                     struct weir_entry *entry,
                                                     const struct weir_request *request,
                                                     const struct weir_address *client)
{
    if (generation->denies_unknown && entry->standing.unknown) {
        entry->stands = true;
        entry->hooks |= WEIR_HOOK_BIT(STANDING);
    }
    if (generation->adapts)
        number_caller(engine, entry, request, client);
}

/* Few callers have another standing than good. */
static void look_at_standing(struct weir_entry *entry)
{
    entry->stands = entry->standing.entry.level != WEIR_STANDING_GOOD;
    if (entry->stands)
        entry->hooks |= WEIR_HOOK_BIT(STANDING);
}

/* Only requests are a part of how clients behave. */
static uint8_t behaves(const struct weir_decision *decision)
{
    return decision->op == WEIR_OP_DECIDE ? RULES_BEHAVES_COUNT
           : decision->op == WEIR_OP_PEEK ? RULES_BEHAVES_LOOK
                                          : RULES_BEHAVES_RECALL;
}

int weir_engine_evaluate(struct weir_engine *engine, struct weir_entry *entry,
                         struct weir_rules_query *query)
{
    struct weir_generation *generation = entry->lookup ? entry->generation : engine->generation;
    struct weir_address inside;
    entry->decision.count = 0;
    const struct weir_address *client =
        weir_rules_counted_by(generation->rules, &query->request->client, &inside);
    entry->decision.network = weir_address_network(client);
    entry->scratch.used = 0;
    entry->keeps = true;
    /* An operation for homes stays one when its caller is known only now. */
    entry->hooks = generation->hooks | (entry->homes ? WEIR_HOOK_BIT(REACH) : 0);
    entry->borrow = NULL;
    entry->lending = NULL;
    entry->unaided = false;
    entry->strike_count = 0;
    entry->stands = false;
    entry->class = 0;
    if (__builtin_expect(generation->scores, 0)) {
        query->score = &entry->score;
        entry->score.found = false;
        query->behaves = behaves(&entry->decision);
    }
    query->map = engine->standing;
    query->missing = engine->standing_missing;
    query->standing = &entry->standing;
    query->strikes = engine->strikes && generation->strikes ? &engine->struck : NULL;
    query->refuses = entry->decision.op == WEIR_OP_DECIDE || entry->decision.op == WEIR_OP_PEEK;
    query->rules = generation->rules;
    query->secret = engine->secret;
    query->scratch = &entry->scratch;
    query->directory = engine->directory;
    query->tokens = engine->tokens;
    query->identity = &entry->identity;
    query->loans = &engine->loans;
    query->keep_tuples = engine->keep_tuples;
    query->class = &entry->class;
    query->place = engine->observe ? &entry->place : NULL;
    int checks = weir_rules_checks(query, entry->checks);
    if (checks == WEIR_ERR_STORE)
        reason_text(query->reason, "who is calling cannot be looked up now");
    if (checks < 0)
        return checks;
    if (__builtin_expect(query->map != NULL || query->missing, 0))
        look_at_standing(entry);
    if (__builtin_expect(generation->looks_at_caller, 0))
        look_at_caller(engine, generation, entry, query->request, client);
    if (engine->observe) {
        entry->client = *client;
        if (has_names(entry, query->request))
            keep_names(entry, generation, query->request);
    } else if (__builtin_expect(generation->warns, 0)) {
        weir_engine_keep_identity(entry, &entry->identity);
    }
    if (!entry->lookup) { /* which has pinned them */
        weir_engine_pin(engine, entry, checks);
    } else {
        entry->decision.count = (uint16_t)checks;
        weir_engine_prefetch(engine, &entry->decision);
    }
    if (__builtin_expect(query->strikes != NULL, 0) && engine->struck.count > 0) {
        int err = weir_strikes_keep(entry, &engine->struck, query->reason);
        if (err < 0)
            return err;
    }
    return __builtin_expect(engine->loans.count > 0, 0)
               ? weir_borrow_offer(entry, &engine->loans, query->reason)
               : 0;
}

int weir_engine_apply_rules(struct weir_engine *engine, struct weir_decision *decision,
                            const struct weir_request *request, struct weir_reason *reason)
{
    struct weir_entry *entry = weir_entry_of(decision);
    struct weir_rules_query query = {.request = request, .reason = reason};
    if (engine->generation->timed)
        set_time(engine, &query);
    if (__builtin_expect(entry->lookup != NULL, 0))
        weir_lookup_end(engine, entry);
    entry->score.found = entry->score.counted = false;
    int err = weir_engine_evaluate(engine, entry, &query);
    if (__builtin_expect(err == WEIR_ERR_PENDING, 0))
        err = weir_lookup_begin(engine, entry, &query);
    return err;
}

static bool any_state(const struct weir_decision *decision)
{
    for (uint16_t i = 0; i < decision->count; i++)
        if (weir_check_has_state(&decision->checks[i]))
            return true;
    return false;
}

/* A floor that is nothing denies without a look at a state (feature/region/rules/region.h). With a
 * record beside it the store is asked, since it may have recorded that the home has admitted the
 * request. */
static void ask_floors(struct weir_decision *decision)
{
    for (uint16_t i = 0; i < decision->count; i++)
        if (decision->checks[i].limit)
            decision->checks[i].flags &= (uint8_t)~WEIR_CHECK_ALWAYS_DENY;
}

int weir_engine_apply_idempotency(struct weir_engine *engine, struct weir_decision *decision,
                                  struct weir_bytes key, struct weir_reason *reason)
{
    struct weir_entry *entry = weir_entry_of(decision);
    uint64_t lease_id;
    assert(decision->policy == WEIR_POLICY_ALL && key.size > 0 &&
           key.size <= WEIR_IDEMPOTENCY_KEY_MAX);
    if (weir_lookup_waits(entry)) {
        memcpy(entry->lookup->key, key.data, key.size);
        entry->lookup->idempotency_key = (struct weir_bytes){entry->lookup->key, key.size};
        return 0;
    }
    ask_floors(decision);
    if (!any_state(decision))
        return 0;
    int err = WEIR_ERR_TOO_LARGE;
    if (decision->count < WEIR_CHECKS_MAX)
        err = weir_rules_idempotency(entry->generation->rules, entry->checks, decision->count, key,
                                     engine->secret, &entry->scratch,
                                     &entry->checks[decision->count], &lease_id);
    if (err < 0) {
        reason_text(reason,
                    "too many limits, or too long keys, for an idempotency key beside them");
        return err;
    }
    if (weir_lease_wanted(decision))
        decision->lease.id = lease_id;
    decision->count++;
    return 0;
}

int weir_engine_apply_key(struct weir_engine *engine, struct weir_decision *decision, uint32_t rule,
                          const struct weir_key_values *values, struct weir_reason *reason)
{
    struct weir_entry *entry = weir_entry_of(decision);
    decision->count = 0;
    entry->scratch.used = 0;
    entry->keeps = true;
    int checks = weir_rules_key_check(engine->generation->rules, rule, values, engine->secret,
                                      &entry->scratch, entry->checks, reason);
    if (checks < 0)
        return checks;
    weir_engine_pin(engine, entry, checks);
    return 0;
}

bool weir_engine_apply_top_up(struct weir_decision *decision)
{
    struct weir_check check;
    if (!weir_rules_top_up(weir_decision_rules(decision), &decision->checks[0], &check))
        return false;
    decision->checks[0] = check;
    decision->count = 1;
    return true;
}

void weir_engine_apply_solution(struct weir_engine *engine, struct weir_decision *decision,
                                const unsigned char *nonce)
{
    struct weir_entry *entry = weir_entry_of(decision);
    entry->keeps = true;
    weir_rules_solution(engine->generation->rules, nonce, engine->secret, &entry->scratch,
                        entry->checks);
    weir_engine_pin(engine, entry, 1);
}
