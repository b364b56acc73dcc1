/* SPDX-License-Identifier: Apache-2.0 */
/* see penalties.h */
#include "server/penalties/penalties.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/reason.h"
#include "server/daemon/clock.h"
#include "server/penalties/known.h"
#include "server/penalties/ladder_memory.h"
#include "server/penalties/ladder_shared.h"
#include "server/penalties/queue.h"
#include "server/penalties/restoring.h"

/* Values whose strikes are gathered at a time. */
#define GATHERED 256
#define UNSURE "Redis did not answer: the move may be in force"
/* Buckets of the works that are begun. */
#define ACTIVE 256

/* What is done for one value. */
struct work {
    struct weir_penalties *penalties;
    struct work *next, **at;    /* in the list of all */
    struct work *active_next;   /* works begun whose values share a bucket */
    struct work *behind, *last; /* those of the same value that wait for this one */
    struct weir_queued_strike strike;
    struct weir_standing_kind kind; /* of the value: the rules may be replaced meanwhile */
    uint64_t struck_ns;             /* the last strike that moves nothing; 0: none */
    bool settles;                   /* puts back a term, and moves nothing */
    bool unsure;                    /* whether its change was made is not known: it is read again */
    struct work *unsure_next;       /* those that wait for the next second */
    unsigned tries;
    struct weir_ladder_call call;
    char by[WEIR_KEEPER_BY_ROOM + 1];
    uint64_t due_ns;    /* when the entry ends before another penalty's term; 0: it does not */
    uint8_t was, steps; /* the step before the move; how many the ladder has */
};

/* A term that another one hides until then. */
struct due {
    uint64_t at_ns;
    struct weir_queued_strike strike;
};

struct weir_penalties {
    struct weir_standing_service *standing;
    struct weir_webhook *webhook;
    struct weir_rules *rules;
    struct weir_ladder_memory memory;
    struct weir_ladder_shared shared;
    struct weir_ladder_store *store;
    struct weir_ladder_restoring restoring;
    struct weir_strike_queue queue;
    struct weir_known known;
    uv_loop_t *loop;
    uv_async_t queued; /* its loop closes it */
    _Atomic bool joined;
    struct weir_penalties_stats stats;
    struct weir_penalty_counts counts;
    struct work *works;
    unsigned work_count;
    struct work *active[ACTIVE];
    struct work *gathered[GATHERED];
    struct work *unsure;
    struct due *due;
    unsigned due_count;
};

/* --- From workers ----------------------------------------------------------------------------- */

static void set_name(char *room, size_t size, struct weir_bytes name)
{
    size_t used = name.size < size ? name.size : size - 1;

    memcpy(room, name.data, used);
    room[used] = '\0';
}

void weir_penalties_struck(void *context, const struct weir_struck *struck)
{
    struct weir_penalties *penalties = context;
    const struct weir_strike *strike = struck->strike;
    const struct weir_cidr *network;
    struct weir_queued_strike queued;
    struct weir_penalty_count *count;
    bool first;

    count = weir_penalty_count(&penalties->counts, struck->penalty->name);
    if (count) /* else it is of rules from long ago */
        atomic_fetch_add_explicit(&count->strikes, 1, memory_order_relaxed);
    network = struck->kind->address ? &strike->network : NULL;
    queued.hash = weir_known_hash(struck->penalty->name, network, strike->id);
    if (!struck->moves && !penalties->standing->sharing &&
        !weir_known_has(&penalties->known, queued.hash))
        return;
    if (!weir_standing_value_make(struck->kind, &strike->network, strike->id, strike->value,
                                  strike->hidden, &queued.value))
        return;
    set_name(queued.penalty, sizeof queued.penalty, struck->penalty->name);
    set_name(queued.kind, sizeof queued.kind, struck->kind->name);
    queued.value_hash = weir_known_hash((struct weir_bytes){NULL, 0}, network, strike->id);
    queued.now_ns = struck->now_ns;
    queued.moves = struck->moves;
    if (!weir_strike_queue_put(&penalties->queue, &queued, &first))
        atomic_fetch_add_explicit(&penalties->stats.queue_full, 1, memory_order_relaxed);
    else if (first && atomic_load(&penalties->joined))
        uv_async_send(&penalties->queued);
}

/* --- Works ------------------------------------------------------------------------------------ */

static struct work *work_new(struct weir_penalties *penalties,
                             const struct weir_queued_strike *strike)
{
    struct work *work =
        penalties->work_count < WEIR_PENALTIES_AT_WORK ? calloc(1, sizeof *work) : NULL;

    if (!work) {
        penalties->stats.lost++;
        return NULL;
    }
    work->penalties = penalties;
    work->strike = *strike;
    work->next = penalties->works;
    work->at = &penalties->works;
    if (work->next)
        work->next->at = &work->next;
    penalties->works = work;
    penalties->work_count++;
    return work;
}

