/* SPDX-License-Identifier: Apache-2.0 */
/* see explain.h */
#include "cli/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/durations.h"
#include "cli/explain/given.h"
#include "cli/explain/home.h"
#include "cli/options.h"
#include "cli/replay/report.h"
#include "cli/replay/request.h"
#include "cli/rules_file.h"
#include "cli/times.h"
#include "core/bytes.h"
#include "core/text/hex.h"
#include "core/text/reason.h"
#include "engine/effect/warning.h"
#include "engine/engine.h"
#include "feature/identity/rules/caller.h"
#include "feature/identity/rules/identify.h"
#include "feature/penalties/cli/explain.h"
#include "feature/standing/cli/standing_map.h"
#include "feature/standing/rules/match.h"
#include "rules/actions/reject.h"
#include "rules/actions/steps.h"
#include "rules/match/explain.h"
#include "rules/match/path.h"
#include "server/daemon/clock.h"
#include "server/daemon/limits.h"
#include "table/table.h"
#include "wire/json/check.h"

/* A key's text is cut here. */
#define KEY_TEXT_MAX 400

struct explain_options {
    const char *config;
    const char *state;            /* a state file to peek into; NULL: fresh states */
    struct weir_check_json check; /* the request; its values are borrowed */
    const char *cost;
    char *json;
    bool names, exit_code, utc;
};

/* Keys of one request that a server would look up. */
#define LOOKED_UP_MAX 16

/* A directory that knows no caller and remembers the keys asked for: nothing is looked up here. */
struct looked_up {
    struct weir_directory base; /* first */
    uint32_t count;
    uint8_t digests[LOOKED_UP_MAX][WEIR_DIGEST_BYTES];
};

struct explain {
    const struct explain_options *options;
    struct weir_rules *rules;
    struct weir_standing *standing; /* what callers have; NULL: all are good */
    struct weir_table *table;
    struct weir_store *store;
    struct weir_engine *engine;
    struct weir_decision *decision; /* the peek */
    struct looked_up looked_up;
    struct replay_request request;
    struct weir_scratch scratch;
    struct weir_rules_query query;
    uint64_t now_ns;
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_identity identity;
    struct weir_caller_standing caller;    /* with `standing` */
    struct weir_caller_score score;        /* where the rules keep one and do not refuse */
    struct weir_explanation *explanations; /* one for each limit */
    bool decided, denied;
};

static int fail(const char *what, int error, const struct weir_reason *reason)
{
    const char *text = reason->text[0] != '\0' ? reason->text : weir_error_text(error);
    if (what)
        cli_error("%s: %s", what, text);
    else
        cli_error("%s", text);
    return -1;
}

/* Opens the table: the given state file as large as it is, or fresh private memory. */
static int open_table(struct explain *explain)
{
    struct weir_table_options options = {.wall_ns = weir_clock_wall_ns(),
                                         .boot_ns = weir_clock_boot_ns(),
                                         .patience_ns = WEIR_STATE_PATIENCE_NS};
    const char *path = explain->options->state;
    struct stat file;
    if (path) {
        if (stat(path, &file) < 0) { /* explaining makes no state file */
            cli_error("%s: %s", path, strerror(errno));
            return -1;
        }
        if (!S_ISREG(file.st_mode) || (uint64_t)file.st_size < WEIR_TABLE_BYTES_MIN) {
            cli_error("%s: not a state file of weir", path);
            return -1;
        }
        options.path = path;
        options.bytes = (uint64_t)file.st_size;
    }
    struct weir_reason reason = {{0}};
    int error = weir_table_open(&explain->table, &options, &reason);
    return error < 0 ? fail(path, error, &reason) : 0;
}

static int prepare_limit(void *context, struct weir_limit *limit, const char *name)
{
    struct weir_store *store = context;
    struct weir_reason reason;
    return store->ops->prepare(store, limit, &reason);
}

