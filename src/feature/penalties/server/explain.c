/* SPDX-License-Identifier: Apache-2.0 */
/* see explain.h */
#include "feature/penalties/server/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "feature/standing/history.h"
#include "feature/standing/server/service.h"
#include "server/text/durations.h"
#include "server/text/moments.h"

#define VALUE_TEXT_MAX 400

struct explained {
    struct weir_print to;
    const struct weir_rules *rules;
    const struct weir_decision *decision;
    uint64_t now_ns;
    struct weir_history *history; /* NULL: no value has a step there */
    struct weir_reason unread;    /* why the history is not; empty: it is */
    const struct weir_explained_strikes *found;
};

/* Opens the history, if there is one. */
static void open_history(struct explained *explained)
{
    const struct weir_settings *settings = weir_rules_settings(explained->rules);
    const struct weir_history_options options = {.path = settings->standing->file, .look = true};
    if (settings->store.redis.url)
        snprintf(explained->unread.text, sizeof explained->unread.text,
                 "is in Redis: ask a server, weir standing show");
    else if (options.path && access(options.path, F_OK) == 0 &&
             weir_history_open(&explained->history, &options, &explained->unread) == 0)
        explained->unread.text[0] = '\0';
}

static void print_time(const struct explained *explained, uint64_t time_ns)
{
    char text[WEIR_MOMENT_MAX];
    if (time_ns == WEIR_NEVER)
        fputs("for good", explained->to.out);
    else
        fprintf(explained->to.out, "until %s", weir_moment_text(text, time_ns, explained->to.utc));
}

/* "401, 403, 500-599"; nothing where no outcome is a strike. */
static void print_outcomes(const struct explained *explained, uint32_t number, const char *before)
{
    const struct weir_rules *rules = explained->rules;
    for (unsigned status = 100, end; status < 600; status = end + 1) {
        end = status;
        if (!weir_rules_penalty_outcome(rules, number, status))
            continue;
        while (weir_rules_penalty_outcome(rules, number, end + 1))
            end++;
        fprintf(explained->to.out, "%s%u", before, status);
        if (end > status)
            fprintf(explained->to.out, "-%u", end);
        before = ", ";
    }
}

/* What of this request is a strike. */
static void print_causes(const struct explained *explained, uint32_t number)
{
    const struct weir_decision *decision = explained->decision;
    const char *before = "    strike a denial by ";
    for (uint16_t i = 0; i < weir_decision_limits(decision);
         i = weir_decision_limit_end(decision, i)) {
        const struct weir_check *check = &decision->checks[i];
        struct weir_rule_info info;
        if ((check->flags & WEIR_CHECK_SILENT) != 0 ||
            !weir_rules_penalty_denial(explained->rules, number, check->rule))
            continue;
        weir_rules_info(explained->rules, check->rule, &info);
        fprintf(explained->to.out, "%s%s", before, info.name);
        before = ", ";
    }
    bool denials = *before == ',';
    if (weir_rules_penalty_outcomes(explained->rules, number))
        print_outcomes(explained, number,
                       denials ? "; a reported status " : "    strike a reported status ");
    else if (!denials)
        fputs("    strike none: no limit that applies is in its `for`", explained->to.out);
    fputc('\n', explained->to.out);
}

struct wanted {
    struct weir_bytes penalty;
    struct weir_ladder_state *state;
};

static void take_ladder(void *context, const struct weir_history_ladder *ladder)
{
    const struct wanted *wanted = context;
    if (ladder->penalty.size == wanted->penalty.size &&
        memcmp(ladder->penalty.data, wanted->penalty.data, ladder->penalty.size) == 0)
        *wanted->state = ladder->state;
}

/* Reads where a value is on the ladder; where that fails *unread says why. */
static void find_state(struct explained *explained, const struct weir_penalty *penalty,
                       const struct weir_standing_value *value, struct weir_ladder_state *state)
{
    struct wanted wanted = {penalty->name, state};
    const struct weir_history_filter filter = {
        .kind = value->kind->name,
        .value = {value->shown, strlen(value->shown)},
        .now_ns = explained->now_ns,
        .count = WEIR_PENALTIES_MAX,
    };
    if (explained->history && weir_history_ladders(explained->history, &filter, take_ladder,
                                                   &wanted, &explained->unread) == 0)
        explained->unread.text[0] = '\0';
    weir_ladder_forgive(&penalty->ladder, state, explained->now_ns);
}

static void print_step(const struct explained *explained, const struct weir_ladder *ladder,
                       const struct weir_ladder_state *state)
{
    const struct weir_ladder_step *step = weir_ladder_at(ladder, state);
    if (explained->unread.text[0] != '\0') {
        fprintf(explained->to.out, "    step   %s\n", explained->unread.text);
        return;
    }
    if (!step) {
        fprintf(explained->to.out, "    step   none of %u\n", (unsigned)ladder->count);
        return;
    }
    fprintf(explained->to.out, "    step   %u of %u: %s", (unsigned)state->step,
            (unsigned)ladder->count, weir_standing_level_name(step->level));
    if (state->until_ns > explained->now_ns) {
        fputc(' ', explained->to.out);
        print_time(explained, state->until_ns);
        fputc('\n', explained->to.out);
    } else {
        fputs(", its term has ended\n", explained->to.out);
    }
}