/* Of one that is not begun, or ended. */
static void work_free(struct work *work)
{
    *work->at = work->next;
    if (work->next)
        work->next->at = work->at;
    work->penalties->work_count--;
    free(work);
}

/* The penalty of that name, for values of that kind; NULL: the newest rules have none. */
static const struct weir_penalty *find_penalty(const struct weir_penalties *penalties,
                                               const char *name, const char *kind)
{
    const struct weir_rules *rules = penalties->rules;
    int number = weir_rules_penalty_find(rules, weir_bytes_of(name));
    const struct weir_penalty *penalty = number < 0 ? NULL : weir_rules_penalty(rules, number);

    if (!penalty)
        return NULL;
    return weir_bytes_equal(weir_rules_settings(rules)->standing.kinds[penalty->kind].name,
                            weir_bytes_of(kind))
               ? penalty
               : NULL;
}

/* --- Log -------------------------------------------------------------------------------------- */

static void log_value(struct weir_log_line *line, const struct work *work)
{
    weir_log_text(line, "penalty", work->strike.penalty);
    weir_log_text(line, "kind", work->strike.kind);
    weir_log_text(line, "value", work->strike.value.shown);
}

/* Many callers may move at a time: their lines leave room for others. */
static void log_begin(struct weir_log_line *line, const struct work *work,
                      enum weir_log_level level, const char *event)
{
    weir_log_begin_below(line, work->penalties->standing->log, level, event,
                         WEIR_LOG_LINES_PER_SECOND / 2);
    log_value(line, work);
}

static void log_move(const struct work *work)
{
    const struct weir_ladder_state *state = &work->call.swap.next;
    struct weir_log_line line;

    log_begin(&line, work, WEIR_LOG_INFO, "penalty_moved");
    weir_log_number(&line, "was", work->was);
    weir_log_number(&line, "step", state->step);
    weir_log_number(&line, "steps", work->steps);
    weir_log_text(&line, "standing", weir_standing_level_name(work->call.entry.level));
    if (state->until_ns != WEIR_NEVER)
        weir_log_number(&line, "until_ms", (int64_t)(state->until_ns / 1000000));
    weir_log_end(&line);
}

static void log_failure(const struct work *work, const char *event, const char *reason)
{
    struct weir_log_line line;

    log_begin(&line, work, WEIR_LOG_WARNING, event);
    weir_log_text(&line, "reason", reason);
    weir_log_end(&line);
}

static struct work **bucket_of(struct weir_penalties *penalties, const struct work *work)
{
    return &penalties->active[work->strike.value_hash % ACTIVE];
}

static void work_begin(struct work *work);

/* Ends a work, and begins the one that waits for it. */
static void work_end(struct work *work)
{
    struct work **at = bucket_of(work->penalties, work), *next = work->behind;

    while (*at != work)
        at = &(*at)->active_next;
    *at = work->active_next;
    if (next)
        next->last = work->last;
    work_free(work);
    if (next)
        work_begin(next);
}

/* Gives a strike up. */
static void lose(struct work *work, const char *reason)
{
    work->penalties->stats.lost++;
    log_failure(work, "penalty_lost", reason);
    work_end(work);
}

/* --- Deciding --------------------------------------------------------------------------------- */

/* Remembers that a term is to be put back. */
static void add_due(struct weir_penalties *penalties, const struct weir_queued_strike *strike,
                    uint64_t at_ns)
{
    if (penalties->due_count == WEIR_PENALTIES_DUE_MAX) {
        penalties->stats.lost++;
        return;
    }
    penalties->due[penalties->due_count].strike = *strike;
    penalties->due[penalties->due_count++].at_ns = at_ns;
}

/* All ladders of the value whose penalties the rules have, with the work's own as it is to be.
 * Returns how many; the work's is the last, if its penalty is there. */
static uint32_t terms_of(const struct work *work, const struct weir_ladder_state *own,
                         struct weir_penalty_term terms[WEIR_KEEPER_LADDERS_MAX + 1])
{
    const struct weir_keeper_ladders *found = &work->call.found;
    uint32_t count = 0;

    for (uint32_t i = 0; i <= found->count; i++) {
        bool mine = i == found->count;
        const char *name = mine ? work->strike.penalty : found->ladders[i].penalty;
        const struct weir_penalty *penalty = find_penalty(work->penalties, name, work->strike.kind);

        if (!penalty || (!mine && strcmp(name, work->strike.penalty) == 0))
            continue;
        terms[count++] = (struct weir_penalty_term){penalty, mine ? own : &found->ladders[i].state};
    }
    return count;
}