static void take_decision(void *context, struct weir_decision *decision)
{
    struct explain *explain = context;
    explain->decided = true;
}

static uint64_t table_clock(void *context)
{
    return weir_table_time(context, weir_clock_boot_ns());
}

static int look_up(struct weir_directory *directory, const struct weir_rules *rules,
                   const uint8_t digest[WEIR_DIGEST_BYTES], struct weir_caller *caller)
{
    struct looked_up *looked_up = (struct looked_up *)directory;
    uint32_t i = 0;
    while (i < looked_up->count && memcmp(looked_up->digests[i], digest, WEIR_DIGEST_BYTES) != 0)
        i++;
    if (i == looked_up->count && i < LOOKED_UP_MAX)
        memcpy(looked_up->digests[looked_up->count++], digest, WEIR_DIGEST_BYTES);
    return 0;
}

/* NULL: the rules keep no callers in Redis. */
static struct weir_directory *open_directory(struct explain *explain)
{
    static const struct weir_directory_ops ops = {.find = look_up}; /* it is never PENDING */
    if (!weir_rules_settings(explain->rules)->identities.redis.url)
        return NULL;
    explain->looked_up.base.ops = &ops;
    return &explain->looked_up.base;
}

static int open_engine(struct explain *explain)
{
    struct weir_reason none = {{0}};
    int error = weir_store_embedded_open(&explain->store, explain->table);
    if (error == 0)
        error = weir_rules_prepare(explain->rules, prepare_limit, explain->store);
    if (error == 0) {
        struct weir_engine_options options = {.store = explain->store,
                                              .rules = explain->rules,
                                              .directory = open_directory(explain),
                                              .standing = explain->standing,
                                              .secret = weir_table_secret(explain->table),
                                              .decisions = 2, /* and a candidate */
                                              .done = take_decision,
                                              .done_context = explain,
                                              .clock = table_clock,
                                              .clock_context = explain->table,
                                              .text_keys = true};
        error = weir_engine_open(&explain->engine, &options);
    }
    return error < 0 ? fail(explain->options->state, error, &none) : 0;
}

/* Explains the matching, and peeks at the states. Returns the number of checks or -1. */
static int evaluate(struct explain *explain)
{
    struct weir_reason reason = {{0}};
    struct weir_moment moment;
    struct weir_directory *directory =
        explain->looked_up.base.ops ? &explain->looked_up.base : NULL;
    explain->now_ns = weir_table_time(explain->table, weir_clock_boot_ns());
    weir_rules_moment(explain->rules, explain->now_ns, &moment);
    explain->query = (struct weir_rules_query){.rules = explain->rules,
                                               .request = &explain->request.request,
                                               .secret = weir_table_secret(explain->table),
                                               .scratch = &explain->scratch,
                                               .now_ns = explain->now_ns,
                                               .resting = moment.resting,
                                               .directory = directory,
                                               .map = explain->standing,
                                               .standing = &explain->caller,
                                               .refuses = true,
                                               .score = &explain->score,
                                               .identity = &explain->identity,
                                               .reason = &reason};
    int count = weir_rules_explain(&explain->query, explain->checks, explain->explanations);
    if (count < 0)
        return fail("request", count, &reason);
    explain->decision = weir_engine_take(explain->engine);
    if (!explain->decision)
        return fail(NULL, WEIR_ERR_MEMORY, &reason);
    int error = weir_engine_apply_rules(explain->engine, explain->decision,
                                        &explain->request.request, &reason);
    if (error < 0)
        return fail("request", error, &reason);
    explain->decision->op = WEIR_OP_PEEK;
    weir_engine_queue(explain->engine, explain->decision);
    weir_engine_run(explain->engine, weir_table_time(explain->table, weir_clock_boot_ns()));
    if (!explain->decided)
        return fail(NULL, WEIR_ERR_STORE, &reason);
    if (explain->decision->error == 0)
        return count;
    snprintf(reason.text, sizeof reason.text,
             "a process that shares the file is stopped and keeps this request's state locked: let "
             "it go on (SIGCONT) or end it");
    return fail(explain->options->state, explain->decision->error, &reason);
}

