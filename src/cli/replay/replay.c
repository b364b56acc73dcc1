/* SPDX-License-Identifier: Apache-2.0 */
/* see replay.h */
#include "cli/replay/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/replay/compare/compare.h"
#include "cli/replay/decisions.h"
#include "cli/replay/health.h"
#include "cli/replay/lines.h"
#include "cli/replay/outcomes.h"
#include "cli/replay/penalties.h"
#include "cli/replay/pressure/classes.h"
#include "cli/replay/report.h"
#include "cli/replay/request.h"
#include "cli/replay/state.h"
#include "cli/replay/stop.h"
#include "cli/replay/trace/reading.h"
#include "cli/replay/trial.h"
#include "cli/rules_file.h"
#include "engine/engine.h"
#include "engine/open.h"
#include "feature/standing/cli/standing_map.h"
#include "rules/match/checks.h"
#include "store/store.h"
#include "table/table.h"

/* Of the line at hand and the one before it, and of an outcome. */
#define POOL_DECISIONS 4

/* A line whose decision is filled. */
struct turn {
    struct replay_request request;
    struct weir_decision *decision;
    uint64_t now_ns, line; /* its time, and its number in the trace */
};

struct replay {
    const struct replay_options *options;
    struct weir_rules *rules;
    struct weir_standing *standing; /* of lists; NULL: there is none */
    struct replay_state state;
    struct weir_engine *engine;
    struct replay_trace *trace;
    struct replay_tally *tally;
    struct replay_compare *compare;     /* NULL: not asked for */
    struct replay_decisions *decisions; /* NULL: not asked for */
    struct replay_outcomes *outcomes;
    struct replay_trials *trials;
    struct replay_classes *classes;     /* NULL: the rules keep no scores */
    struct replay_health *health;       /* NULL: no limit follows a controller */
    struct replay_penalties *penalties; /* NULL: the rules have none */
    struct weir_decision *ended;        /* of the current line: its outcome may be a strike */
    bool settling;                      /* an outcome, not a line */
    bool measuring;                     /* see replay_measure */
    struct replay_totals totals;
    struct turn turns[2], *turn; /* turn: the line at hand, or that is being decided */
    struct turn *left;           /* filled, to be decided after the next is; NULL: none */
    bool plain;                  /* a decision changes nothing that the next is filled from */
    struct replay_clients clients;
    bool started, stopped; /* stopped: by Ctrl-C */
    uint64_t now_ns;       /* of the last line that was filled */
    int error;             /* of the engine's callback: WEIR_ERR_MEMORY */
};

/* A fixed secret, so that the same trace meets the same buckets in every run. */
static const uint64_t key_secret[2] = {UINT64_C(0x7765697220726570), UINT64_C(0x6c61792073656372)};

static int prepare_limit(void *context, struct weir_limit *limit, const char *name)
{
    struct replay *replay = context;
    struct weir_store *store = replay->state.store;
    struct weir_reason reason;
    int error = store->ops->prepare(store, limit, &reason);
    if (error < 0 && replay->state.size.bytes >= replay->state.size.bytes_max)
        cli_error("limit '%s' does not fit into --state-size: %s", name, weir_error_text(error));
    return error;
}

/* The key of a check as reports show it. It is written when one is shown, as most are not. */
struct shown_key {
    char text[WEIR_KEY_TEXT_MAX], name[REPLAY_NAME_MAX(WEIR_SCRATCH_BYTES)];
};

static struct weir_bytes show_key(const struct replay *replay, const struct weir_check *check,
                                  struct shown_key *shown)
{
    struct weir_bytes text =
        check->key_is_tuple ? weir_rules_key_text(replay->rules, check, shown->text) : check->key;
    return replay_request_name(&replay->turn->request, text, shown->name);
}

static int count_limit(struct replay *replay, const struct weir_check *check, bool allowed)
{
    struct shown_key shown;
    struct weir_bytes key = {NULL, 0};
    if (!allowed)
        key = show_key(replay, check, &shown);
    return replay_tally_add(replay->tally, check->rule, check->hash, key, allowed);
}

