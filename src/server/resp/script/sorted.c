/* SPDX-License-Identifier: Apache-2.0 */
/* see sorted.h */
#include "server/resp/script/sorted.h"

#include <string.h>

#include "core/counter.h"
#include "server/resp/counter_step.h"
#include "server/resp/decide.h"
#include "server/resp/edit.h"
#include "server/resp/reply.h"
#include "server/resp/script/fixed.h"
#include "server/resp/script/rates.h"

/* --- count and peek ------------------------------------------------------------------------------
 */

/* A look at the states of a kind at the first places of the key; NULL: it was answered. */
static struct weir_decision *look_at(struct weir_resp_call *call, enum weir_resp_kind kind,
                                     uint32_t places, uint64_t cost)
{
    char name[WEIR_SCRIPT_RATE_NAME_MAX];
    struct weir_decision *decision = weir_worker_take(call->redis->worker);
    if (!decision) { /* not after weir_worker_has_room */
        weir_resp_error(call, "ERR overloaded");
        return NULL;
    }
    decision->op = WEIR_OP_LOOK;
    decision->count = (uint16_t)places;
    for (uint16_t i = 0; i < decision->count; i++) {
        if (!weir_resp_fill_check(call, decision, i, kind,
                                  weir_script_rate_key(call->args[1], i, name), NULL)) {
            weir_worker_give(call->redis->worker, decision);
            return NULL;
        }
        decision->checks[i].cost = cost;
    }
    return decision;
}

/* Looks at all states of the key; `nth` of the newest is asked for, 0: none. */
static void look(struct weir_resp_call *call, uint64_t nth,
                 void (*write)(struct weir_slot *, struct weir_output *))
{
    if (!weir_resp_has_counters(call))
        return;
    uint32_t places = weir_script_rate_places(call->redis->shared, call->args[1]);
    struct weir_decision *decision = look_at(call, WEIR_RESP_WINDOWS, places, nth);
    if (decision)
        weir_resp_wait(call, decision, write);
}

struct seen {
    const struct weir_report *log; /* of the log that has most; NULL: a fixed window has more */
    int64_t used;                  /* by it, or by the fixed window that has most, */
    int64_t began_ms;              /* which began then */
    const char *error;
};

static struct seen seen_in(const struct weir_decision *decision)
{
    struct seen seen = {.error = decision->error ? "ERR store: the state is busy" : NULL};
    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_outcome *outcome = &decision->outcomes[i];
        const struct weir_report *report = &outcome->report;
        bool is_log = report->limit == WEIR_LOOK_LOG;
        if (outcome->verdict != WEIR_ALLOWED)
            continue;
        if (!is_log &&
            (report->limit != WEIR_LOOK_COUNTER || !weir_script_fixed_began(report->remaining)))
            seen.error = "WRONGTYPE Operation against a key holding the wrong kind of value";
        int64_t used =
            is_log ? (int64_t)report->remaining : weir_script_fixed_count(report->remaining);
        if (used <= seen.used)
            continue;
        seen.used = used;
        seen.log = is_log ? report : NULL;
        seen.began_ms = is_log ? 0 : weir_script_fixed_began(report->remaining);
    }
    return seen;
}

static void finish(struct weir_slot *slot, struct weir_output *output,
                   const struct weir_script_reply *reply)
{
    weir_script_write(slot, output, reply);
    weir_worker_give(slot->connection->worker, slot->decision);
}

static void zcard_write(struct weir_slot *slot, struct weir_output *output)
{
    const struct seen seen = seen_in(slot->decision);
    struct weir_script_reply reply = {.error = seen.error, .single = true};
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER, seen.used);
    finish(slot, output, &reply);
}

void weir_resp_zcard(struct weir_resp_call *call)
{
    look(call, 0, zcard_write);
}

/* One member and its score; with version 3 of the protocol a pair in a list, and a double. */
static char *write_item(char *out, int version, int64_t ms)
{
    char digits[24], *end = weir_decimal_write(digits, (uint64_t)ms);
    out = weir_resp_write_array(out, version >= 3 ? 1 : 2);
    if (version >= 3)
        out = weir_resp_write_array(out, 2);
    out = WEIR_RESP_WRITE_WORD(out, "item");
    if (version < 3)
        return weir_resp_write_bulk(out, digits, (size_t)(end - digits));
    return weir_resp_write_head(out, ',', (uint64_t)ms);
}

static void zrange_write(struct weir_slot *slot, struct weir_output *output)
{
    const struct weir_decision *decision = slot->decision;
    const struct seen seen = seen_in(decision);
    struct weir_script_reply reply = {.error = seen.error};
    if (reply.error || seen.used == 0 || (uint64_t)seen.used < decision->checks[0].cost) {
        finish(slot, output, &reply);
        return;
    }
    int64_t ms = seen.began_ms;
    if (seen.log)
        ms = (int64_t)((decision->now_ns - seen.log->retry_after_ns) / COUNTER_MS_NS);
    output->used =
        (size_t)(write_item(output->data + output->used, slot->flags, ms) - output->data);
    weir_worker_give(slot->connection->worker, slot->decision);
}