static void print_identity(const char *name, struct weir_bytes value)
{
    if (!value.data)
        return;
    printf("%s ", name);
    cli_print_text(stdout, value.data, value.size, KEY_TEXT_MAX);
    putchar('\n');
}

/* Nothing of the token itself is printed. */
static void print_token(const struct explain *explain)
{
    const char *state =
        weir_rules_token_state(explain->rules, &explain->request.request, explain->now_ns);
    if (state && strcmp(state, "valid") == 0)
        puts("token valid");
    else if (state)
        printf("token refused: %s\n", state);
}

static void print_wait(const char *what, uint64_t wait_ns)
{
    char text[CLI_DURATION_MAX];
    if (wait_ns == WEIR_NEVER)
        printf(", %s: never", what);
    else if (wait_ns > 0)
        printf(", %s %s", what, cli_duration_ns(text, wait_ns));
}

/* Where a limit's state is, and which of its key's attributes choose its place in a cluster. */
static void print_store(const struct weir_rules *rules, uint32_t rule)
{
    struct weir_rule_info info;
    weir_rules_info(rules, rule, &info);
    if (!weir_rules_settings(rules)->store.redis.url)
        return;
    printf("\n    store  redis, %s", info.leased ? "leased" : "exact");
    for (uint32_t i = 0; i < info.tag_count; i++)
        printf("%s%s", i == 0 ? ", placed by " : ", ", info.tag[i]);
}

/* "10 in 1 s: ", of a limit that has several rates. */
static void print_rate(const struct weir_limit_spec *spec)
{
    char window[CLI_DURATION_MAX];
    printf("%" PRIu64 " in %s: ", spec->rate, cli_duration_exact(window, spec->window_ns));
}

/* What one rate of a limit says. */
static void print_report(const struct weir_decision *decision, uint16_t i)
{
    struct weir_report report;
    weir_decision_report(decision, i, &report);
    printf("%" PRIu64 " of %" PRIu64 " remaining", report.remaining, report.limit);
    print_wait("retry after", report.retry_after_ns);
    print_wait("fresh after", report.reset_after_ns);
    print_wait("delayed by", decision->outcomes[i].delay_ns);
}

/* What the limit whose checks are [i, end) warns at, and the highest threshold that is reached. */
static void print_warnings(const struct weir_decision *decision, uint16_t i, uint16_t end)
{
    const struct weir_warn_at *at =
        weir_rules_warn_at(weir_decision_rules(decision), decision->checks[i].rule);
    struct weir_warn_use use;
    uint8_t reached = weir_decision_warns(decision, i, end, at, &use);
    for (uint8_t t = 0; t < at->count; t++)
        printf("%s%u%%", t == 0 ? "    warns  at " : ", ", (unsigned)at->percent[t]);
    if (reached > 0)
        printf(": %" PRIu64 " of %" PRIu64 " used, %u%% reached", use.used, use.capacity,
               (unsigned)at->percent[reached - 1]);
    if (at->count > 0)
        putchar('\n');
}