/* Counts one limit, whose checks are [first, end). */
static int count_checks(struct replay *replay, const struct weir_decision *decision, uint16_t first,
                        uint16_t end)
{
    bool allowed = true;
    int error = 0;
    for (uint16_t i = first; error == 0 && i < end; i++) {
        allowed = allowed && decision->outcomes[i].verdict == WEIR_ALLOWED;
        if (replay->compare && !decision->repeated) /* which is charged nothing */
            error = replay_compare_add(replay->compare, &decision->checks[i], replay->turn->now_ns);
    }
    return error < 0 ? error : count_limit(replay, &decision->checks[first], allowed);
}

/* Counts the whole verdict for the key of the last limit. */
static int count_joint(struct replay *replay, const struct weir_decision *decision)
{
    uint16_t last = 0;
    if (weir_decision_limits(decision) == 0)
        return 0;
    for (uint16_t i = 0; i < weir_decision_limits(decision);
         i = weir_decision_limit_end(decision, i))
        last = i;
    return replay_tally_add(replay->tally, 0, decision->checks[last].hash,
                            (struct weir_bytes){"", 0}, decision->verdict == WEIR_ALLOWED);
}

/* What the limits would have denied that borrowed: their pools are among the checks. */
static int count_borrowed(struct replay *replay, const struct weir_decision *decision)
{
    struct weir_borrowed borrowed[WEIR_CHECKS_MAX];
    uint16_t count = weir_engine_borrowed(decision, borrowed);
    int error = 0;
    for (uint16_t i = 0; error == 0 && i < count; i++)
        error = count_limit(replay, borrowed[i].check, true);
    return error;
}

/* Notes what a candidate says of the current line; the engine calls it from within weir_engine_run.
 */
static void take_trial(void *context, const struct weir_check *check,
                       enum weir_trial_outcome outcome)
{
    struct replay *replay = context;
    struct shown_key shown;
    struct weir_bytes key = show_key(replay, check, &shown);
    if (replay_trials_add(replay->trials, check, outcome, key, replay->turn->line,
                          replay->turn->now_ns) < 0)
        replay->error = WEIR_ERR_MEMORY;
}

/* Warnings are counted by the engine, and shown in the report. */
static void take_warning(void *context, const struct weir_warning *warning)
{
    (void)context;
    (void)warning;
}

/* Moves ladders; the engine calls it from within weir_engine_run and weir_engine_strike_outcome. */
static enum weir_strike_answer take_strike(void *context, const struct weir_struck *struck)
{
    struct replay *replay = context;
    struct shown_key shown;
    struct weir_bytes key = show_key(replay, &struck->strike->check, &shown);
    if (replay_penalties_strike(replay->penalties, struck, key) < 0)
        replay->error = WEIR_ERR_MEMORY;
    return WEIR_STRIKE_DONE;
}

/* Counts what each limit said. */
static int count_limits(struct replay *replay, const struct weir_decision *decision)
{
    struct weir_decision own;
    const struct weir_decision *counted = decision;
    int error = 0;
    if (decision->verdict ==
        WEIR_DENIED) { /* by the limits, whatever their pools say of the wait */
        own = *decision;
        weir_engine_own(decision, &own);
        counted = &own;
    }
    uint16_t limits = weir_decision_limits(counted);
    for (uint16_t i = 0, end; error == 0 && i < limits; i = end) {
        end = weir_decision_limit_end(counted, i);
        error = count_checks(replay, counted, i, end);
    }
    return error < 0 ? error : count_borrowed(replay, decision);
}

/* Counts a decision of a request that was charged. */
static int count_decision(struct replay *replay, const struct weir_decision *decision)
{
    const struct turn *turn = replay->turn;
    replay->totals.allowed += decision->verdict == WEIR_ALLOWED;
    replay->totals.denied += decision->verdict != WEIR_ALLOWED;
    int error = count_limits(replay, decision);
    if (error == 0 && replay->classes)
        error = replay_classes_add(replay->classes, decision);
    if (error == 0 && replay->health)
        error = replay_health_add(replay->health, decision, turn->now_ns, turn->request.latency_ns,
                                  turn->request.status);
    return error;
}