/* The strictest of the terms that run, with the work's own state as it will be. Sets due_ns.
 * Returns whether one runs; *own: it is that of the work's penalty. */
static bool choose(struct work *work, struct weir_standing_entry *best, bool *own)
{
    struct weir_penalty_term terms[WEIR_KEEPER_LADDERS_MAX + 1];
    uint32_t count = terms_of(work, &work->call.swap.next, terms);
    int at = weir_penalty_strictest(terms, count, work->call.now_ns, best, &work->due_ns);

    *own = at >= 0 && (uint32_t)at + 1 == count;
    return at >= 0;
}

static void work_read(struct work *work);

static bool is_same(const struct weir_ladder_state *one, const struct weir_ladder_state *other)
{
    return one->step == other->step && one->until_ns == other->until_ns &&
           one->clean_ns == other->clean_ns;
}

/* The state of the work's own ladder, as it was read; all zero: there is none. */
static struct weir_ladder_state state_of(const struct work *work)
{
    const struct weir_keeper_ladders *found = &work->call.found;

    for (uint32_t i = 0; i < found->count; i++)
        if (strcmp(found->ladders[i].penalty, work->strike.penalty) == 0)
            return found->ladders[i].state;
    return (struct weir_ladder_state){.step = 0};
}

/* Computes the next state from the one that was read. */
static void move(struct work *work, const struct weir_ladder *ladder)
{
    struct weir_keeper_swap *swap = &work->call.swap;

    swap->next = swap->expected;
    if (work->struck_ns > 0)
        weir_ladder_strike(ladder, &swap->next, work->struck_ns);
    if (work->strike.moves) {
        weir_ladder_forgive(ladder, &swap->next, work->strike.now_ns);
        work->was = swap->next.step;
        weir_ladder_move(ladder, &swap->next, work->strike.now_ns);
    }
    work->steps = ladder->count;
    swap->gone_ns = weir_ladder_gone_ns(ladder, &swap->next);
}

/* Ends the work after its change, or without one. */
static void finish(struct work *work)
{
    if (work->due_ns > 0)
        add_due(work->penalties, &work->strike, work->due_ns);
    work_end(work);
}

/* In force from now on. */
static void put_in_force(struct work *work)
{
    struct weir_penalties *penalties = work->penalties;
    struct weir_penalty_count *count =
        weir_penalty_count(&penalties->counts, weir_bytes_of(work->strike.penalty));

    weir_known_add(&penalties->known, work->strike.hash);
    /* Where nodes share standing, Redis tells all of them: by now this one, too. */
    if (work->call.swap.sets && !penalties->standing->sharing &&
        weir_standing_service_set(penalties->standing, &work->strike.value, &work->call.entry,
                                  work->call.by) < 0) {
        penalties->stats.unplaced++;
        log_failure(work, "penalty_unplaced",
                    "the map of standing is full: raise standing.entries");
    }
    if (!work->strike.moves)
        return;
    if (count)
        count->moves[work->call.entry.level]++;
    log_move(work);
    weir_webhook_post_move(penalties->webhook, &(struct weir_penalty_move){
                                                   .penalty = weir_bytes_of(work->strike.penalty),
                                                   .kind = weir_bytes_of(work->strike.kind),
                                                   .value = weir_bytes_of(work->strike.value.shown),
                                                   .step = work->call.swap.next.step,
                                                   .steps = work->steps,
                                                   .level = work->call.entry.level,
                                                   .now_ns = work->strike.now_ns,
                                                   .until_ns = work->call.swap.next.until_ns});
}

/* Redis did not say whether it made the change: the entry may be in force already. */
static void look_later(struct work *work)
{
    struct weir_penalties *penalties = work->penalties;

    if (!work->unsure && work->strike.moves)
        log_failure(work, "penalty_unsure", UNSURE);
    work->unsure = true;
    work->unsure_next = penalties->unsure;
    penalties->unsure = work;
}

static void on_swapped(struct weir_ladder_call *call)
{
    struct work *work = (struct work *)(void *)((char *)call - offsetof(struct work, call));

    if (call->err == WEIR_ERR_IO && work->penalties->standing->sharing) {
        look_later(work);
        return;
    }
    if (call->err < 0 && (!work->strike.moves || work->penalties->standing->sharing)) {
        lose(work, call->reason.text);
        return;
    }
    if (call->err == 0 && !call->swapped) {
        work_read(work);
        return;
    }
    if (call->err < 0) {
        work->penalties->stats.unkept++;
        log_failure(work, "penalty_unkept", call->reason.text);
    }
    put_in_force(work);
    finish(work);
}