/* What the request may use of a limit, and which keywords say so. */
static void print_scale(const struct explain *explain, uint32_t rule,
                        const struct weir_check *check)
{
    const struct weir_explanation *explanation = &explain->explanations[rule];
    const uint8_t *scales = explanation->scales;
    const char *standing = weir_standing_level_name(explain->caller.entry.level);
    const char *before = ": ";
    bool any = false;
    for (int cause = 0; cause < WEIR_SCALE_CAUSES; cause++)
        any = any || scales[cause] != 0;
    if (!any)
        return;
    printf("\n    scale  %u%%", check->scale > 0 ? (unsigned)check->scale : 100U);
    if (scales[WEIR_SCALE_BY_PRIORITY] != 0) {
        printf("%spriority %s %u%%", before, explanation->class,
               (unsigned)scales[WEIR_SCALE_BY_PRIORITY]);
        before = ", ";
    }
    if (scales[WEIR_SCALE_BY_ADAPTIVE] != 0) {
        printf("%sadaptive %s (its scale: weir top)", before, explanation->controller);
        before = ", ";
    }
    if (scales[WEIR_SCALE_BY_STANDING] != 0) {
        printf("%sstanding %s %u%%", before, standing, (unsigned)scales[WEIR_SCALE_BY_STANDING]);
        before = ", ";
    }
    if (scales[WEIR_SCALE_BY_CLASS] != 0) {
        printf("%sclass %s %u%%", before, weir_class_name(explain->score.class),
               (unsigned)scales[WEIR_SCALE_BY_CLASS]);
        before = ", ";
    }
    if (scales[WEIR_SCALE_BY_CHALLENGE] != 0)
        printf("%schallenge not passed %u%%", before, (unsigned)scales[WEIR_SCALE_BY_CHALLENGE]);
}

/* How a limit shapes its denials. */
static void print_reject(const struct weir_rules *rules, uint32_t rule)
{
    const struct weir_reject *reject = weir_rules_reject(rules, rule);
    char duration[CLI_DURATION_MAX];
    if (!reject)
        return;
    printf("    reject %u", reject->status != 0 ? (unsigned)reject->status : 429U);
    if (reject->tarpit_ns != 0)
        printf(" after %s", cli_duration_exact(duration, reject->tarpit_ns));
    if (reject->header_count > 0)
        printf(", with %u header fields", (unsigned)reject->header_count);
    if (reject->body.count > 0)
        printf(", with a body of %s", reject->content_type);
    putchar('\n');
}

/* What the limit of a check answers below 100 %. */
static void print_steps(const struct weir_rules *rules, uint32_t rule)
{
    const struct weir_steps *steps = weir_rules_steps(rules, rule);
    char duration[CLI_DURATION_MAX];
    const char *before = "    steps  ";
    for (uint8_t i = 0; steps && i < steps->count; i++, before = ", ") {
        const struct weir_step *step = &steps->list[i];
        printf("%s%s", before, weir_action_name(step->action));
        if (step->delay_ns != 0)
            printf(" by %s", cli_duration_exact(duration, step->delay_ns));
        printf(" from %u%%", (unsigned)step->percent);
    }
    if (steps && steps->challenge != 0)
        printf("%schallenge from %u%%", before, (unsigned)steps->challenge);
    if (steps)
        putchar('\n');
}

/* What a limit that applies says; its checks are [i, end). */
static void print_check(const struct explain *explain, uint16_t i, uint16_t end)
{
    const struct weir_decision *decision = explain->decision;
    const struct weir_check *check = &decision->checks[i];
    bool allowed = true;
    for (uint16_t rate = i; rate < end; rate++)
        allowed = allowed && decision->outcomes[rate].verdict == WEIR_ALLOWED;
    printf("    key    ");
    cli_print_key(stdout, check->key.data, check->key.size, KEY_TEXT_MAX);
    print_store(weir_decision_rules(decision), check->rule);
    cli_explain_home(weir_decision_rules(decision), check);
    print_scale(explain, check->rule, check);
    printf("\n    cost   %" PRIu64 "\n    now    %s", check->cost, allowed ? "allows" : "denies");
    if (!weir_check_has_state(check)) {
        bool missing =
            !check->limit; /* else its floor is nothing: see feature/region/rules/region.h */
        puts(check->flags & WEIR_CHECK_UNLIMITED ? ": unlimited"
             : missing ? ": an attribute of its key is missing (on_missing: deny)"
                       : ": the floor is 0; a server asks the key's home");
        return;
    }
    for (uint16_t rate = i; rate < end; rate++) {
        fputs(rate == i ? ": " : "\n           ", stdout);
        if (end - i > 1)
            print_rate(&decision->checks[rate].limit->spec);
        print_report(decision, rate);
    }
    if (check->flags & WEIR_CHECK_SHADOW)
        printf(" (shadow: denies nobody)");
    putchar('\n');
    print_warnings(decision, i, end);
    print_steps(weir_decision_rules(decision), check->rule);
    print_reject(weir_decision_rules(decision), check->rule);
}

