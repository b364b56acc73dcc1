/* SPDX-License-Identifier: Apache-2.0 */
/* see penalties.h */
#include "feature/penalties/server/penalties.h"

#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/text/reason.h"
#include "feature/penalties/server/work.h"

/* --- From workers ----------------------------------------------------------------------------- */

static void set_name(char *room, size_t size, struct weir_bytes name)
{
    size_t used = name.size < size ? name.size : size - 1;

    if (used)
        memcpy(room, name.data, used);
    room[used] = '\0';
}

/* Of the count of its strikes. */
static void set_count(struct weir_queued_strike *queued, const struct weir_check *check)
{
    memcpy(queued->count_hash, check->hash, sizeof queued->count_hash);
    queued->count_tag = weir_check_tag(check);
    queued->count_key[0] = '\0';
    if (!check->key_is_tuple) /* else it is of a table, which needs none */
        set_name(queued->count_key, sizeof queued->count_key, check->key);
}

static enum weir_strike_answer take_strike(struct weir_penalties *penalties,
                                           const struct weir_struck *struck)
{
    const struct weir_strike *strike = struck->strike;
    const struct weir_cidr *network;
    struct weir_queued_strike queued;
    bool first;

    network = struck->kind->address ? &strike->network : NULL;
    queued.hash = weir_known_hash(struck->penalty->name, network, strike->id);
    if (!struck->moves && !penalties->standing->sharing &&
        !weir_known_has(&penalties->known, queued.hash))
        return WEIR_STRIKE_DONE;
    if (!weir_standing_value_make(struck->kind, &strike->network, strike->id, strike->value,
                                  strike->hidden, &queued.value))
        return WEIR_STRIKE_DONE; /* no standing can be set for it */
    set_name(queued.penalty, sizeof queued.penalty, struck->penalty->name);
    set_name(queued.kind, sizeof queued.kind, struck->kind->name);
    queued.value_hash = weir_known_hash((struct weir_bytes){NULL, 0}, network, strike->id);
    queued.now_ns = struck->now_ns;
    queued.moves = struck->moves;
    set_count(&queued, &strike->check);
    if (!weir_strike_queue_put(&penalties->queue, &queued, &first)) {
        if (!struck->again)
            atomic_fetch_add_explicit(struck->moves ? &penalties->stats.deferred
                                                    : &penalties->stats.queue_full,
                                      1, memory_order_relaxed);
        return WEIR_STRIKE_REFUSED;
    }
    if (first && atomic_load(&penalties->joined))
        uv_async_send(&penalties->queued);
    return WEIR_STRIKE_LATER;
}

enum weir_strike_answer weir_penalties_struck(void *context, const struct weir_struck *struck)
{
    struct weir_penalties *penalties = context;
    enum weir_strike_answer answer = take_strike(penalties, struck);
    struct weir_penalty_count *count =
        weir_penalty_count(&penalties->counts, struck->penalty->name);

    /* A move that is refused comes again; a count that is missing is of rules from long ago. */
    if (count && !(struck->moves && answer == WEIR_STRIKE_REFUSED))
        atomic_fetch_add_explicit(&count->strikes, 1, memory_order_relaxed);
    return answer;
}

/* --- Gathering -------------------------------------------------------------------------------- */

static void flush(struct weir_penalties *penalties, unsigned slot)
{
    struct penalty_work *work = penalties->gathered[slot];

    penalties->gathered[slot] = NULL;
    if (work)
        penalty_work_start(work, work->struck_ns);
}

static void take(struct weir_penalties *penalties, const struct weir_queued_strike *strike)
{
    unsigned slot = strike->hash / WEIR_KNOWN_BITS % WEIR_PENALTIES_GATHERED;
    struct penalty_work *work = penalties->gathered[slot];

    if (work && work->strike.hash != strike->hash) {
        flush(penalties, slot);
        work = NULL;
    }
    penalties->gathered[slot] = NULL;
    if (!work)
        work = penalty_work_new(penalties, strike);
    if (strike->moves) {
        work->strike = *strike;
        penalty_work_start(work, strike->now_ns);
        return;
    }
    work->struck_ns = strike->now_ns > work->struck_ns ? strike->now_ns : work->struck_ns;
    penalties->gathered[slot] = work;
}

