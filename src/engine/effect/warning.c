/* SPDX-License-Identifier: Apache-2.0 */
/* see warning.h */
#include "engine/effect/warning.h"

#include <stdlib.h>
#include <string.h>

#include "core/period.h"
#include "core/text/siphash.h"
#include "engine/hook.h"
#include "engine/request.h"
#include "engine/state.h"

/* "wrwarn": tells this use of the secret from others. */
#define RECORD_DOMAIN UINT64_C(0x6e7261777277)

/* Sets of two: 4,096 keys that stay above a threshold cost nothing but a look; more cost the store
 * a question now and then. */
#define KNOWN_SETS 2048
#define KNOWN_WAYS 2

struct weir_warnings {
    struct weir_pool pool;
    uint64_t known[KNOWN_SETS][KNOWN_WAYS]; /* 0: free */
};

/* What is reported when the record admits it; kept in the decision's scratch, with its texts behind
 * it. */
struct fact {
    uint64_t used, capacity, resets_at_ns, mark;
    uint32_t rule;
    uint8_t percent, index; /* of the threshold */
    struct weir_bytes key;
};

/* --- Reaching a threshold --------------------------------------------------------------------- */

/* The check with the longest window; UINT16_MAX: this limit warns of nothing. */
static uint16_t longest(const struct weir_decision *decision, uint16_t first, uint16_t end)
{
    const unsigned silent =
        WEIR_CHECK_SHADOW | WEIR_CHECK_UNLIMITED | WEIR_CHECK_ALWAYS_DENY | WEIR_CHECK_COUNTER;
    uint16_t best = UINT16_MAX;
    for (uint16_t i = first; i < end; i++) {
        const struct weir_check *check = &decision->checks[i];
        if ((check->flags & silent) != 0 || !check->limit)
            return UINT16_MAX;
        if (best == UINT16_MAX ||
            check->limit->spec.window_ns > decision->checks[best].limit->spec.window_ns)
            best = i;
    }
    return best;
}

uint8_t weir_decision_warns(const struct weir_decision *decision, uint16_t first, uint16_t end,
                            const struct weir_warn_at *at, struct weir_warn_use *use)
{
    uint16_t i = at->count > 0 ? longest(decision, first, end) : UINT16_MAX;
    const struct weir_borrow *borrow = weir_entry_of(decision)->borrow;
    struct weir_report report;
    uint8_t reached = 0;
    if (i == UINT16_MAX)
        return 0;
    if (borrow && weir_borrow_lends(borrow, &decision->checks[first]))
        return 0; /* a pool is another limit for its borrowers; its owners get their own warnings */
    weir_decision_report_whole(decision, i, &report);
    use->check = i;
    use->capacity = report.limit;
    use->used = report.remaining < report.limit ? report.limit - report.remaining : 0;
    use->reset_after_ns = report.reset_after_ns;
    while (reached < at->count && weir_warn_reached(at->percent[reached], use->used, use->capacity))
        reached++;
    return reached;
}

/* --- What this engine knows ------------------------------------------------------------------- */

/* Names (key, threshold, period); never 0. The key's hash is a keyed one, so that nobody aims. */
static uint64_t mark_of(const struct weir_check *check, uint8_t percent, uint64_t end_ns)
{
    uint64_t mark = check->hash[0] + end_ns * UINT64_C(0x9e3779b97f4a7c15);
    mark = (mark ^ mark >> 29 ^ percent) * UINT64_C(0xbf58476d1ce4e5b9);
    mark ^= mark >> 32;
    return mark != 0 ? mark : 1;
}

/* Whether it is known; it is from now on. */
static bool learn(struct weir_warnings *warnings, uint64_t mark)
{
    uint64_t *set = warnings->known[mark % KNOWN_SETS];
    if (set[0] == mark || set[1] == mark)
        return true;
    set[1] = set[0];
    set[0] = mark;
    return false;
}