/* The check of a limit in the peek; UINT16_MAX: its pool decides instead. */
static uint16_t find_check(const struct weir_decision *decision, uint32_t rule)
{
    for (uint16_t i = 0; i < weir_decision_limits(decision); i++)
        if (decision->checks[i].rule == rule)
            return i;
    return UINT16_MAX;
}

/* What the candidate of a limit that applies says; `live` is the limit's first check. */
static void print_candidate(const struct explain *explain, const struct weir_check *live)
{
    struct weir_decision *decision = weir_engine_take(explain->engine);
    if (!decision || !weir_engine_apply_candidate(decision, explain->decision, live)) {
        if (decision)
            weir_engine_release(explain->engine, decision);
        return;
    }
    decision->op = WEIR_OP_PEEK;
    weir_engine_queue(explain->engine, decision);
    weir_engine_run(explain->engine, explain->decision->now_ns);
    printf("    candidate %s", decision->verdict == WEIR_ALLOWED ? "allows" : "denies");
    for (uint16_t rate = 0; rate < decision->count; rate++) {
        fputs(rate == 0 ? ": " : "\n           ", stdout);
        print_rate(&decision->checks[rate].limit->spec);
        print_report(decision, rate);
    }
    putchar('\n');
    weir_engine_release(explain->engine, decision);
}

/* What a limit says: by itself, or as the pool of another. */
static void print_limit(const struct explain *explain, uint32_t rule)
{
    const struct weir_decision *decision = explain->decision;
    int16_t own = explain->explanations[rule].check;
    uint16_t i = find_check(decision, rule);
    struct weir_rule_info info;
    weir_rules_info(explain->rules, rule, &info);
    if (i != UINT16_MAX) {
        if (own < 0)
            puts("    lends  to a limit that denies");
        print_check(explain, i, weir_decision_limit_end(decision, i));
    } else if (own >= 0 && info.pool) {
        const struct weir_check *check = &explain->checks[own];
        printf("    key    ");
        cli_print_key(stdout, check->key.data, check->key.size, KEY_TEXT_MAX);
        printf("\n    cost   %" PRIu64 "\n    now    denies; its pool %s decides instead\n",
               check->cost, info.pool);
    }
    if (own >= 0)
        print_candidate(explain, &explain->checks[own]);
}

/* Where the caller's standing comes from, and when it ends. */
static void print_standing(const struct explain *explain)
{
    const struct weir_standing_entry *entry = &explain->caller.entry;
    if (!explain->standing || entry->level == WEIR_STANDING_GOOD)
        return;
    printf("standing %s, of ", weir_standing_level_name(entry->level));
    cli_print_key(stdout, explain->caller.by.data, explain->caller.by.size, KEY_TEXT_MAX);
    printf(", by %s", entry->origin == WEIR_STANDING_BY_LIST      ? "a list"
                      : entry->origin == WEIR_STANDING_BY_PENALTY ? "a penalty"
                                                                  : "an operator");
    if (entry->until_ns != WEIR_NEVER)
        print_wait("ends after", entry->until_ns - explain->now_ns);
    if (entry->reason_size > 0) {
        fputs(": ", stdout);
        cli_print_text(stdout, entry->reason, entry->reason_size, KEY_TEXT_MAX);
    }
    putchar('\n');
}