/* Whether a term of the value was a suspension already, though not in force yet when the request
 * was decided: then it was no strike. */
static bool is_suspended(const struct work *work)
{
    struct weir_penalty_term terms[WEIR_KEEPER_LADDERS_MAX + 1];
    uint32_t count = terms_of(work, &work->call.swap.expected, terms);
    struct weir_standing_entry entry;
    uint64_t due_ns;

    return weir_penalty_strictest(terms, count, work->strike.now_ns, &entry, &due_ns) >= 0 &&
           entry.level >= WEIR_STANDING_SUSPENDED;
}

/* Whether the chosen entry is in force already. */
static bool is_in_force(const struct work *work)
{
    struct weir_standing_entry now;

    return weir_standing_service_find(work->penalties->standing, &work->strike.value,
                                      work->call.now_ns, &now) &&
           now.origin == WEIR_STANDING_BY_PENALTY && now.level == work->call.entry.level &&
           now.until_ns == work->call.entry.until_ns;
}

/* Whether the term of a ladder is the same; a strike may have put forgiveness off since. */
static bool is_same_term(const struct weir_ladder_state *one, const struct weir_ladder_state *other)
{
    return one->step == other->step && one->until_ns == other->until_ns;
}

/* Decides about a change that may have been made. False: it was not, and is made anew. */
static bool settle_unsure(struct work *work)
{
    const struct weir_keeper_swap *swap = &work->call.swap;
    struct weir_ladder_state now;

    if (work->call.err < 0) {
        look_later(work);
        return true;
    }
    now = state_of(work);
    work->unsure = false;
    if (!work->strike.moves || is_same_term(&now, &swap->expected))
        return false;
    if (is_same_term(&now, &swap->next)) {
        put_in_force(work);
        finish(work);
        return true;
    }
    lose(work, "another move was made before it was known whether this one was");
    return true;
}

static void on_read(struct weir_ladder_call *call)
{
    struct work *work = (struct work *)(void *)((char *)call - offsetof(struct work, call));
    struct weir_penalties *penalties = work->penalties;
    const struct weir_penalty *penalty =
        find_penalty(penalties, work->strike.penalty, work->strike.kind);
    bool own;

    if (work->unsure && settle_unsure(work))
        return;
    if (call->err < 0) {
        lose(work, call->reason.text);
        return;
    }
    call->swap.expected = state_of(work);
    if (!penalty || (work->strike.moves && !penalty->while_suspended && is_suspended(work))) {
        work_end(work);
        return;
    }
    move(work, &penalty->ladder);
    call->swap.sets = choose(work, &call->entry, &own) &&
                      (work->strike.moves ? own : work->settles && !is_in_force(work));
    if (work->strike.moves && !own) /* what the move means, though a stricter one is in force */
        weir_penalty_entry(&(struct weir_penalty_term){penalty, &call->swap.next}, call->now_ns,
                           &call->entry);
    if (!work->strike.moves && !call->swap.sets &&
        (call->swap.next.step == 0 || is_same(&call->swap.next, &call->swap.expected))) {
        finish(work);
        return;
    }
    if (work->settles)
        snprintf(work->by, sizeof work->by, "penalty %.*s", (int)call->entry.reason_size,
                 call->entry.reason);
    call->by = weir_bytes_of(work->by);
    call->done = on_swapped;
    if (penalties->store->swap(penalties->store, call) < 0)
        lose(work, "the history is behind");
}

static void work_read(struct work *work)
{
    struct weir_penalties *penalties = work->penalties;

    if (++work->tries > WEIR_PENALTIES_TRIES) {
        lose(work, work->unsure ? UNSURE : "other moves of this value were always faster");
        return;
    }
    work->call.done = on_read;
    if (penalties->store->read(penalties->store, &work->call) < 0)
        lose(work, "the history is behind");
}

static void work_begin(struct work *work)
{
    struct work **bucket = bucket_of(work->penalties, work);
    const struct weir_penalty *penalty =
        find_penalty(work->penalties, work->strike.penalty, work->strike.kind);

    work->active_next = *bucket;
    *bucket = work;
    if (!penalty) {
        work_end(work);
        return;
    }
    work->kind = weir_rules_settings(work->penalties->rules)->standing.kinds[penalty->kind];
    work->kind.name = weir_bytes_of(work->strike.kind);
    work->strike.value.kind = &work->kind;
    work->call.value = &work->strike.value;
    snprintf(work->by, sizeof work->by, "penalty %s", work->strike.penalty);
    work->call.swap.penalty = weir_bytes_of(work->strike.penalty);
    work->call.by = weir_bytes_of(work->by);
    work_read(work);
}