static void forget(struct weir_warnings *warnings, uint64_t mark)
{
    uint64_t *set = warnings->known[mark % KNOWN_SETS];
    for (int way = 0; way < KNOWN_WAYS; way++)
        if (set[way] == mark)
            set[way] = 0;
}

/* --- The record ------------------------------------------------------------------------------- */

static char *put(char *out, const void *data, size_t size)
{
    if (size > 0)
        memcpy(out, data, size);
    return out + size;
}

static char *put_number(char *out, uint64_t number)
{
    char digits[20];
    int count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    while (count > 0)
        *out++ = digits[--count];
    *out++ = ',';
    return out;
}

/* Keeps what is to be reported. */
static void keep_fact(struct weir_entry *entry, const struct weir_entry *of, struct fact *fact)
{
    entry->scratch.used = sizeof *fact;
    entry->keeps = true;
    fact->key = weir_decision_keep(&entry->decision, fact->key);
    memcpy(entry->scratch.bytes, fact, sizeof *fact);
    weir_engine_keep_identity(entry, &of->identity);
}

/* The record's check: "limit,threshold,end of the period,key", and a hash that says the same. */
static void make_check(struct weir_engine *engine, struct weir_entry *entry,
                       const struct weir_check *of, const struct fact *fact, uint64_t end_ns)
{
    const uint64_t secret[2] = {engine->secret[0] ^ RECORD_DOMAIN, engine->secret[1]};
    const uint64_t parts[4] = {of->hash[0], of->hash[1], end_ns, fact->percent};
    const struct weir_generation *generation = entry->generation;
    struct weir_bytes name = generation->views[fact->rule].name;
    char text[WEIR_WARNING_RECORD_MAX], *end = put(text, name.data, name.size);
    *end++ = ',';
    end = put_number(end, fact->percent);
    end = put_number(end, end_ns);
    end = put(end, fact->key.data, fact->key.size);
    struct weir_check *check = &entry->checks[0];
    *check = (struct weir_check){
        .limit = weir_rules_warned_limit(generation->rules, of->limit->spec.window_ns),
        .cost = WEIR_WARNED_COST,
        .key =
            weir_decision_keep(&entry->decision, (struct weir_bytes){text, (size_t)(end - text)}),
        /* Beside the state that it is about, where nodes share one store; else at this node. */
        .tag = engine->store->ops->name_of ? weir_check_tag(of) : 0,
        .rule = UINT32_MAX,
        .on_store_error = WEIR_FAIL_OPEN,
    };
    weir_siphash128(secret, parts, sizeof parts, check->hash);
    entry->decision.count = 1;
}

/* Asks the store whether anybody has said it. */
static void ask(struct weir_engine *engine, const struct weir_entry *of, uint16_t i,
                struct fact *fact, uint64_t end_ns)
{
    const struct weir_check *check = &of->decision.checks[i];
    struct weir_entry *entry = weir_pool_take(&engine->warnings->pool);
    if (!entry) { /* the next request finds it due again */
        forget(engine->warnings, fact->mark);
        return;
    }
    entry->generation = of->generation;
    entry->generation->pins++;
    keep_fact(entry, of, fact);
    make_check(engine, entry, check, fact, end_ns);
    if (!engine->store->ops->name_of)
        weir_turn_decide_now(engine, entry); /* the table answers at once */
    else
        weir_engine_queue(engine, &entry->decision);
}

/* Whether a settlement knows enough: the key's text, and that the limit is enforced on the key. */
static bool settlement_says(const struct weir_generation *generation, uint32_t rule,
                            struct weir_bytes key)
{
    struct weir_rule_info info;
    weir_rules_info(generation->rules, rule, &info);
    return key.size > 0 && info.enforce == 100;
}