static void settle(struct weir_penalties *penalties, const struct weir_queued_strike *strike,
                   uint64_t now_ns)
{
    struct penalty_work *work = penalty_work_new(penalties, strike);

    work->strike.moves = false;
    work->settles = true;
    penalty_work_start(work, now_ns);
}

/* As many as there is room and memory to work on; the others stay where they are. */
static void take_queued(struct weir_penalties *penalties)
{
    struct weir_queued_strike strike;

    while (penalty_work_fits(penalties))
        if (weir_due_terms_take(&penalties->due, penalties->now_ns, &strike))
            settle(penalties, &strike, penalties->now_ns);
        else if (weir_strike_queue_take(&penalties->queue, &strike))
            take(penalties, &strike);
        else
            return;
    penalties->crowded = !penalties->starved; /* else the next second tries again */
}

static void on_queued(uv_async_t *handle)
{
    take_queued(handle->data);
}

/* One line for all moves that the queue had no room for since the last second. */
static void log_deferred(struct weir_penalties *penalties)
{
    uint64_t deferred = atomic_load(&penalties->stats.deferred);
    struct weir_log_line line;

    if (deferred == penalties->deferred_logged)
        return;
    weir_log_begin(&line, penalties->standing->log, WEIR_LOG_WARNING, "penalties_deferred");
    weir_log_number(&line, "moves", (int64_t)(deferred - penalties->deferred_logged));
    weir_log_end(&line);
    penalties->deferred_logged = deferred;
}

/* --- Open, close ------------------------------------------------------------------------------ */

/* Once a second. */
static void tend_memory(struct weir_penalties *penalties, uint64_t now_ns)
{
    if (penalties->store != &penalties->memory.base)
        return;
    weir_ladder_memory_sweep(&penalties->memory, now_ns);
    weir_ladder_restoring_tick(&penalties->restoring, penalties->standing->keeper, now_ns);
}

void weir_penalties_tick(struct weir_penalties *penalties, uint64_t now_ns)
{
    penalties->now_ns = now_ns;
    log_deferred(penalties);
    penalty_works_go_on(penalties);
    tend_memory(penalties, now_ns);
    for (unsigned i = 0; i < WEIR_PENALTIES_GATHERED; i++)
        flush(penalties, i);
    take_queued(penalties);
}

bool weir_penalties_forget(struct weir_penalties *penalties, struct weir_bytes kind,
                           struct weir_bytes value)
{
    return penalties->store == &penalties->memory.base &&
           weir_ladder_memory_clear(&penalties->memory, kind, value);
}

static void add_restored(void *context, const struct weir_queued_strike *strike, uint64_t at_ns)
{
    penalty_add_due(context, strike, at_ns);
}

int weir_penalties_open(struct weir_penalties **out, struct weir_standing_service *standing,
                        struct weir_webhook *webhook, struct weir_rules *rules, uint64_t now_ns,
                        struct weir_reason *reason)
{
    struct weir_penalties *penalties = calloc(1, sizeof *penalties);
    uint64_t secret[2];
    int err = WEIR_ERR_MEMORY;

    *out = NULL;
    if (penalties) {
        penalties->standing = standing;
        penalties->webhook = webhook;
        penalties->rules = weir_rules_ref(rules);
        weir_penalty_counts_name(&penalties->counts, rules);
        weir_standing_secret(standing->map, secret);
        err = weir_ladder_memory_init(&penalties->memory, secret);
        if (err == 0)
            err = weir_strike_queue_open(&penalties->queue);
    }
    if (err == 0 && !standing->sharing) {
        penalties->restoring = (struct weir_ladder_restoring){.memory = &penalties->memory,
                                                              .known = &penalties->known,
                                                              .due = add_restored,
                                                              .context = penalties};
        err = weir_ladder_restoring_begin(&penalties->restoring, standing->history, now_ns, reason);
    }
    if (err < 0) {
        if (!reason->text[0])
            reason_text(reason, weir_error_text(err));
        weir_penalties_close(penalties);
        return err;
    }
    *out = penalties;
    return 0;
}