/* The score, and what each signal that holds adds to it. */
static void print_score(const struct explain *explain)
{
    const struct weir_score_info *info = weir_rules_score(explain->rules);
    const struct weir_caller_score *score = &explain->score;
    if (!info || (explain->standing && explain->caller.refused))
        return;
    printf("score %u, %s\n", (unsigned)score->score, weir_class_name(score->class));
    for (uint8_t i = 0; i < info->signal_count; i++)
        if ((score->held >> i & 1) != 0)
            printf("    %-12.*s +%u\n", (int)info->signals[i].name.size, info->signals[i].name.data,
                   (unsigned)info->signals[i].add);
    if (info->behaviour)
        puts(
            "    (its earlier requests are not known here: `regular` and `same_route` never hold)");
}

/* The path as the rules see it, where that is another text than was given. */
static void print_path(const struct explain *explain)
{
    struct weir_bytes raw = explain->request.request.values[WEIR_ATTR_PATH], path;
    char room[WEIR_PATH_MAX];
    if (!raw.data || weir_path_normalise(&path, raw, weir_rules_path_options(explain->rules), room,
                                         sizeof room, NULL) < 0)
        return;
    if (path.size != raw.size || memcmp(path.data, raw.data, path.size) != 0)
        print_identity("path", path);
}

/* What a server finds there may make all the rest different. */
static void print_looked_up(const struct explain *explain)
{
    char text[2 * WEIR_DIGEST_BYTES + 1];
    for (uint32_t i = 0; i < explain->looked_up.count; i++) {
        *weir_hex_write(text, explain->looked_up.digests[i], WEIR_DIGEST_BYTES) = '\0';
        printf("a server looks up its key in Redis, which explain does not: %s%s\n",
               weir_rules_settings(explain->rules)->identities.prefix, text);
    }
}

/* What `steps` and `reject` make of the request. */
static void print_action(const struct explain *explain)
{
    static struct weir_answer answer; /* large for the stack */
    char lease[WEIR_LEASE_TOKEN_MAX];
    weir_engine_answer(explain->decision, &answer, lease);
    if (answer.action == WEIR_ACTION_NONE)
        return;
    printf("action %s", weir_action_name(answer.action));
    if (weir_action_holds(answer.action))
        print_wait("by", answer.delay_ns);
    putchar('\n');
}

static void print_answer(struct explain *explain)
{
    const struct weir_decision *decision = explain->decision;
    cli_explain_given(explain->rules, &explain->options->check);
    print_looked_up(explain);
    print_path(explain);
    print_identity("user", explain->identity.user);
    print_identity("org ", explain->identity.org);
    print_identity("plan", explain->identity.plan);
    print_token(explain);
    print_standing(explain);
    print_score(explain);
    for (uint32_t i = 0; i < weir_rules_count(explain->rules); i++) {
        const struct weir_explanation *explanation = &explain->explanations[i];
        struct weir_rule_info info;
        weir_rules_info(explain->rules, i, &info);
        char text[WEIR_EXPLANATION_TEXT_MAX];
        weir_explanation_text(explain->rules, explanation, text);
        printf("%s: %s\n", info.name, text);
        print_limit(explain, i);
    }
    cli_explain_penalties(&explain->query, decision);
    if (explain->standing && explain->caller.refused) {
        const struct weir_standing_entry *entry = &explain->caller.entry;
        bool ends = entry->level != WEIR_STANDING_REVOKED && entry->until_ns != WEIR_NEVER;
        printf("The request is denied by the caller's standing");
        print_wait("retry after", ends ? entry->until_ns - explain->now_ns : WEIR_NEVER);
        puts(".");
        explain->denied = true;
        return;
    }
    explain->denied = decision->verdict != WEIR_ALLOWED;
    print_action(explain);
    uint64_t retry_ns = 0;
    uint16_t blamed = weir_decision_blame(decision, &retry_ns);
    if (decision->verdict == WEIR_ALLOWED || blamed == UINT16_MAX) {
        puts(decision->verdict == WEIR_ALLOWED ? "The request is allowed."
                                               : "The request is denied.");
        return;
    }
    struct weir_rule_info info;
    weir_rules_info(explain->rules, decision->checks[blamed].rule, &info);
    printf("The request is denied by %s", info.name);
    print_wait("retry after", retry_ns);
    puts(".");
}

