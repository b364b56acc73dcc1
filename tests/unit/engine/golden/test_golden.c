/* SPDX-License-Identifier: Apache-2.0 */
/* Golden answers: what requests.txt is answered under rules.yaml, to the byte.
 *
 * requests.txt has requests over all features: denials, shadow, scales, candidates, repeats, plans,
 * penalties, missing keys, queries, reservations. Under plain.yaml, which has the limits without
 * the features that hang on requests, they are asked again. answers.txt is everything that a
 * client, an operator or a later request could see of each of them: checks with their keys and
 * hashes, the whole answer, header fields, the denial, warnings, strikes, trials, and at the end
 * the counters. A change of the path of a request leaves all of it as it is. A change that is
 * meant to answer otherwise writes the file anew, and its author reads the difference:
 *
 *     build/tests/unit/engine/test_engine_golden tests/unit/engine/golden write
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../table_rig.h"
#include "core/bytes.h"
#include "engine/counters.h"
#include "engine/effect/warning.h"
#include "engine/http/denial.h"
#include "engine/open.h"
#include "feature/adaptive/rules/limit.h"
#include "feature/penalties/engine/strike.h"
#include "feature/reserve/engine/reservation.h"
#include "feature/standing/standing.h"
#include "feature/use/engine/observe.h"
#include "rules/match/key_values.h"
#include "rules/source.h"
#include "test.h"
#include "wire/http/ratelimit_headers.h"

#define VALUES_MAX 16

struct golden {
    struct weir_engine *engine;
    struct weir_rules *rules;
    struct weir_table *table;
    struct weir_store *store;
    struct weir_standing *map;
    uint64_t now_ns;
    char lease[WEIR_LEASE_TOKEN_MAX], reservation[WEIR_RESERVATION_TEXT_MAX + 1];
    FILE *out;
    bool plain; /* under plain.yaml, without standing, and nobody observes; each decided at once */
};

/* One line of requests.txt. */
struct line {
    char what[16], argument[64];
    struct weir_request request;
    char room[4096];
};

static const char *folder;

static void print_ns(FILE *out, const char *name, uint64_t ns)
{
    if (ns == WEIR_NEVER)
        fprintf(out, " %s=never", name);
    else
        fprintf(out, " %s=%" PRIu64, name, ns);
}

static void print_report(FILE *out, const struct weir_report *report)
{
    fprintf(out, " limit=%" PRIu64 " remaining=%" PRIu64, report->limit, report->remaining);
    print_ns(out, "retry", report->retry_after_ns);
    print_ns(out, "reset", report->reset_after_ns);
}

static void print_bytes(FILE *out, const char *name, struct weir_bytes bytes)
{
    if (bytes.data)
        fprintf(out, " %s=\"%.*s\"", name, (int)bytes.size, bytes.data);
}

/* --- What the engine calls -------------------------------------------------------------------- */

static void on_done(void *context, struct weir_decision *decision)
{
    (void)context, (void)decision;
}

static void on_warning(void *context, const struct weir_warning *warning)
{
    struct golden *golden = context;
    fprintf(golden->out, "  warning %u%% used=%" PRIu64 " of %" PRIu64 " until=%" PRIu64,
            warning->percent, warning->used, warning->capacity, warning->resets_at_ns);
    print_bytes(golden->out, "limit", warning->limit);
    print_bytes(golden->out, "key", warning->key);
    print_bytes(golden->out, "user", warning->identity->user);
    fputc('\n', golden->out);
}

static void on_trial(void *context, const struct weir_check *check, enum weir_trial_outcome outcome)
{
    struct golden *golden = context;
    fprintf(golden->out, "  trial %s of rule %u\n", weir_trial_name(outcome), check->rule);
}

static enum weir_strike_answer on_strike(void *context, const struct weir_struck *struck)
{
    struct golden *golden = context;
    fprintf(golden->out, "  strike moves=%d again=%d at=%" PRIu64 "\n", struck->moves,
            struck->again, struck->now_ns);
    return WEIR_STRIKE_DONE;
}

static uint64_t on_clock(void *context)
{
    return ((struct golden *)context)->now_ns;
}

static uint32_t on_observe(void *context, const struct weir_observed *observed)
{
    struct golden *golden = context;
    struct weir_asker asker = weir_observed_caller(observed);
    fprintf(golden->out, "  observed sampled=%d route=%u plan=%u", observed->sampled,
            observed->place.route, observed->place.plan);
    print_bytes(golden->out, "user", asker.user);
    print_bytes(golden->out, "org", asker.org);
    fputc('\n', golden->out);
    return 7;
}