/* Counts and writes a decision; the engine calls it from within weir_engine_run. */
static void take_decision(void *context, struct weir_decision *decision)
{
    struct replay *replay = context;
    const struct replay_request *request = &replay->turn->request;
    int error = 0;
    if (replay->settling) {
        weir_engine_release(replay->engine, decision);
        return;
    }
    if (replay->measuring) {
        if (!request->dry_run && count_joint(replay, decision) < 0)
            replay->error = WEIR_ERR_MEMORY;
        weir_engine_release(replay->engine, decision);
        return;
    }
    if (replay->decisions)
        replay_decisions_add(replay->decisions, replay->turn->line, replay->rules, decision);
    if (request->dry_run)
        replay->totals.dry_runs++;
    else
        error = count_decision(replay, decision);
    if (error == 0 && request->status != 0)
        error = replay_outcomes_add(replay->outcomes, decision, replay->turn->now_ns,
                                    request->latency_ns, request->status);
    if (error < 0)
        replay->error = WEIR_ERR_MEMORY;
    if (replay->penalties && request->status != 0 && !request->dry_run &&
        decision->verdict == WEIR_ALLOWED)
        replay->ended = decision;
    else
        weir_engine_release(replay->engine, decision);
}

/* The time at which the current line will be decided. */
static uint64_t line_clock(void *context)
{
    const struct replay *replay = context;
    uint64_t t_ns = replay->turn->request.t_ns;
    return t_ns > replay->now_ns ? t_ns : replay->now_ns;
}

/* Takes virtual time on to the line's. */
static void move_time(struct replay *replay, uint64_t t_ns)
{
    struct replay_totals *totals = &replay->totals;
    if (!replay->started)
        totals->first_ns = t_ns;
    replay->started = true;
    if (t_ns < replay->now_ns)
        totals->backwards++;
    else
        replay->now_ns = t_ns;
    totals->last_ns = replay->now_ns;
}

/* Settles the outcomes that are due by the time of the current line. */
static void settle_due(struct replay *replay)
{
    uint64_t now_ns = line_clock(replay), due_ns;
    struct weir_decision *decision;
    replay->settling = true;
    while ((decision = replay_outcomes_due(replay->outcomes, now_ns, &due_ns))) {
        weir_engine_queue(replay->engine, decision);
        weir_engine_run(replay->engine, due_ns);
    }
    replay->settling = false;
}

/* Fills a decision from the current request. */
static int apply(struct replay *replay, struct weir_decision *decision, struct weir_reason *reason)
{
    struct replay_request *request = &replay->turn->request;
    int error = weir_engine_apply_rules(replay->engine, decision, &request->request, reason);
    if (error < 0 || !request->check || !request->check->idempotency_key.data)
        return error;
    return weir_engine_apply_idempotency(replay->engine, decision, request->check->idempotency_key,
                                         reason);
}

/* Makes room for the states of the lines to come. */
static int make_room(struct replay *replay, uint64_t lines)
{
    int moved = replay_state_grow(&replay->state, lines, replay->now_ns, key_secret);
    return moved > 0 ? weir_rules_prepare(replay->rules, prepare_limit, replay) : moved;
}

/* Decides a line that is filled. */
static void decide(struct replay *replay, struct turn *turn)
{
    struct turn *at_hand = replay->turn;
    replay->turn = turn;
    replay->ended = NULL;
    weir_engine_queue(replay->engine, turn->decision);
    weir_engine_run(replay->engine, turn->now_ns);
    if (replay->ended) {
        weir_engine_strike_outcome(replay->engine, replay->ended, (unsigned)turn->request.status);
        weir_engine_release(replay->engine, replay->ended);
    }
    replay->turn = at_hand;
}

/* Decides the line that was left, if there is one. */
static void decide_left(struct replay *replay)
{
    struct turn *left = replay->left;
    replay->left = NULL;
    if (left)
        decide(replay, left);
}

/* Whether nothing has to be decided before the line at hand is filled, nor before the next is. */
static bool is_plain(const struct replay *replay)
{
    return replay->plain && replay->turn->request.status == 0 &&
           !replay_outcomes_wait(replay->outcomes);
}

