/* SPDX-License-Identifier: Apache-2.0 */
/* see include/weir/weir.h */
#include <weir/weir.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "library/engine_slots.h"

#define MARK_EVERY_NS UINT64_C(1000000) /* the mark's line is shared: raised once a millisecond */

_Static_assert(sizeof((struct weir_lease_token){{0}}.text) >= WEIR_LEASE_TOKEN_MAX,
               "every token of the engine fits");

struct weir {
    struct weir_engine_slots lanes;
    struct weir_table *table;
    struct weir_table *spare; /* see weir_table_open_spare; NULL: private memory */
    char *rules_file;
    pthread_mutex_t reloading;
    /* A page that the kernel zeroes in a child (MADV_WIPEONFORK): tells it that the table's owner
     * slots are its parent's, for the price of a load. */
    unsigned char *ours;
    size_t page_size;
};

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* --- Rules ------------------------------------------------------------------------------------ */

static void explain(struct weir_reason *reason, const struct weir_problems *problems)
{
    if (problems->count == 0)
        return;
    const struct weir_problem *first = &problems->list[0];
    uint32_t more = problems->count - 1 + problems->dropped;
    char place[24] = "", others[24] = ""; /* for the largest numbers: all of it fits */
    if (first->line > 0)
        snprintf(place, sizeof place, "%u:%u:", first->line, first->column);
    if (more > 0)
        snprintf(others, sizeof others, " (and %u more)", more);
    snprintf(reason->text, sizeof reason->text, "%.100s:%s %.100s%s", first->file, place,
             first->message, others);
}

static int load(struct weir_rules **rules, const char *file, struct weir_reason *reason)
{
    struct weir_problems problems = {0};
    int err = weir_rules_load(rules, file, &problems);
    if (err < 0)
        explain(reason, &problems);
    weir_problems_free(&problems);
    return err;
}

struct preparing {
    struct weir_table *table;
    struct weir_reason *reason;
};

static int intern(void *context, struct weir_limit *limit, const char *name)
{
    const struct preparing *preparing = context;
    int err = weir_table_intern(preparing->table, limit);
    if (err < 0)
        snprintf(preparing->reason->text, sizeof preparing->reason->text, "limit %.64s: %s", name,
                 err == WEIR_ERR_FULL ? "no room for it in the state"
                 : err == WEIR_ERR_BUSY
                     ? "a process that shares the state file is stopped, and keeps its list of "
                       "limits locked: let it go on (SIGCONT) or end it"
                     : weir_error_text(err));
    return err;
}

static int unpin(void *context, struct weir_limit *limit, const char *name)
{
    weir_table_unpin(context, limit->id);
    return 0;
}

/* Nobody decides by these rules any more, or yet. */
static void forget(struct weir_rules *rules, struct weir_table *table)
{
    int never = weir_rules_prepare(rules, unpin, table);
    (void)never;
}

static int prepare(struct weir_rules *rules, struct weir_table *table, struct weir_reason *reason)
{
    struct preparing preparing = {table, reason};
    int err = weir_rules_prepare(rules, intern, &preparing);
    if (err < 0)
        forget(rules, table);
    return err;
}

/* --- Opening ---------------------------------------------------------------------------------- */

static int open_table(struct weir *weir, const struct weir_rules *rules,
                      const struct weir_options *options, struct weir_reason *reason)
{
    const struct weir_settings *settings = weir_rules_settings(rules);
    uint64_t patience_ns = options->state_patience_ns;
    if (patience_ns == 0)
        patience_ns = WEIR_STATE_PATIENCE_DEFAULT_NS;
    struct weir_table_options table = {
        .path = options->state_file ? options->state_file : settings->state_file,
        .bytes = options->state_bytes != 0 ? options->state_bytes : settings->state_bytes,
        .span_percent = settings->state_spans,
        .span_percent_new = weir_rules_span_percent(rules),
        .wall_ns = read_clock(CLOCK_REALTIME),
        .boot_ns = read_clock(CLOCK_BOOTTIME),
        .patience_ns = patience_ns != WEIR_NEVER ? patience_ns : 0,
    };
    int err = weir_table_open(&weir->table, &table, reason);
    weir->spare = NULL;
    if (err == 0 && table.path) {
        err = weir_table_open_spare(&weir->spare, weir->table, reason);
        if (err < 0)
            weir_table_close(weir->table);
    }
    return err;
}