void weir_resp_zrange(struct weir_resp_call *call)
{
    int64_t from, to;
    if (!weir_resp_number(call->args[2], &from) || !weir_resp_number(call->args[3], &to))
        weir_resp_error(call, "ERR value is not an integer or out of range");
    else if (call->count != 5 || !weir_resp_is(call->args[4], "WITHSCORES") || from != to ||
             from >= 0 || from == INT64_MIN)
        weir_resp_error(call, "ERR weir serves ZRANGE key -n -n WITHSCORES, as pyrate-limiter "
                              "asks, and no other");
    else
        look(call, (uint64_t)-from, zrange_write);
}

/* --- leak ----------------------------------------------------------------------------------------
 */

struct leak {
    struct weir_edit edit; /* first */
    int64_t before_ms, forgotten;
};

static void leak_run(struct weir_edit *edit, struct weir_edit_state *states, uint32_t count,
                     uint64_t now_ns)
{
    struct leak *leak = (struct leak *)(void *)edit;
    leak->forgotten = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t used = weir_script_fixed_count(states[i].cell.b);
        int64_t began_ms = weir_script_fixed_began(states[i].cell.b);
        if (!weir_counter_exists(&states[i]) || !began_ms || began_ms >= leak->before_ms)
            continue;
        weir_counter_expire(&states[i], 0, now_ns);
        leak->forgotten = used > leak->forgotten ? used : leak->forgotten;
    }
}

static void leak_write(struct weir_slot *slot, struct weir_output *output)
{
    const struct leak *leak = weir_resp_edit_data(slot);
    char text[WEIR_RESP_PROBLEM_MAX];
    struct weir_script_reply reply = {.error = weir_resp_edit_failure(slot, text), .single = true};
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER, leak->forgotten);
    weir_script_write(slot, output, &reply);
    weir_resp_edit_finish(slot);
}

/* Any other bound than a time has nothing to forget: logs drop what has left their window. */
void weir_resp_zremrangebyscore(struct weir_resp_call *call)
{
    struct weir_resp_build build;
    struct weir_bytes key = call->args[1];
    char name[WEIR_SCRIPT_RATE_NAME_MAX];
    int64_t before_ms;
    if (call->redis->remote || !weir_resp_number(call->args[3], &before_ms)) {
        weir_resp_integer(call, 0);
        return;
    }
    struct leak *leak = weir_resp_build_begin(&build, call, sizeof *leak, leak_run);
    if (!leak)
        return;
    leak->before_ms = before_ms;
    for (uint32_t i = 0; i < weir_script_rate_places(call->redis->shared, key); i++)
        (void)weir_resp_build_key(&build, weir_script_rate_key(key, i, name));
    weir_resp_build_wait(&build, leak_write);
}

/* --- Buckets -------------------------------------------------------------------------------------
 */

#define US_NS UINT64_C(1000)

static void hmget_write(struct weir_slot *slot, struct weir_output *output)
{
    const struct weir_decision *decision = slot->decision;
    struct weir_script_reply reply = {.error = "ERR store: the state is busy"};
    if (decision->error) {
        finish(slot, output, &reply);
        return;
    }
    char *out = weir_resp_write_array(output->data + output->used, decision->count);
    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_outcome *outcome = &decision->outcomes[i];
        uint64_t full_ns = decision->now_ns + outcome->report.reset_after_ns;
        char digits[24], *end = weir_decimal_write(digits, (full_ns + US_NS - 1) / US_NS);
        out = outcome->verdict == WEIR_ALLOWED
                  ? weir_resp_write_bulk(out, digits, (size_t)(end - digits))
                  : weir_resp_write_null(out, slot->flags);
    }
    output->used = (size_t)(out - output->data);
    weir_worker_give(slot->connection->worker, slot->decision);
}

/* Whether the fields are tat1, tat2, ... */
static bool are_buckets(const struct weir_resp_call *call)
{
    if (call->count - 2 > WEIR_SCRIPT_RATES_MAX ||
        call->args[1].size > WEIR_SCRIPT_RATE_NAME_MAX - 2)
        return false;
    for (uint32_t i = 2; i < call->count; i++) {
        struct weir_bytes field = call->args[i];
        int64_t number;
        if (field.size < 4 || memcmp(field.data, "tat", 3) != 0 ||
            !weir_resp_number((struct weir_bytes){field.data + 3, field.size - 3}, &number) ||
            number != (int64_t)i - 1)
            return false;
    }
    return true;
}

void weir_resp_hmget(struct weir_resp_call *call)
{
    if (!are_buckets(call)) {
        weir_resp_error(call, "ERR weir serves HMGET key tat1 tat2 .., as pyrate-limiter asks, and "
                              "no other");
        return;
    }
    struct weir_decision *decision = look_at(call, WEIR_RESP_BUCKETS, call->count - 2, 0);
    if (decision)
        weir_resp_wait(call, decision, hmget_write);
}