/* What the next move does. */
static void print_next(const struct explained *explained, uint32_t number,
                       struct weir_ladder_state state)
{
    const struct weir_limit_spec *spec = &weir_rules_penalty_limit(explained->rules, number)->spec;
    const struct weir_ladder *ladder = &weir_rules_penalty(explained->rules, number)->ladder;
    const struct weir_ladder_step *step = weir_ladder_move(ladder, &state, explained->now_ns);
    char duration[WEIR_DURATION_MAX];
    if (explained->unread.text[0] != '\0')
        return;
    fprintf(explained->to.out, "    next   after more than %" PRIu64 " strikes in %s: %s",
            spec->rate - 1, weir_duration_exact(duration, spec->window_ns),
            weir_standing_level_name(step->level));
    if (step->term_ns == WEIR_NEVER)
        fputs(" for good\n", explained->to.out);
    else
        fprintf(explained->to.out, " for %s\n", weir_duration_exact(duration, step->term_ns));
}

static void print_strike(struct explained *explained, const struct weir_strike *strike)
{
    const struct weir_penalty *penalty = weir_rules_penalty(explained->rules, strike->penalty);
    const struct weir_standing_kind *kind =
        &weir_rules_settings(explained->rules)->standing->kinds[penalty->kind];
    struct weir_ladder_state state = {.step = 0};
    struct weir_standing_value value;
    if (!weir_standing_value_make(kind, &strike->network, strike->id, strike->value, strike->hidden,
                                  &value))
        return;
    print_causes(explained, strike->penalty);
    fprintf(explained->to.out, "    value  %.*s=", (int)kind->name.size, kind->name.data);
    weir_print_bytes(&explained->to, value.shown, strlen(value.shown), VALUE_TEXT_MAX);
    fputc('\n', explained->to.out);
    find_state(explained, penalty, &value, &state);
    print_step(explained, &penalty->ladder, &state);
    print_next(explained, strike->penalty, state);
}

/* Why a request is no strike of a penalty, whatever is decided. */
static void print_none(const struct explained *explained, const struct weir_penalty *penalty)
{
    const struct weir_standing_kind *kind =
        &weir_rules_settings(explained->rules)->standing->kinds[penalty->kind];
    uint8_t level = explained->found->caller.entry.level;
    fputs("    strike none: ", explained->to.out);
    if (level == WEIR_STANDING_TRUSTED)
        fputs("the caller is trusted\n", explained->to.out);
    else if (level == WEIR_STANDING_REVOKED)
        fputs("the caller is revoked\n", explained->to.out);
    else if (explained->found->caller.refused && !penalty->while_suspended)
        fputs("the caller is suspended, and `strikes_while_suspended` is not set\n",
              explained->to.out);
    else
        fprintf(explained->to.out, "the request has no %.*s that counts\n", (int)kind->name.size,
                kind->name.data);
}

static void print_penalties(struct explained *explained)
{
    for (uint32_t i = 0, found = 0; i < weir_rules_penalty_count(explained->rules); i++) {
        const struct weir_penalty *penalty = weir_rules_penalty(explained->rules, i);
        const struct weir_strikes *strikes = &explained->found->strikes;
        fprintf(explained->to.out, "penalty %.*s\n", (int)penalty->name.size, penalty->name.data);
        if (found < strikes->count && strikes->strikes[found].penalty == i &&
            explained->found->caller.entry.level != WEIR_STANDING_REVOKED)
            print_strike(explained, &strikes->strikes[found]);
        else
            print_none(explained, penalty);
        found += found < strikes->count && strikes->strikes[found].penalty == i;
    }
}

int weir_explain_find_strikes(struct weir_explained_strikes *found,
                              const struct weir_rules_query *query)
{
    struct weir_rules_query again = *query;
    if (!query->map || weir_rules_penalty_count(query->rules) == 0)
        return 0;
    again.scratch = &found->scratch;
    again.standing = &found->caller;
    again.strikes = &found->strikes;
    again.identity = NULL;
    again.score = NULL;
    again.reason = NULL;
    int count = weir_rules_checks(&again, found->checks);
    return count < 0 ? count : 0;
}

void weir_explain_penalties(const struct weir_print *to, const struct weir_rules_query *query,
                            const struct weir_explained_strikes *found,
                            const struct weir_decision *decision)
{
    struct explained explained = {.to = *to,
                                  .rules = query->rules,
                                  .decision = decision,
                                  .now_ns = query->now_ns,
                                  .found = found};
    if (!query->map || weir_rules_penalty_count(query->rules) == 0)
        return;
    open_history(&explained);
    print_penalties(&explained);
    weir_history_close(explained.history);
}