/* --- What is printed of a decision ------------------------------------------------------------ */

static void print_check(struct golden *golden, const struct weir_decision *decision, uint16_t i)
{
    const struct weir_check *check = &decision->checks[i];
    const struct weir_outcome *outcome = &decision->outcomes[i];
    char room[WEIR_KEY_TEXT_MAX];
    struct weir_bytes key = check->rule == UINT32_MAX
                                ? (struct weir_bytes){"", 0}
                                : weir_rules_key_text(golden->rules, check, room);
    fprintf(golden->out,
            "  check rule=%d hash=%016" PRIx64 "%016" PRIx64 " cost=%" PRIu64
            " flags=%u scale=%u.%u.%u.%u tag=%" PRIx64 " tuple=%u verdict=%u charged=%d",
            (int)check->rule, check->hash[0], check->hash[1], check->cost, check->flags,
            check->scale, check->scale_kind, check->scale_alone, check->challenged, check->tag,
            check->key_is_tuple, outcome->verdict, outcome->charged);
    print_ns(golden->out, "delay", outcome->delay_ns);
    print_bytes(golden->out, "key", key);
    fputc('\n', golden->out);
}

static void print_limit(FILE *out, const struct weir_answer *answer,
                        const struct weir_answer_limit *limit)
{
    fputs("  limit", out);
    print_bytes(out, "name", limit->name);
    if (!limit->limit || !limit->unlimited)
        print_report(out, &limit->report);
    print_ns(out, "next", limit->next_ns);
    fprintf(out, " cost=%" PRIu64 " scale=%u", limit->cost, limit->scale);
    fprintf(out, " %s%s%s%s%s%s warning=%u\n", limit->allowed ? "allowed" : "denied",
            limit->shadow ? " shadow" : "", limit->unlimited ? " unlimited" : "",
            limit->borrowed ? " borrowed" : "", limit->bought ? " bought" : "",
            limit->overflow ? " overflow" : "", limit->warning.percent);
    for (unsigned i = 0; i < limit->rate_count; i++) {
        const struct weir_answer_rate *rate = &answer->rates[limit->first_rate + i];
        fprintf(out, "    rate %s scale=%u", rate->allowed ? "allowed" : "denied", rate->scale);
        print_report(out, &rate->report);
        print_ns(out, "next", rate->next_ns);
        fputc('\n', out);
    }
}

static void print_http(struct golden *golden, const struct weir_answer *answer)
{
    static char fields[WEIR_RATELIMIT_HEADERS_MAX + WEIR_DENIAL_FIELDS_MAX];
    static char room[WEIR_DENIAL_BODY_MAX];
    struct weir_denial_body body;
    uint32_t dialects = weir_rules_settings(golden->rules)->headers;
    size_t size = weir_ratelimit_headers_write(dialects, answer, golden->now_ns / SECOND, fields);
    if (!answer->allowed)
        size += weir_denial_fields_write(answer, fields + size);
    for (size_t i = 0; i < size; i++)
        if (fields[i] != '\r')
            fputc(fields[i], golden->out);
    if (answer->allowed)
        return;
    unsigned status = weir_denial_status(answer);
    weir_denial_body_write(answer, status, room, &body);
    fprintf(golden->out, "  status %u %.*s\n  %.*s\n", status, (int)body.type.size, body.type.data,
            (int)body.text.size, body.text.data);
}

static void print_answer(struct golden *golden, const struct weir_decision *decision)
{
    static struct weir_answer answer;
    char lease[WEIR_LEASE_TOKEN_MAX];
    FILE *out = golden->out;
    weir_engine_answer(decision, &answer, lease);
    fprintf(out, "  %s denied_by=%d source=%u error=%d%s action=%u", answer.allowed ? "ok" : "no",
            answer.denied_by, answer.source, decision->error, answer.repeated ? " repeated" : "",
            answer.action);
    print_ns(out, "retry", answer.retry_after_ns);
    print_ns(out, "delay", answer.delay_ns);
    print_bytes(out, "standing", answer.standing.level);
    print_bytes(out, "class", answer.score.class);
    if (answer.score.class.data)
        fprintf(out, " score=%u held=%x", answer.score.score, answer.score.held);
    const char *class_name = weir_decision_class(decision);
    fprintf(out, " priority=%s\n", class_name ? class_name : "-");
    if (answer.lease.data) {
        memcpy(golden->lease, answer.lease.data, answer.lease.size);
        golden->lease[answer.lease.size] = '\0';
        fprintf(out, "  lease %s\n", golden->lease);
    }
    for (uint16_t i = 0; i < decision->count; i++)
        print_check(golden, decision, i);
    for (uint16_t i = 0; i < answer.count; i++)
        print_limit(out, &answer, &answer.limits[i]);
    print_http(golden, &answer);
}