static int open_guard(struct weir *weir)
{
    weir->page_size = (size_t)sysconf(_SC_PAGESIZE);
    weir->ours =
        mmap(NULL, weir->page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (weir->ours == MAP_FAILED)
        return WEIR_ERR_MEMORY;
    if (madvise(weir->ours, weir->page_size, MADV_WIPEONFORK) != 0) {
        munmap(weir->ours, weir->page_size);
        return WEIR_ERR_UNSUPPORTED;
    }
    *weir->ours = 1;
    return 0;
}

/* A map of standing that is there but cannot be read would let everybody in: the lanes do not tell
 * of it. */
static int try_standing(const struct weir_rules *rules, struct weir_reason *reason)
{
    struct weir_standing_reader reader = {NULL, 0, 0};
    int err = weir_standing_reader_open(&reader, rules, reason);
    weir_standing_reader_close(&reader);
    return err;
}

static int open_state(struct weir *weir, struct weir_rules *rules,
                      const struct weir_options *options, struct weir_reason *reason)
{
    struct weir_standing *lists;
    int err = open_table(weir, rules, options, reason);
    if (err < 0)
        return err;
    err = prepare(rules, weir->table, reason);
    if (err == 0)
        err = try_standing(rules, reason);
    if (err < 0)
        goto close_table;
    err = weir_standing_lists_open(&lists, rules, reason);
    if (err < 0)
        goto close_table;
    err = open_guard(weir);
    if (err < 0)
        goto close_lists;
    err = weir_engine_slots_open(&weir->lanes, weir->table, weir->spare, rules, lists);
    if (err < 0)
        goto close_guard;
    return 0;

close_guard:
    munmap(weir->ours, weir->page_size);
close_lists:
    weir_standing_close(lists);
close_table:
    weir_table_close(weir->spare);
    weir_table_close(weir->table);
    return err;
}

static int open_all(struct weir *weir, const char *rules_file, const struct weir_options *options,
                    struct weir_reason *reason)
{
    struct weir_rules *rules;
    weir->rules_file = strdup(rules_file);
    if (!weir->rules_file)
        return WEIR_ERR_MEMORY;
    int err = load(&rules, rules_file, reason);
    if (err == 0) {
        err = open_state(weir, rules, options, reason);
        weir_rules_unref(rules); /* the lanes hold it */
    }
    if (err < 0)
        free(weir->rules_file);
    return err;
}

int weir_open(struct weir **weir, const char *rules_file, const struct weir_options *options,
              struct weir_reason *reason)
{
    static const struct weir_options defaults = {NULL, 0, 0};
    struct weir_reason unwanted;
    if (!reason)
        reason = &unwanted;
    reason->text[0] = '\0';
    *weir = NULL;
    struct weir *w = aligned_alloc(128, (sizeof *w + 127) / 128 * 128);
    int err = WEIR_ERR_MEMORY;
    if (w)
        err = open_all(w, rules_file, options ? options : &defaults, reason);
    if (err < 0) {
        if (reason->text[0] == '\0')
            snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(err));
        free(w);
        return err;
    }
    pthread_mutex_init(&w->reloading, NULL);
    *weir = w;
    return 0;
}

static bool is_ours(const struct weir *weir)
{
    return *(volatile unsigned char *)weir->ours != 0;
}

void weir_close(struct weir *weir)
{
    if (!weir || !is_ours(weir))
        return;
    weir_engine_slots_close(&weir->lanes);
    weir_table_close(weir->spare);
    weir_table_close(weir->table);
    munmap(weir->ours, weir->page_size);
    pthread_mutex_destroy(&weir->reloading);
    free(weir->rules_file);
    free(weir);
}

