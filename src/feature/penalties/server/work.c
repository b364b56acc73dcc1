/* SPDX-License-Identifier: Apache-2.0 */
/* see work.h */
#include "feature/penalties/server/work.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"

#define UNSURE "Redis did not answer: the move may be in force"
#define BEHIND "the history is behind"

/* --- Works ------------------------------------------------------------------------------------ */

bool penalty_work_fits(struct weir_penalties *penalties)
{
    if (penalties->work_count >= WEIR_PENALTIES_AT_WORK)
        return false;
    if (!penalties->spare)
        penalties->spare = calloc(1, sizeof *penalties->spare);
    if (!penalties->spare && !penalties->starved)
        weir_log_event(penalties->standing->log, WEIR_LOG_WARNING, "penalties_wait", "reason",
                       weir_error_text(WEIR_ERR_MEMORY));
    penalties->starved = !penalties->spare;
    return penalties->spare;
}

struct penalty_work *penalty_work_new(struct weir_penalties *penalties,
                                      const struct weir_queued_strike *strike)
{
    struct penalty_work *work = penalties->spare;

    penalties->spare = NULL;
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
static void work_free(struct penalty_work *work)
{
    *work->at = work->next;
    if (work->next)
        work->next->at = work->at;
    work->penalties->work_count--;
    if (work->penalties->crowded) {
        work->penalties->crowded = false;
        uv_async_send(&work->penalties->queued);
    }
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
    return weir_bytes_equal(weir_rules_settings(rules)->standing->kinds[penalty->kind].name,
                            weir_bytes_of(kind))
               ? penalty
               : NULL;
}

/* --- Log -------------------------------------------------------------------------------------- */

static void log_value(struct weir_log_line *line, const struct penalty_work *work)
{
    weir_log_text(line, "penalty", work->strike.penalty);
    weir_log_text(line, "kind", work->strike.kind);
    weir_log_text(line, "value", work->strike.value.shown);
}

/* Many callers may move at a time: their lines leave room for others. */
static void log_begin(struct weir_log_line *line, const struct penalty_work *work,
                      enum weir_log_level level, const char *event)
{
    weir_log_begin_below(line, work->penalties->standing->log, level, event,
                         WEIR_LOG_LINES_PER_SECOND / 2);
    log_value(line, work);
}

static void log_move(const struct penalty_work *work)
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

static void log_failure(const struct penalty_work *work, const char *event, const char *reason)
{
    struct weir_log_line line;

    log_begin(&line, work, WEIR_LOG_WARNING, event);
    weir_log_text(&line, "reason", reason);
    weir_log_end(&line);
}

static struct penalty_work **bucket_of(struct weir_penalties *penalties,
                                       const struct penalty_work *work)
{
    return &penalties->active[work->strike.value_hash % WEIR_PENALTIES_ACTIVE];
}

static void work_begin(struct penalty_work *work);

static void look_later(struct penalty_work *work)
{
    work->later_next = work->penalties->later;
    work->penalties->later = work;
}

/* Ends the count of the strikes of a move, now that the move is in force, or is given up. False:
 * there is no room for that now. */
static bool end_count(struct penalty_work *work)
{
    const struct weir_queued_strike *strike = &work->strike;
    const struct weir_strike_count count = {
        .penalty = weir_bytes_of(strike->penalty),
        .hash = {strike->count_hash[0], strike->count_hash[1]},
        .tag = strike->count_tag,
        .key = weir_bytes_of(strike->count_key),
        .now_ns = strike->now_ns,
    };
    struct weir_penalties *penalties = work->penalties;

    if (!work->counted && strike->moves && penalties->end)
        work->counted = penalties->end(penalties->end_context, &count, !work->failed);
    else
        work->counted = true;
    return work->counted;
}

/* Of one that is ended. */
static void leave(struct penalty_work *work)
{
    if (end_count(work))
        work_free(work);
    else
        look_later(work);
}

/* Ends a work, and begins the one that waits for it. */
static void work_end(struct penalty_work *work)
{
    struct penalty_work **at = bucket_of(work->penalties, work), *next = work->behind;

    while (*at != work)
        at = &(*at)->active_next;
    *at = work->active_next;
    if (next)
        next->last = work->last;
    work->ended = true;
    leave(work);
    if (next)
        work_begin(next);
}

/* Gives a strike up. */
static void lose(struct penalty_work *work, const char *reason)
{
    work->penalties->stats.lost++;
    work->failed = true;
    log_failure(work, "penalty_lost", reason);
    work_end(work);
}

/* A move is tried again in the next second, another strike is given up. */
static void defer(struct penalty_work *work, const char *reason)
{
    if (!work->strike.moves || work->tries >= WEIR_PENALTIES_TRIES) {
        lose(work, reason);
        return;
    }
    if (!work->deferred) {
        work->penalties->stats.retried++;
        log_failure(work, "penalty_deferred", reason);
    }
    work->deferred = true;
    look_later(work);
}

/* --- Deciding --------------------------------------------------------------------------------- */

void penalty_add_due(struct weir_penalties *penalties, const struct weir_queued_strike *strike,
                     uint64_t at_ns)
{
    struct weir_log_line line;

    if (weir_due_terms_add(&penalties->due, strike, at_ns))
        return;
    penalties->stats.lost++;
    weir_log_begin_below(&line, penalties->standing->log, WEIR_LOG_WARNING, "penalty_lost",
                         WEIR_LOG_LINES_PER_SECOND / 2);
    weir_log_text(&line, "penalty", strike->penalty);
    weir_log_text(&line, "kind", strike->kind);
    weir_log_text(&line, "value", strike->value.shown);
    weir_log_text(&line, "reason", "too many terms wait for the end of stricter ones");
    weir_log_end(&line);
}

/* All ladders of the value whose penalties the rules have, with the work's own as it is to be.
 * Returns how many; the work's is the last, if its penalty is there. */
static uint32_t terms_of(const struct penalty_work *work, const struct weir_ladder_state *own,
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
static bool choose(struct penalty_work *work, struct weir_standing_entry *best, bool *own)
{
    struct weir_penalty_term terms[WEIR_KEEPER_LADDERS_MAX + 1];
    uint32_t count = terms_of(work, &work->call.swap.next, terms);
    int at = weir_penalty_strictest(terms, count, work->call.now_ns, best, &work->due_ns);

    *own = at >= 0 && (uint32_t)at + 1 == count;
    return at >= 0;
}

static void work_read(struct penalty_work *work);

static bool is_same(const struct weir_ladder_state *one, const struct weir_ladder_state *other)
{
    return one->step == other->step && one->until_ns == other->until_ns &&
           one->clean_ns == other->clean_ns;
}

/* The state of the work's own ladder, as it was read; all zero: there is none. */
static struct weir_ladder_state state_of(const struct penalty_work *work)
{
    const struct weir_keeper_ladders *found = &work->call.found;

    for (uint32_t i = 0; i < found->count; i++)
        if (strcmp(found->ladders[i].penalty, work->strike.penalty) == 0)
            return found->ladders[i].state;
    return (struct weir_ladder_state){.step = 0};
}

/* Computes the next state from the one that was read. */
static void move(struct penalty_work *work, const struct weir_ladder *ladder)
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
static void finish(struct penalty_work *work)
{
    if (work->due_ns > 0)
        penalty_add_due(work->penalties, &work->strike, work->due_ns);
    work_end(work);
}

/* In force from now on. */
static void put_in_force(struct penalty_work *work)
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
    (void)end_count(work); /* before the log says that it moved */
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
static void doubt(struct penalty_work *work)
{
    if (!work->unsure && work->strike.moves)
        log_failure(work, "penalty_unsure", UNSURE);
    work->unsure = true;
    look_later(work);
}

static void on_swapped(struct weir_ladder_call *call)
{
    struct penalty_work *work =
        (struct penalty_work *)(void *)((char *)call - offsetof(struct penalty_work, call));

    if (call->err == WEIR_ERR_IO && work->penalties->standing->sharing) {
        doubt(work);
        return;
    }
    if (call->err < 0 && work->penalties->standing->sharing) {
        defer(work, call->reason.text);
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
static bool is_suspended(const struct penalty_work *work)
{
    struct weir_penalty_term terms[WEIR_KEEPER_LADDERS_MAX + 1];
    uint32_t count = terms_of(work, &work->call.swap.expected, terms);
    struct weir_standing_entry entry;
    uint64_t due_ns;

    return weir_penalty_strictest(terms, count, work->strike.now_ns, &entry, &due_ns) >= 0 &&
           entry.level >= WEIR_STANDING_SUSPENDED;
}

/* Whether the chosen entry is in force already. */
static bool is_in_force(const struct penalty_work *work)
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

/* Decides about a change that may have been made. False: it was not, and is recreated. */
static bool settle_unsure(struct penalty_work *work)
{
    const struct weir_keeper_swap *swap = &work->call.swap;
    struct weir_ladder_state now;

    if (work->call.err < 0) {
        doubt(work);
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
    struct penalty_work *work =
        (struct penalty_work *)(void *)((char *)call - offsetof(struct penalty_work, call));
    struct weir_penalties *penalties = work->penalties;
    const struct weir_penalty *penalty =
        find_penalty(penalties, work->strike.penalty, work->strike.kind);
    bool own;

    if (work->unsure && settle_unsure(work))
        return;
    if (call->err < 0) {
        defer(work, call->reason.text);
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
        defer(work, BEHIND);
}

static void work_read(struct penalty_work *work)
{
    struct weir_penalties *penalties = work->penalties;

    if (++work->tries > WEIR_PENALTIES_TRIES) {
        lose(work, work->unsure ? UNSURE : "other moves of this value were always faster");
        return;
    }
    work->call.done = on_read;
    if (penalties->store->read(penalties->store, &work->call) < 0) {
        if (work->unsure)
            doubt(work);
        else
            defer(work, BEHIND);
    }
}

static void work_begin(struct penalty_work *work)
{
    struct penalty_work **bucket = bucket_of(work->penalties, work);
    const struct weir_penalty *penalty =
        find_penalty(work->penalties, work->strike.penalty, work->strike.kind);

    work->active_next = *bucket;
    *bucket = work;
    if (!penalty) {
        work_end(work);
        return;
    }
    work->kind = weir_rules_settings(work->penalties->rules)->standing->kinds[penalty->kind];
    work->kind.name = weir_bytes_of(work->strike.kind);
    work->strike.value.kind = &work->kind;
    work->call.value = &work->strike.value;
    snprintf(work->by, sizeof work->by, "penalty %s", work->strike.penalty);
    work->call.swap.penalty = weir_bytes_of(work->strike.penalty);
    work->call.by = weir_bytes_of(work->by);
    work_read(work);
}

void penalty_work_start(struct penalty_work *work, uint64_t now_ns)
{
    struct penalty_work *other = *bucket_of(work->penalties, work);

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

void penalty_works_go_on(struct weir_penalties *penalties)
{
    struct penalty_work *work = penalties->later, *next;

    for (penalties->later = NULL; work; work = next) {
        next = work->later_next;
        if (work->ended)
            leave(work);
        else
            work_read(work);
    }
}