/* Begins to work on a value at a time, once the works of the same value have ended that were begun
 * before: moves of one value happen in their order. */
static void work_start(struct work *work, uint64_t now_ns)
{
    struct work *other = *bucket_of(work->penalties, work);

    work->call.now_ns = now_ns;
    while (other && other->strike.value_hash != work->strike.value_hash)
        other = other->active_next;
    if (!other) {
        work_begin(work);
        return;
    }
    if (other->behind)
        other->last->behind = work;
    else
        other->behind = work;
    other->last = work;
}

/* --- Gathering -------------------------------------------------------------------------------- */

static void flush(struct weir_penalties *penalties, unsigned slot)
{
    struct work *work = penalties->gathered[slot];

    penalties->gathered[slot] = NULL;
    if (work)
        work_start(work, work->struck_ns);
}

static void take(struct weir_penalties *penalties, const struct weir_queued_strike *strike)
{
    unsigned slot = strike->hash / WEIR_KNOWN_BITS % GATHERED;
    struct work *work = penalties->gathered[slot];

    if (work && work->strike.hash != strike->hash) {
        flush(penalties, slot);
        work = NULL;
    }
    penalties->gathered[slot] = NULL;
    if (!work)
        work = work_new(penalties, strike);
    if (!work)
        return;
    if (strike->moves) {
        work->strike.moves = true;
        work->strike.now_ns = strike->now_ns;
        work_start(work, strike->now_ns);
        return;
    }
    work->struck_ns = strike->now_ns > work->struck_ns ? strike->now_ns : work->struck_ns;
    penalties->gathered[slot] = work;
}

/* As many as there is room to work on; the others stay in the queue. */
static void take_queued(struct weir_penalties *penalties)
{
    struct weir_queued_strike strike;

    while (penalties->work_count < WEIR_PENALTIES_AT_WORK &&
           weir_strike_queue_take(&penalties->queue, &strike))
        take(penalties, &strike);
}

static void on_queued(uv_async_t *handle)
{
    take_queued(handle->data);
}

static void settle(struct weir_penalties *penalties, const struct weir_queued_strike *strike,
                   uint64_t now_ns)
{
    struct work *work = work_new(penalties, strike);

    if (!work)
        return;
    work->strike.moves = false;
    work->settles = true;
    work_start(work, now_ns);
}

/* Reads what may have been changed. */
static void look_again(struct weir_penalties *penalties)
{
    struct work *work = penalties->unsure, *next;

    for (penalties->unsure = NULL; work; work = next) {
        next = work->unsure_next;
        work_read(work);
    }
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
    look_again(penalties);
    tend_memory(penalties, now_ns);
    for (unsigned i = 0; i < GATHERED; i++)
        flush(penalties, i);
    for (unsigned i = 0; i < penalties->due_count;) {
        if (penalties->due[i].at_ns > now_ns) {
            i++;
            continue;
        }
        settle(penalties, &penalties->due[i].strike, now_ns);
        penalties->due[i] = penalties->due[--penalties->due_count];
    }
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
    add_due(context, strike, at_ns);
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
        penalties->due = calloc(WEIR_PENALTIES_DUE_MAX, sizeof *penalties->due);
        weir_standing_secret(standing->map, secret);
        err = weir_ladder_memory_init(&penalties->memory, secret);
        if (err == 0)
            err = penalties->due ? weir_strike_queue_open(&penalties->queue) : WEIR_ERR_MEMORY;
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

void weir_penalties_stop(struct weir_penalties *penalties)
{
    if (!penalties || !penalties->store)
        return;
    take_queued(penalties);
    for (unsigned i = 0; i < GATHERED; i++)
        flush(penalties, i);
    while (weir_ladder_memory_busy(&penalties->memory))
        uv_run(penalties->loop, UV_RUN_ONCE);
    while (penalties->store == &penalties->shared.base && penalties->work_count > 0 &&
           weir_keeper_jobs(penalties->standing->keeper) > 0)
        uv_run(penalties->loop, UV_RUN_ONCE);
}

void weir_penalties_close(struct weir_penalties *penalties)
{
    struct work *next, *work;

    if (!penalties)
        return;
    for (work = penalties->works; work; work = next) {
        next = work->next;
        free(work);
    }
    weir_strike_queue_close(&penalties->queue);
    weir_ladder_memory_free(&penalties->memory);
    weir_rules_unref(penalties->rules);
    free(penalties->due);
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