int weir_reload(struct weir *weir, struct weir_reason *reason)
{
    struct weir_reason unwanted;
    if (!reason)
        reason = &unwanted;
    reason->text[0] = '\0';
    if (!is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    struct weir_rules *rules, *before;
    struct weir_standing *lists;
    pthread_mutex_lock(&weir->reloading);
    int err = load(&rules, weir->rules_file, reason);
    if (err == 0) {
        before = weir_rules_ref(weir->lanes.rules); /* which only a reload changes */
        err = prepare(rules, weir->table, reason);
        if (err == 0) {
            err = weir_standing_lists_open(&lists, rules, reason);
            if (err < 0)
                forget(rules, weir->table);
        }
        if (err == 0) {
            err = weir_engine_slots_set_rules(&weir->lanes, rules, lists);
            if (err == 0) /* else some lane has them still */
                forget(before, weir->table);
        }
        weir_rules_unref(before);
        weir_rules_unref(rules);
    }
    pthread_mutex_unlock(&weir->reloading);
    if (err < 0 && reason->text[0] == '\0')
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(err));
    return err;
}

/* --- Checking --------------------------------------------------------------------------------- */

#define HEADER_PREFIX "header."

static int find_attribute(const struct weir_rules *rules, const char *name)
{
    size_t prefix = sizeof HEADER_PREFIX - 1;
    if (strncasecmp(name, HEADER_PREFIX, prefix) == 0)
        return weir_rules_header(rules, name + prefix, strlen(name + prefix));
    return weir_rules_attribute(rules, name, strlen(name));
}

static int fill_request(struct weir_request *request, const struct weir_rules *rules,
                        const struct weir_attribute_value *attributes, size_t count)
{
    weir_request_clear(request, weir_rules_attribute_count(rules));
    request->trusted = true; /* the process itself */
    for (size_t i = 0; i < count; i++) {
        const char *value = attributes[i].value;
        int attribute = find_attribute(rules, attributes[i].name);
        if (attribute < 0 || !value)
            continue;
        size_t size = strlen(value);
        if (attribute != WEIR_ATTR_CLIENT_IP)
            request->values[attribute] = (struct weir_bytes){value, size};
        else if (weir_address_parse(&request->client, value, size) < 0)
            return WEIR_ERR_SYNTAX;
    }
    return 0;
}

static void summarise(const struct weir_decision *decision, struct weir_answer_summary *summary)
{
    struct weir_answer answer;
    weir_engine_answer(decision, &answer, summary->lease.text);
    summary->lease.text[answer.lease.data != NULL ? answer.lease.size : 0] = '\0';
    summary->allowed = answer.allowed;
    summary->repeated = answer.repeated;
    summary->store_failed = decision->error != 0;
    summary->retry_after_ns = answer.retry_after_ns;
    summary->delay_ns = answer.delay_ns;
    summary->action = answer.action != WEIR_ACTION_NONE ? weir_action_name(answer.action) : NULL;
    summary->remaining = WEIR_NEVER;
    summary->warning = 0;
    for (uint16_t i = 0; i < answer.count; i++) {
        const struct weir_answer_limit *limit = &answer.limits[i];
        if (!limit->shadow && !limit->unlimited && limit->report.remaining < summary->remaining)
            summary->remaining = limit->report.remaining;
        if (limit->warning.percent > summary->warning)
            summary->warning = limit->warning.percent;
    }
    summary->denied_by[0] = '\0';
    if (answer.denied_by >= 0) {
        struct weir_bytes name = answer.limits[answer.denied_by].name;
        snprintf(summary->denied_by, sizeof summary->denied_by, "%.*s", (int)name.size, name.data);
    } else if (answer.standing.refused) {
        snprintf(summary->denied_by, sizeof summary->denied_by, "%s", WEIR_ANSWER_BY_STANDING);
    }
    summary->standing[0] = summary->reason[0] = '\0';
    if (answer.standing.level.data) {
        snprintf(summary->standing, sizeof summary->standing, "%.*s",
                 (int)answer.standing.level.size, answer.standing.level.data);
        snprintf(summary->reason, sizeof summary->reason, "%.*s", (int)answer.standing.reason.size,
                 answer.standing.reason.data);
    }
}