static void look_limit(struct weir_engine *engine, const struct weir_entry *entry, uint16_t first,
                       uint16_t end)
{
    const struct weir_decision *decision = &entry->decision;
    uint32_t rule = decision->checks[first].rule;
    const struct weir_warn_at *at = weir_rules_warn_at(entry->generation->rules, rule);
    struct weir_warn_use use;
    uint8_t reached = weir_decision_warns(decision, first, end, at, &use);
    if (reached == 0)
        return;
    const struct weir_check *check = &decision->checks[use.check];
    const struct weir_limit_spec *spec = &check->limit->spec;
    char room[WEIR_KEY_TEXT_MAX];
    struct weir_bytes key = weir_engine_key_text(engine, entry, check, room);
    if (key.size > WEIR_WARNING_KEY_MAX ||
        (decision->op == WEIR_OP_DEBIT && !settlement_says(entry->generation, rule, key)))
        return;
    uint64_t end_ns = period_end(spec, decision->now_ns);
    struct fact fact = {
        .used = use.used,
        .capacity = use.capacity,
        .resets_at_ns = period_resets(spec) ? end_ns : decision->now_ns + use.reset_after_ns,
        .rule = rule,
    };
    for (fact.index = 0; fact.index < reached; fact.index++) {
        fact.percent = at->percent[fact.index];
        fact.key = key;
        fact.mark = mark_of(check, fact.percent, end_ns);
        if (!learn(engine->warnings, fact.mark))
            ask(engine, entry, use.check, &fact, end_ns);
    }
}

static void look(struct weir_engine *engine, struct weir_entry *entry)
{
    const struct weir_decision *decision = &entry->decision;
    if (!engine->warnings || decision->source != WEIR_SOURCE_STORE ||
        (decision->op != WEIR_OP_DECIDE && decision->op != WEIR_OP_DEBIT))
        return;
    for (uint16_t i = 0, end; i < weir_decision_limits(decision); i = end) {
        end = weir_decision_limit_end(decision, i);
        if (decision->checks[i].rule < entry->generation->count)
            look_limit(engine, entry, i, end);
    }
}

static void answered(struct weir_engine *engine, struct weir_entry *entry)
{
    const struct weir_decision *decision = &entry->decision;
    const struct weir_generation *generation = entry->generation;
    struct fact fact;
    memcpy(&fact, entry->scratch.bytes, sizeof fact);
    if (decision->source != WEIR_SOURCE_STORE) {
        forget(engine->warnings, fact.mark); /* nobody knows: it is due again */
    } else if (decision->verdict == WEIR_ALLOWED && entry->outcomes[0].charged) {
        const struct weir_rule_view *view = &generation->views[fact.rule];
        const struct weir_warning warning = {
            .limit = view->name,
            .key = fact.key,
            .identity = &entry->identity,
            .used = fact.used,
            .capacity = fact.capacity,
            .now_ns = decision->now_ns,
            .resets_at_ns = fact.resets_at_ns,
            .percent = fact.percent,
        };
        weir_count(&view->tally->counters.warnings[fact.index], 1);
        engine->warn(engine->warn_context, &warning);
    }
    weir_engine_give_back(engine, entry);
}

static const struct weir_purpose record_purpose = {
    .decided = weir_request_decided,
    .failed = weir_request_failed,
    .finish = answered,
};

/* --- Memory ----------------------------------------------------------------------------------- */

static int open(struct weir_engine *engine, const struct weir_rules *rules)
{
    if (!engine->warn || engine->warnings || !weir_rules_warns(rules))
        return 0;
    struct weir_warnings *warnings = calloc(1, sizeof *warnings);
    if (!warnings)
        return WEIR_ERR_MEMORY;
    int err = weir_pool_open(&warnings->pool, WEIR_WARNINGS_MAX, &record_purpose);
    if (err < 0) {
        free(warnings);
        return err;
    }
    engine->warnings = warnings;
    return 0;
}

void weir_warnings_close(struct weir_engine *engine)
{
    struct weir_warnings *warnings = engine->warnings;
    if (!warnings)
        return;
    weir_pool_close(&warnings->pool);
    free(warnings);
    engine->warnings = NULL;
}

struct weir_pool *weir_warnings_pool(struct weir_engine *engine)
{
    return &engine->warnings->pool;
}

const struct weir_hook weir_hook_warning = {.wanted = weir_rules_warns, .open = open, .told = look};