static void print_reservation(struct golden *golden, const struct weir_decision *decision)
{
    uint64_t life_ns, id;
    golden->reservation[0] = '\0';
    if (decision->verdict != WEIR_ALLOWED || !weir_engine_reserved(decision))
        return;
    size_t size = weir_engine_reservation(golden->engine, decision, decision->now_ns, &life_ns, &id,
                                          golden->reservation);
    golden->reservation[size] = '\0';
    fprintf(golden->out, "  reservation %s\n", golden->reservation);
}

/* --- Requests --------------------------------------------------------------------------------- */

static void decide(struct golden *golden, struct weir_decision *decision)
{
    if (golden->plain) {
        weir_engine_decide(golden->engine, decision, golden->now_ns);
        return;
    }
    weir_engine_queue(golden->engine, decision);
    do
        weir_engine_run(golden->engine, golden->now_ns);
    while (weir_engine_waits(golden->engine));
}

static bool is(const struct line *line, const char *what)
{
    return strcmp(line->what, what) == 0;
}

/* Takes a decision and fills it; NULL: the request was refused. */
static struct weir_decision *apply(struct golden *golden, const struct line *line)
{
    struct weir_decision *decision = weir_engine_take(golden->engine);
    struct weir_reason reason = {""};
    int err = weir_engine_apply_rules(golden->engine, decision, &line->request, &reason);
    if (err == 0 && is(line, "peek"))
        decision->op = WEIR_OP_PEEK;
    if (err == 0 && is(line, "debit"))
        decision->op = WEIR_OP_DEBIT;
    if (err == 0 && is(line, "once"))
        err = weir_engine_apply_idempotency(golden->engine, decision, weir_bytes_of(line->argument),
                                            &reason);
    if (err == 0 && is(line, "reserve"))
        err = weir_engine_apply_reservation(golden->engine, decision, line->request.cost,
                                            WEIR_RESERVATION_LIFE_NS, &reason);
    if (err == 0)
        return decision;
    fprintf(golden->out, "  refused %s: %s\n", weir_error_text(err), reason.text);
    weir_engine_release(golden->engine, decision);
    return NULL;
}

static void ask(struct golden *golden, const struct line *line)
{
    struct weir_decision *decision = apply(golden, line);
    if (!decision)
        return;
    if (is(line, "outcome")) {
        fprintf(golden->out, "  strikes %u\n",
                weir_engine_strike_outcome(golden->engine, decision,
                                           (unsigned)strtoul(line->argument, NULL, 10)));
    } else {
        decide(golden, decision);
        print_answer(golden, decision);
        if (is(line, "reserve"))
            print_reservation(golden, decision);
    }
    weir_engine_release(golden->engine, decision);
}

static void settle(struct golden *golden, const struct line *line)
{
    struct weir_settle how = {.how = is(line, "settle")   ? WEIR_SETTLE_COST
                                     : is(line, "status") ? WEIR_SETTLE_STATUS
                                                          : WEIR_SETTLE_RELEASE};
    struct weir_decision *decision = weir_engine_take(golden->engine);
    struct weir_settled settled;
    how.cost = how.status = (uint32_t)strtoul(line->argument, NULL, 10);
    int err = weir_engine_apply_settle(golden->engine, decision, weir_bytes_of(golden->reservation),
                                       &how, golden->now_ns);
    if (err == 0) {
        decide(golden, decision);
        weir_engine_settled(decision, &settled);
        fprintf(golden->out, "  settled count=%u repeated=%d capped=%d failed=%d gone=%u op=%u\n",
                settled.count, settled.repeated, settled.capped, settled.failed, settled.gone,
                decision->op);
        for (uint16_t i = 0; i < settled.count; i++)
            fprintf(golden->out, "    cost=%" PRIu64 " dropped=%" PRIu64 "\n",
                    decision->checks[i].cost, settled.dropped[i]);
    } else {
        fprintf(golden->out, "  refused %s\n", weir_error_text(err));
    }
    weir_engine_release(golden->engine, decision);
}