int weir_penalties_join(struct weir_penalties *penalties, uv_loop_t *loop,
                        struct weir_ladder_store *store)
{
    weir_ladder_shared_init(&penalties->shared, penalties->standing->keeper);
    if (weir_ladder_memory_join(&penalties->memory, penalties->standing->keeper, loop) < 0)
        return WEIR_ERR_IO;
    penalties->store = store                          ? store
                       : penalties->standing->sharing ? &penalties->shared.base
                                                      : &penalties->memory.base;
    if (uv_async_init(loop, &penalties->queued, on_queued) < 0)
        return WEIR_ERR_IO;
    penalties->queued.data = penalties;
    penalties->loop = loop;
    atomic_store(&penalties->joined, true);
    return 0;
}

void weir_penalties_end_by(struct weir_penalties *penalties, weir_penalties_end end, void *context)
{
    penalties->end = end;
    penalties->end_context = context;
}

/* One line for all moves that the store has not taken. */
static void log_left(struct weir_penalties *penalties)
{
    struct weir_queued_strike strike;
    struct weir_log_line line;
    unsigned left = 0;

    for (const struct penalty_work *work = penalties->works; work; work = work->next)
        left += work->strike.moves && !work->ended;
    while (weir_strike_queue_take(&penalties->queue, &strike))
        left += strike.moves;
    if (left == 0)
        return;
    penalties->stats.lost += left;
    weir_log_begin(&line, penalties->standing->log, WEIR_LOG_WARNING, "penalties_lost");
    weir_log_number(&line, "moves", left);
    weir_log_text(&line, "reason", "weir stopped before the store had taken them");
    weir_log_end(&line);
}

void weir_penalties_stop(struct weir_penalties *penalties)
{
    if (!penalties || !penalties->store)
        return;
    take_queued(penalties);
    for (unsigned i = 0; i < WEIR_PENALTIES_GATHERED; i++)
        flush(penalties, i);
    while (weir_ladder_memory_busy(&penalties->memory) ||
           (penalties->crowded && !penalties->later && penalties->store == &penalties->memory.base))
        uv_run(penalties->loop, UV_RUN_ONCE);
    while (penalties->store == &penalties->shared.base && penalties->work_count > 0 &&
           weir_keeper_jobs(penalties->standing->keeper) > 0)
        uv_run(penalties->loop, UV_RUN_ONCE);
    log_left(penalties);
}

void weir_penalties_close(struct weir_penalties *penalties)
{
    struct penalty_work *next, *work;

    if (!penalties)
        return;
    for (work = penalties->works; work; work = next) {
        next = work->next;
        free(work);
    }
    free(penalties->spare);
    weir_strike_queue_close(&penalties->queue);
    weir_ladder_memory_free(&penalties->memory);
    weir_rules_unref(penalties->rules);
    weir_due_terms_free(&penalties->due);
    free(penalties);
}

void weir_penalties_set_rules(struct weir_penalties *penalties, struct weir_rules *rules)
{
    weir_penalty_counts_name(&penalties->counts, rules);
    weir_rules_unref(penalties->rules);
    penalties->rules = weir_rules_ref(rules);
}

const struct weir_penalties_stats *weir_penalties_stats(const struct weir_penalties *penalties)
{
    return &penalties->stats;
}

const struct weir_penalty_count *weir_penalties_count(struct weir_penalties *penalties,
                                                      struct weir_bytes name)
{
    return weir_penalty_count(&penalties->counts, name);
}