/* Does what is due at the time of the line at hand, before it. */
static int catch_up(struct replay *replay)
{
    uint64_t line = replay->turn->line;
    settle_due(replay);
    if (replay->health)
        replay_health_move(replay->health, line_clock(replay));
    if (replay->penalties)
        replay_penalties_move(replay->penalties, line_clock(replay));
    if (!replay_state_is_due(&replay->state, line))
        return 0;
    decide_left(replay);
    return make_room(replay, line);
}

/* Fetches what the decision will look at, which takes as long as to fill another one. */
static void prefetch(struct replay *replay, const struct weir_decision *decision)
{
    struct weir_store *store = replay->state.store;
    for (uint16_t i = 0; i < decision->count; i++)
        replay_tally_prefetch(replay->tally, decision->checks[i].rule, decision->checks[i].hash);
    if (store->ops->prefetch)
        store->ops->prefetch(store, decision);
}

/* Fills the decision of the line at hand. Returns 0, REPLAY_MALFORMED or a negative error. */
static int fill(struct replay *replay, struct weir_reason *reason)
{
    struct turn *turn = replay->turn;
    struct weir_decision *decision = weir_engine_take(replay->engine);
    if (!decision)
        return WEIR_ERR_FULL;
    if (turn->request.dry_run)
        decision->op = WEIR_OP_PEEK;
    if (apply(replay, decision, reason) < 0) {
        weir_engine_release(replay->engine, decision);
        return REPLAY_MALFORMED;
    }
    if (turn->request.status != 0)
        replay_outcomes_expect(replay->outcomes, decision, turn->request.request.cost,
                               turn->request.status);
    move_time(replay, turn->request.t_ns);
    turn->decision = decision;
    turn->now_ns = replay->now_ns;
    prefetch(replay, decision);
    return 0;
}

/* Takes one line: a replay_lines_fn. It is decided at once, or, where that makes no difference,
 * after the next one is filled, so that what it needs of the memory is there by then. */
static int replay_line(void *context, const struct replay_line *line, struct weir_reason *reason)
{
    struct replay *replay = context;
    replay->turn = &replay->turns[replay->left == &replay->turns[0]];
    replay->turn->line = replay->totals.lines = line->n;
    if (replay_request_parse(&replay->turn->request, line, reason) < 0)
        return REPLAY_MALFORMED;
    bool plain = is_plain(replay);
    if (!plain)
        decide_left(replay);
    if (catch_up(replay) < 0)
        return WEIR_ERR_MEMORY;
    int error = fill(replay, reason);
    if (error != 0)
        return error;
    decide_left(replay);
    replay->left = replay->turn;
    if (!plain)
        decide_left(replay);
    return replay->error;
}