static void close_explain(struct explain *explain)
{
    if (explain->engine)
        weir_engine_close(explain->engine);
    if (explain->store)
        explain->store->ops->close(explain->store);
    if (explain->table)
        weir_table_close(explain->table);
    weir_standing_close(explain->standing);
    weir_rules_unref(explain->rules);
    free(explain->explanations);
    free(explain);
}

static int explain_request(struct explain *explain)
{
    struct weir_reason reason = {{0}};
    if (cli_load_rules(&explain->rules, explain->options->config) < 0)
        return -1;
    explain->explanations =
        calloc((size_t)weir_rules_count(explain->rules) + 1, sizeof *explain->explanations);
    if (!explain->explanations)
        return fail(NULL, WEIR_ERR_MEMORY, &reason);
    int error =
        replay_request_fill(&explain->request, explain->rules, &explain->options->check, &reason);
    if (error < 0)
        return fail("request", error, &reason);
    if (cli_standing_open(&explain->standing, explain->rules, true) < 0)
        return -1;
    if (open_table(explain) < 0 || open_engine(explain) < 0 || evaluate(explain) < 0)
        return -1;
    print_answer(explain);
    return 0;
}

static int run(const struct explain_options *options)
{
    struct explain *explain = calloc(1, sizeof *explain);
    if (!explain) {
        cli_error("%s", weir_error_text(WEIR_ERR_MEMORY));
        return EXIT_FAILURE;
    }
    explain->options = options;
    int result = explain_request(explain);
    bool denied = options->exit_code && explain->denied;
    close_explain(explain);
    return cli_finish(result < 0 || denied ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* --- The command line ---------------------------------------------------------------------------
 */

/* Cuts "name<mark>value". */
static bool cut_pair(const char *text, char mark, struct weir_check_pair *pair)
{
    const char *at = strchr(text, mark);
    if (!at || at == text)
        return false;
    pair->name = (struct weir_bytes){text, (size_t)(at - text)};
    pair->value = weir_bytes_of(at + 1);
    return true;
}

static bool full(struct weir_reason *reason)
{
    reason_text(reason, "at most ");
    reason_number(reason, WEIR_CHECK_JSON_PAIRS_MAX);
    reason_text(reason, " of them");
    return false;
}

static bool take_header(void *field, char *value, struct weir_reason *reason)
{
    struct weir_check_json *check = field;
    struct weir_check_pair pair;
    if (!cut_pair(value, ':', &pair))
        return cli_refuse(reason, "'NAME: VALUE'", value);
    if (check->header_count == WEIR_CHECK_JSON_PAIRS_MAX)
        return full(reason);
    while (pair.value.size > 0 && (*pair.value.data == ' ' || *pair.value.data == '\t')) {
        pair.value.data++;
        pair.value.size--;
    }
    check->headers[check->header_count++] = pair;
    check->has_headers = true;
    return true;
}

static bool take_attribute(void *field, char *value, struct weir_reason *reason)
{
    struct weir_check_json *check = field;
    struct weir_check_pair pair;
    if (!cut_pair(value, '=', &pair))
        return cli_refuse(reason, "'NAME=VALUE'", value);
    if (check->attribute_count == WEIR_CHECK_JSON_PAIRS_MAX)
        return full(reason);
    check->attributes[check->attribute_count++] = pair;
    return true;
}

static bool take_bytes(void *field, char *value, struct weir_reason *reason)
{
    (void)reason;
    *(struct weir_bytes *)field = weir_bytes_of(value);
    return true;
}

#define AT(field) .at = offsetof(struct explain_options, field)

static const struct cli_option options_table[] = {
    CLI_OPTION('c', "config", "FILE", "the rules file", .kind = CLI_TEXT, AT(config)),
    CLI_OPTION('m', "method", "METHOD", "parts of the request", .kind = CLI_TAKEN,
               .take = take_bytes, AT(check.method)),
    CLI_OPTION('p', "path", "PATH", "", .kind = CLI_TAKEN, .take = take_bytes, AT(check.path)),
    CLI_OPTION(0, "host", "HOST", "", .kind = CLI_TAKEN, .take = take_bytes, AT(check.host)),
    CLI_OPTION(0, "ip", "ADDRESS", "", .kind = CLI_TAKEN, .take = take_bytes, AT(check.ip)),
    CLI_OPTION('H', "header", "'N: VALUE'", "a header; may be given again", .kind = CLI_TAKEN,
               .take = take_header, AT(check)),
    CLI_OPTION('a', "attribute", "N=VALUE",
               "any other attribute, as user=alice; may be given again", .kind = CLI_TAKEN,
               .take = take_attribute, AT(check)),
    CLI_OPTION(0, "cost", "N", "(1)", .kind = CLI_TEXT, AT(cost)),
    CLI_OPTION('j', "json", "REQUEST", "the request as for /v1/check, instead of the options above",
               .kind = CLI_TEXT, AT(json)),
    CLI_OPTION('s', "state", "FILE",
               "look into this state file, which a server may be using (without\n"
               "it, states are fresh)",
               .kind = CLI_TEXT, AT(state)),
    CLI_OPTION(0, "names", NULL, "list the attributes that every file has, instead",
               .kind = CLI_FLAG, AT(names)),
    CLI_UTC_OPTION(offsetof(struct explain_options, utc)),
    CLI_OPTION(0, "exit-code", NULL, "end with status 1 if the request is denied", .kind = CLI_FLAG,
               AT(exit_code)),
};

static const struct cli_syntax syntax = {
    .command = "explain",
    .usage = "Usage: weir explain --config=FILE [OPTION]...\n"
             "Show which limits a request meets, with which keys, why the others do not apply, and "
             "what\n"
             "they would decide now. Nothing is charged.\n",
    .options = options_table,
    .count = sizeof options_table / sizeof *options_table,
};

/* Whether an option gave a part of the request. */
static bool has_parts(const struct explain_options *options)
{
    const struct weir_check_json *check = &options->check;
    return check->method.data || check->path.data || check->host.data || check->ip.data ||
           check->header_count > 0 || check->attribute_count > 0 || options->cost;
}

/* `text` is an argument of ours, which may be written to. Returns 0 or the exit status. */
static int parse_json(struct weir_check_json *check, char *text)
{
    struct weir_reason reason = {{0}};
    struct weir_check_cursor cursor;
    weir_check_cursor_init(&cursor, text, strlen(text));
    int got = weir_check_cursor_next(&cursor, check, &reason);
    struct weir_check_json tail;
    if (got == 1 && !cursor.array)
        got = weir_check_cursor_next(&cursor, &tail, &reason) == 0 ? 1 : WEIR_ERR_SYNTAX;
    if (got == 1 && !cursor.array)
        return 0;
    return cli_usage_error("explain", "--json: %s", got < 0 ? reason.text : "not one JSON object");
}

int weir_command_explain(int argc, char **argv)
{
    static struct explain_options options; /* large for the stack */
    int status;
    options.check.cost = 1;
    if (cli_read_options(&syntax, argc, argv, &options, &status) < 0)
        return status;
    cli_time_choose(options.utc);
    if (options.names) {
        cli_explain_names();
        return cli_finish(EXIT_SUCCESS);
    }
    if (!options.config)
        return cli_usage_error("explain", "--config is required");
    if (options.json && has_parts(&options))
        return cli_usage_error("explain", "--json is the whole request: give no other part of it");
    if (options.cost && !cli_parse_count(options.cost, UINT64_MAX, &options.check.cost))
        return cli_usage_error("explain", "--cost: a number, not '%s'", options.cost);
    if (options.json && (status = parse_json(&options.check, options.json)) != 0)
        return status;
    return run(&options);
}