static void end_lease(struct golden *golden)
{
    struct weir_decision *decision = weir_engine_take(golden->engine);
    assert_int_equal(
        weir_engine_apply_lease(golden->engine, decision, weir_bytes_of(golden->lease)), 0);
    decide(golden, decision);
    fprintf(golden->out, "  ended %d\n", decision->verdict == WEIR_ALLOWED);
    weir_engine_release(golden->engine, decision);
}

/* Of a limit whose key is `k` alone. */
static void reset(struct golden *golden, const struct line *line)
{
    int rule = weir_rules_find(golden->rules, line->argument, strlen(line->argument));
    int k = weir_rules_source(golden->rules, "k", 1).attribute;
    struct weir_decision *decision = weir_engine_take(golden->engine);
    const struct weir_key_values values = {.values = {line->request.values[k]}, .count = 1};
    struct weir_reason reason;
    assert_true(rule >= 0);
    assert_int_equal(
        weir_engine_apply_key(golden->engine, decision, (uint32_t)rule, &values, &reason), 0);
    decision->op = WEIR_OP_RESET;
    decide(golden, decision);
    fprintf(golden->out, "  reset %d\n", decision->verdict == WEIR_ALLOWED);
    weir_engine_release(golden->engine, decision);
}

static void answer_line(struct golden *golden, const struct line *line)
{
    if (is(line, "scale") && golden->plain)
        return;
    if (is(line, "scale"))
        weir_rules_set_scale(golden->rules, 0, (uint8_t)strtoul(line->argument, NULL, 10));
    else if (is(line, "settle") || is(line, "status") || is(line, "cancel"))
        settle(golden, line);
    else if (is(line, "end"))
        end_lease(golden);
    else if (is(line, "reset"))
        reset(golden, line);
    else
        ask(golden, line);
}

static bool takes_argument(const struct line *line)
{
    static const char *const with[] = {"cost",  "once",    "settle", "status",
                                       "scale", "outcome", "reset"};
    for (size_t i = 0; i < sizeof with / sizeof *with; i++)
        if (is(line, with[i]))
            return true;
    return false;
}

static void read_line(struct golden *golden, char *text, struct line *line)
{
    char *rest, *word = strtok_r(text, " \n", &rest);
    golden->now_ns += strtoull(word, NULL, 10) * (SECOND / 1000);
    snprintf(line->what, sizeof line->what, "%s", strtok_r(NULL, " \n", &rest));
    line->argument[0] = '\0';
    if (takes_argument(line))
        snprintf(line->argument, sizeof line->argument, "%s", strtok_r(NULL, " \n", &rest));
    weir_request_begin(&line->request, golden->rules, WEIR_FIELDS_ALL,
                       (struct weir_room){line->room, sizeof line->room});
    line->request.cost = is(line, "cost") ? strtoull(line->argument, NULL, 10) : 1;
    while ((word = strtok_r(NULL, " \n", &rest))) {
        size_t name = strcspn(word, "=");
        assert_int_equal(word[name], '=');
        weir_request_put_name(&line->request, (struct weir_bytes){word, name},
                              weir_bytes_of(word + name + 1), WEIR_TRUST_CONFIGURATION);
    }
    assert_int_equal(weir_request_end(&line->request, NULL), 0);
}

/* --- Everything ------------------------------------------------------------------------------- */

static void hold(struct golden *golden, const char *network, enum weir_standing_level level)
{
    const struct weir_standing_entry entry = {.until_ns = WEIR_NEVER,
                                              .level = (uint8_t)level,
                                              .origin = WEIR_STANDING_BY_LIST,
                                              .reason_size = 5,
                                              .reason = "abuse"};
    struct weir_cidr cidr;
    assert_int_equal(weir_cidr_parse(&cidr, network, strlen(network)), 0);
    assert_int_equal(weir_standing_set_network(golden->map, &cidr, &entry), 0);
}