static int open_engine(struct replay *replay)
{
    const struct replay_options *given = replay->options;
    struct replay_state_size size =
        replay_state_size(replay->rules, given->state_bytes,
                          replay_state_trace_bytes(given->traces, given->trace_count),
                          (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
    struct weir_reason reason = {{0}};
    int error = replay_state_open(&replay->state, &size, key_secret, &reason);
    if (error < 0) {
        cli_error("%s", reason.text[0] != '\0' ? reason.text : weir_error_text(error));
        return error;
    }
    if (replay->standing && weir_rules_penalty_count(replay->rules) > 0 &&
        !(replay->penalties =
              replay_penalties_open(replay->rules, replay->standing, given->keys_max)))
        error = WEIR_ERR_MEMORY;
    while (error == 0 && weir_rules_prepare(replay->rules, prepare_limit, replay) < 0)
        if (!replay_state_enlarge(&replay->state, key_secret))
            return WEIR_ERR_FULL; /* prepare_limit has reported it */
    if (error == 0) {
        struct weir_engine_options options = {.store = replay->state.store,
                                              .rules = replay->rules,
                                              .standing = replay->standing,
                                              .secret = key_secret, /* the tables' */
                                              .decisions = POOL_DECISIONS,
                                              .lease_seed = 1,
                                              .done = take_decision,
                                              .done_context = replay,
                                              .warn = take_warning,
                                              .tried = take_trial,
                                              .tried_context = replay,
                                              .strike = replay->penalties ? take_strike : NULL,
                                              .strike_context = replay,
                                              .clock = line_clock,
                                              .clock_context = replay};
        error = weir_engine_open(&replay->engine, &options);
    }
    if (error == 0 && !(replay->outcomes = replay_outcomes_open(replay->engine)))
        error = WEIR_ERR_MEMORY;
    if (error == 0)
        error = replay_health_open(&replay->health, replay->rules);
    if (error < 0)
        cli_error("%s", weir_error_text(error));
    return error;
}

/* Whether two paths are one file on disk. */
static bool is_same_file(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && S_ISREG(one.st_mode) &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* The rules file or trace that writing the decisions would destroy before it is read, or NULL. */
static const char *overwritten_input(const struct replay_options *options)
{
    if (is_same_file(options->decisions, options->config))
        return options->config;
    for (size_t i = 0; i < options->trace_count; i++)
        if (is_same_file(options->decisions, options->traces[i]))
            return options->traces[i];
    return NULL;
}

static struct replay_trace *open_trace(const struct replay_options *options)
{
    const struct replay_trace_options trace = {.files = options->traces,
                                               .count = options->trace_count,
                                               .format = options->format,
                                               .disorder = options->disorder};
    return replay_trace_open(&trace);
}

/* Opens everything. Returns 0 or -1 after telling why. */
static int open_replay(struct replay *replay)
{
    const struct replay_options *options = replay->options;
    if (!replay->measuring && cli_load_rules(&replay->rules, options->config) < 0)
        return -1;
    if (cli_standing_open(&replay->standing, replay->rules, false) < 0 || open_engine(replay) < 0)
        return -1;
    replay->trace = open_trace(options);
    replay_clients_init(&replay->clients, &options->proxies, weir_rules_settings(replay->rules));
    for (int i = 0; i < 2; i++)
        replay_request_begin(&replay->turns[i].request, replay->rules, &replay->clients);
    replay->tally = replay_tally_open(weir_rules_count(replay->rules), options->keys_max);
    replay->trials = replay_trials_open(replay->rules, options->keys_max);
    int error = replay_classes_open(&replay->classes, replay->rules, options->keys_max);
    replay->plain = !replay->standing && !replay->health && !replay->classes;
    if (options->compare)
        replay->compare = replay_compare_open(replay->rules);
    if (error < 0 || !replay->trace || !replay->tally || !replay->trials ||
        (options->compare && !replay->compare)) {
        cli_error("%s", weir_error_text(WEIR_ERR_MEMORY));
        return -1;
    }
    if (options->decisions) {
        const char *input = overwritten_input(options);
        if (input) {
            cli_error("%s: the decisions would overwrite it", input);
            return -1;
        }
        replay->decisions = replay_decisions_open(options->decisions);
        if (!replay->decisions) {
            cli_error("%s: %s", options->decisions, strerror(errno));
            return -1;
        }
    }
    return 0;
}

/* Writes what is left of the decisions. Returns 0 or -1 after telling why. */
static int close_decisions(struct replay *replay)
{
    if (!replay->decisions)
        return 0;
    int failure = replay_decisions_close(replay->decisions);
    replay->decisions = NULL;
    if (failure == 0)
        return 0;
    cli_error("%s: %s", replay->options->decisions, strerror(failure));
    return -1;
}

static void close_replay(struct replay *replay)
{
    replay_compare_close(replay->compare);
    replay_trials_close(replay->trials);
    replay_classes_close(replay->classes);
    replay_tally_close(replay->tally);
    replay_trace_close(replay->trace);
    replay_outcomes_close(replay->outcomes);
    replay_health_close(replay->health);
    if (replay->engine)
        weir_engine_close(replay->engine);
    replay_penalties_close(replay->penalties);
    replay_state_close(&replay->state);
    weir_standing_close(replay->standing);
    weir_rules_unref(replay->rules);
    free(replay);
}

static void report(const struct replay *replay)
{
    const struct replay_options *options = replay->options;
    bool to_stderr = options->decisions && strcmp(options->decisions, "-") == 0;
    FILE *out = to_stderr ? stderr : stdout;
    struct replay_reading reading = replay_trace_reading(replay->trace);
    if (replay->stopped)
        replay_partial_print(&reading, replay->totals.lines, "", out);
    replay_report_totals(out, &replay->totals);
    replay_reading_print(&reading, &replay->clients, "", out);
    replay_report_print(out, replay->rules, replay->tally, replay->engine, options->top);
    replay_trials_print(replay->trials, out);
    if (replay->classes)
        replay_classes_print(replay->classes, out);
    if (replay->health)
        replay_health_print(replay->health, out);
    if (replay->penalties)
        replay_penalties_print(replay->penalties, out, options->top);
    if (replay->compare)
        replay_compare_print(replay->compare, out);
    struct weir_table_stats stats;
    replay_state_stats(&replay->state, replay->now_ns, &stats);
    replay_report_losses(out, &stats);
}

/* Returns -1 after telling of an error, else 0. */
static int report_error(int error)
{
    if (error < 0)
        cli_error("%s", weir_error_text(error));
    return error < 0 ? -1 : 0;
}

/* Gives all lines of the trace to `take`. Returns 0 or -1 after telling why. */
static int read_lines(struct replay *replay, replay_lines_fn take)
{
    struct replay_lines lines = {.take = take,
                                 .context = replay,
                                 .doing = replay->measuring ? "measuring" : "replay",
                                 .lines_max = replay->options->lines_max};
    int error = replay_lines_each(replay->trace, &lines);
    if (error == 0) {
        decide_left(replay);
        error = report_error(replay->error);
    }
    replay->totals.malformed = lines.malformed;
    replay->totals.lines = lines.read;
    replay->stopped = lines.stopped;
    return error;
}

int replay_run(const struct replay_options *options)
{
    struct replay *replay = calloc(1, sizeof *replay);
    if (!replay) {
        cli_error("%s", weir_error_text(WEIR_ERR_MEMORY));
        return EXIT_FAILURE;
    }
    replay->options = options;
    replay->turn = replay->turns;
    int status = EXIT_FAILURE;
    if (open_replay(replay) == 0 && read_lines(replay, replay_line) == 0) {
        report(replay);
        if (replay->totals.malformed == 0 || options->skip_bad)
            status = EXIT_SUCCESS;
        if (replay->stopped)
            status = replay_stop_status();
    }
    if (close_decisions(replay) < 0)
        status = EXIT_FAILURE;
    close_replay(replay);
    return cli_finish(status);
}

static int parse_rules(struct replay *replay, const char *rules, size_t size)
{
    struct weir_problems problems = {0};
    int error = weir_rules_parse(&replay->rules, "--suggest", ".", rules, size, &problems);
    if (error < 0)
        cli_error("%s", problems.count > 0 ? problems.list[0].message : weir_error_text(error));
    weir_problems_free(&problems);
    return error;
}

/* Reported already: the trace was read before. */
static int pass_over_malformed(void *context, const struct replay_line *line,
                               struct weir_reason *reason)
{
    int taken = replay_line(context, line, reason);
    return taken == REPLAY_MALFORMED ? 0 : taken;
}

int replay_measure(const struct replay_options *options, const char *rules, size_t size,
                   struct replay_measured *measured)
{
    struct replay *replay = calloc(1, sizeof *replay);
    int error = -1;
    if (!replay) {
        cli_error("%s", weir_error_text(WEIR_ERR_MEMORY));
        return -1;
    }
    replay->options = options;
    replay->turn = replay->turns;
    replay->measuring = true;
    if (parse_rules(replay, rules, size) == 0 && open_replay(replay) == 0 &&
        read_lines(replay, pass_over_malformed) == 0 && !replay->stopped) {
        struct replay_count count = replay_tally_count(replay->tally, 0);
        struct weir_table_stats stats;
        replay_state_stats(&replay->state, replay->now_ns, &stats);
        *measured = (struct replay_measured){
            .requests = count.requests,
            .denied = count.denied,
            .keys = count.keys,
            .denied_keys = count.denied_keys,
            .exact = count.keys_complete && stats.evictions == 0 && stats.overflows == 0,
        };
        error = 0;
    }
    close_replay(replay);
    return error;
}