static uint64_t lane_now(struct weir *weir, struct weir_lane *lane)
{
    uint64_t now_ns = weir_table_time(weir->table, read_clock(CLOCK_BOOTTIME));
    if (now_ns - lane->marked_ns >= MARK_EVERY_NS) {
        weir_table_mark(weir->table, now_ns);
        lane->marked_ns = now_ns;
    }
    return now_ns;
}

static uint64_t boot_clock(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

/* `weir serve` may have begun to keep standing, or replaced its map. */
static void renew_standing(struct weir_lane *lane)
{
    const struct weir_rules *rules = weir_engine_rules(lane->engine);
    if (__builtin_expect(weir_rules_settings(rules)->standing.file == NULL, 1))
        return;
    uint64_t now_ns = boot_clock();
    if (weir_standing_reader_stale(&lane->standing, now_ns) &&
        weir_standing_reader_renew(&lane->standing, rules, now_ns))
        weir_engine_set_standing(lane->engine, lane->standing.map);
}

/* `key.data` == NULL: none. */
static int check_in(struct weir *weir, struct weir_lane *lane,
                    const struct weir_attribute_value *attributes, size_t count, uint64_t cost,
                    struct weir_bytes key, struct weir_answer_summary *answer)
{
    struct weir_request request;
    renew_standing(lane);
    int err = fill_request(&request, weir_engine_rules(lane->engine), attributes, count);
    if (err < 0)
        return err;
    request.cost = cost;
    struct weir_decision *decision = weir_engine_take(lane->engine); /* its only one */
    err = weir_engine_apply_rules(lane->engine, decision, &request, NULL);
    if (err == 0 && key.data)
        err = weir_engine_apply_idempotency(lane->engine, decision, key, NULL);
    if (err == 0) {
        weir_engine_queue(lane->engine, decision);
        weir_engine_run(lane->engine, lane_now(weir, lane));
        summarise(decision, answer);
    }
    weir_engine_release(lane->engine, decision);
    return err;
}

static int check(struct weir *weir, const struct weir_attribute_value *attributes, size_t count,
                 uint64_t cost, struct weir_bytes key, struct weir_answer_summary *answer)
{
    if (!is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    int err = check_in(weir, lane, attributes, count, cost, key, answer);
    weir_engine_slots_leave(lane);
    return err;
}

int weir_check(struct weir *weir, const struct weir_attribute_value *attributes, size_t count,
               uint64_t cost, struct weir_answer_summary *answer)
{
    return check(weir, attributes, count, cost, (struct weir_bytes){NULL, 0}, answer);
}

int weir_check_once(struct weir *weir, const struct weir_attribute_value *attributes, size_t count,
                    uint64_t cost, const char *idempotency_key, struct weir_answer_summary *answer)
{
    struct weir_bytes key = {idempotency_key, strlen(idempotency_key)};
    if (key.size == 0 || key.size > WEIR_IDEMPOTENCY_KEY_MAX)
        return WEIR_ERR_RANGE;
    return check(weir, attributes, count, cost, key, answer);
}

int weir_release(struct weir *weir, const struct weir_lease_token *lease)
{
    if (!is_ours(weir))
        return WEIR_ERR_UNSUPPORTED;
    struct weir_bytes token = {lease->text, strnlen(lease->text, sizeof lease->text)};
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    struct weir_decision *decision = weir_engine_take(lane->engine); /* its only one */
    int err = weir_engine_apply_lease(lane->engine, decision, token);
    if (err == 0) {
        weir_engine_queue(lane->engine, decision);
        weir_engine_run(lane->engine, lane_now(weir, lane));
        err = decision->error != 0                ? decision->error
              : decision->verdict == WEIR_ALLOWED ? 0
                                                  : WEIR_ERR_NOT_FOUND;
    }
    weir_engine_release(lane->engine, decision);
    weir_engine_slots_leave(lane);
    return err;
}