static void open_all(struct golden *golden)
{
    const struct weir_standing_options standing = {.entries_max = 1000, .secret = {3, 4}};
    struct weir_problems problems = {0};
    struct weir_reason reason;
    char path[512];
    snprintf(path, sizeof path, "%s/%s.yaml", folder, golden->plain ? "plain" : "rules");
    assert_int_equal(weir_rules_load(&golden->rules, path, &problems), 0);
    weir_problems_free(&problems);
    golden->now_ns = START;
    golden->table = rig_table(8 << 20);
    golden->store = rig_embedded(golden->table);
    rig_prepare(golden->rules, golden->store);
    assert_int_equal(weir_standing_create(&golden->map, &standing, &reason), 0);
    weir_standing_begin_lists(golden->map);
    hold(golden, "192.0.2.66", WEIR_STANDING_THROTTLED);
    hold(golden, "203.0.113.0/24", WEIR_STANDING_REVOKED);
    hold(golden, "198.18.0.0/15", WEIR_STANDING_TRUSTED);
    weir_standing_end_lists(golden->map);
    const struct weir_engine_options options = {.store = golden->store,
                                                .rules = golden->rules,
                                                .secret = weir_table_secret(golden->table),
                                                .lease_seed = 1,
                                                .decisions = 8,
                                                .done = on_done,
                                                .standing = golden->plain ? NULL : golden->map,
                                                .warn = on_warning,
                                                .warn_context = golden,
                                                .tried = on_trial,
                                                .tried_context = golden,
                                                .strike = on_strike,
                                                .strike_context = golden,
                                                .observe = golden->plain ? NULL : on_observe,
                                                .observe_context = golden,
                                                .clock = on_clock,
                                                .clock_context = golden};
    assert_int_equal(weir_engine_open(&golden->engine, &options), 0);
}

static void close_all(struct golden *golden)
{
    weir_engine_close(golden->engine);
    golden->store->ops->close(golden->store);
    weir_table_close(golden->table);
    weir_standing_close(golden->map);
    weir_rules_unref(golden->rules);
}

static void print_counters(struct golden *golden)
{
    for (uint32_t i = 0; i < weir_rules_count(golden->rules); i++) {
        const struct weir_engine_counters *c = weir_engine_counters(golden->engine, i);
        fprintf(golden->out,
                "%s: allowed=%" PRIu64 " denied=%" PRIu64 " shadow=%" PRIu64 " cost=%" PRIu64
                " delayed=%" PRIu64 " borrowed=%" PRIu64,
                weir_rules_name(golden->rules, i), c->counts.allowed, c->counts.denied,
                c->counts.shadow_denied, c->counts.cost, c->counts.delayed, c->borrowed);
        for (int a = 0; a < WEIR_ACTIONS; a++)
            fprintf(golden->out, " %" PRIu64, c->actions[a]);
        for (int a = 0; a < RULES_CLASSES_MAX; a++)
            fprintf(golden->out, " %" PRIu64, c->class_denied[a]);
        fputc('\n', golden->out);
    }
}

/* Answers all of requests.txt into `out`. Returns how many lines it has. */
static unsigned answer_all(FILE *out, bool plain)
{
    static struct line line;
    struct golden golden = {.out = out, .plain = plain};
    char path[512], text[1024];
    unsigned count = 0;
    snprintf(path, sizeof path, "%s/requests.txt", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    open_all(&golden);
    while (fgets(text, sizeof text, file)) {
        if (!isdigit((unsigned char)text[0]))
            continue;
        fputs(text, out);
        read_line(&golden, text, &line);
        answer_line(&golden, &line);
        count++;
    }
    fclose(file);
    print_counters(&golden);
    close_all(&golden);
    return count;
}

static char *read_whole(const char *path, size_t *size)
{
    char *text = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    ssize_t read = getdelim(&text, &room, '\0', file);
    assert_true(read > 0);
    *size = (size_t)read;
    fclose(file);
    return text;
}

TEST("every answer is as it was, to the byte")
{
    char path[512], *made, *expected;
    size_t made_size, expected_size;
    FILE *out = open_memstream(&made, &made_size);
    assert_non_null(out);
    assert_true(answer_all(out, false) >= 60);
    assert_true(answer_all(out, true) >= 60);
    assert_int_equal(fclose(out), 0);
    snprintf(path, sizeof path, "%s/answers.txt", folder);
    expected = read_whole(path, &expected_size);
    char *left = made, *right = expected;
    while (*left || *right) {
        char *a = strsep(&left, "\n"), *b = strsep(&right, "\n");
        if (!left || !right || strcmp(a, b) != 0) {
            assert_string_equal(a, b);
            assert_true(left && right);
        }
    }
    free(made);
    free(expected);
}

static int write_answers(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/answers.txt", folder);
    FILE *out = fopen(path, "w");
    if (!out)
        return 1;
    (void)answer_all(out, false);
    (void)answer_all(out, true);
    return fclose(out);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 1;
    folder = argv[1];
    return argc > 2 && strcmp(argv[2], "write") == 0 ? write_answers()
                                                     : tests_run(__FILE__, NULL, NULL);
}
