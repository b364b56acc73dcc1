/* SPDX-License-Identifier: Apache-2.0 */
/* see deciding.h
 *
 * Buckets are those of CL.THROTTLE, so a key is one bucket whatever asks for it. A log's key is a
 * window's, as those of INCREX and of counters. */
#include "server/resp/script/deciding.h"

#include <string.h>

#include "server/resp/decide.h"
#include "server/resp/edit.h"
#include "server/resp/reply.h"
#include "server/resp/throttle.h"

#define SECOND_NS UINT64_C(1000000000)
#define MS_NS UINT64_C(1000000)
#define SECONDS_MAX INT64_C(31622400) /* 366 days */
#define BURST_MAX (INT64_C(1) << 40)
#define COST_MAX (INT64_C(1) << 53)

/* --- Replies of buckets
 * --------------------------------------------------------------------------- */

struct result {
    struct weir_report report;
    bool allowed;
    int64_t cost;
};

static struct result result_of(const struct weir_slot *slot)
{
    const struct weir_decision *decision = slot->decision;
    struct result result = {.allowed = decision->verdict != WEIR_DENIED,
                            .cost = (int64_t)decision->checks[0].cost};
    weir_decision_report(decision, 0, &result.report);
    return result;
}

/* A time for a client that reads a double; "never" is a long time. */
static int64_t wait_of(uint64_t ns)
{
    return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

static void finish(struct weir_slot *slot, struct weir_output *output,
                   const struct weir_script_reply *reply)
{
    weir_script_write(slot, output, reply);
    weir_worker_give(slot->connection->worker, slot->decision);
}

/* allowed, remaining, retry after ("-1": no wait), reset after */
static void say_rate(struct weir_script_reply *reply, const struct result *result)
{
    weir_script_say(reply, WEIR_SCRIPT_INTEGER, result->allowed ? result->cost : 0);
    weir_script_say(reply, WEIR_SCRIPT_INTEGER,
                    result->allowed ? (int64_t)result->report.remaining : 0);
    if (result->allowed)
        weir_script_say(reply, WEIR_SCRIPT_STRING, -1);
    else
        weir_script_say(reply, WEIR_SCRIPT_SECONDS, wait_of(result->report.retry_after_ns));
    weir_script_say(reply, WEIR_SCRIPT_SECONDS, wait_of(result->report.reset_after_ns));
}

static void rate_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_script_reply reply = {.error = NULL};
    const struct result result = result_of(slot);
    say_rate(&reply, &result);
    finish(slot, output, &reply);
}

/* limited (1 or null), remaining */
static void bucket_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_script_reply reply = {.error = NULL};
    const struct result result = result_of(slot);
    weir_script_say(&reply, result.allowed ? WEIR_SCRIPT_NULL : WEIR_SCRIPT_INTEGER, 1);
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER, (int64_t)result.report.remaining);
    finish(slot, output, &reply);
}

/* limited, remaining, reset after, retry after */
static void gcra_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_script_reply reply = {.error = NULL};
    const struct result result = result_of(slot);
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER, !result.allowed);
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER, (int64_t)result.report.remaining);
    weir_script_say(&reply, WEIR_SCRIPT_SECONDS, wait_of(result.report.reset_after_ns));
    weir_script_say(&reply, WEIR_SCRIPT_SECONDS, wait_of(result.report.retry_after_ns));
    finish(slot, output, &reply);
}

/* allowed, remaining */
static void spring_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_script_reply reply = {.error = NULL};
    const struct result result = result_of(slot);
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER, result.allowed);
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER, (int64_t)result.report.remaining);
    finish(slot, output, &reply);
}

/* --- Buckets
 * --------------------------------------------------------------------------------------- */

const struct weir_limit *weir_script_bucket(const struct weir_script_call *script, int64_t burst,
                                            uint64_t count, uint64_t window)
{
    const struct weir_limit *limit;
    struct weir_reason reason = {{0}};
    int err = weir_resp_bucket(script->call->redis, (uint64_t)burst, count, window, SECOND_NS,
                               &limit, &reason);
    if (err == 0)
        return limit;
    weir_adhoc_limit_error(script->call, err, "ERR ", &reason);
    return NULL;
}

static void decide(const struct weir_script_call *script, const struct weir_limit *limit,
                   enum weir_op op, int64_t cost,
                   void (*write)(struct weir_slot *, struct weir_output *))
{
    if (limit)
        weir_resp_decide(script->call, WEIR_RESP_BUCKETS, script->keys[0], limit, op,
                         (uint64_t)cost, write);
}

/* burst, rate, period in seconds (with a fraction), cost: as redis_rate has them. NULL: it was
 * answered. */
static const struct weir_limit *read_rate(const struct weir_script_call *script, int64_t *cost)
{
    int64_t burst, rate;
    uint64_t seconds, parts;
    if (!weir_script_integer(script, 0, 1, BURST_MAX, &burst) ||
        !weir_script_integer(script, 1, 1, BURST_MAX, &rate) ||
        !weir_script_fraction(script, 2, &seconds, &parts) ||
        !weir_script_integer(script, 3, 0, COST_MAX, cost))
        return NULL;
    if ((uint64_t)rate > UINT64_MAX / parts) {
        weir_resp_error(script->call, "ERR the rate of this script is out of range");
        return NULL;
    }
    return weir_script_bucket(script, burst, (uint64_t)rate * parts, seconds);
}

static void rate(const struct weir_script_call *script)
{
    int64_t cost = 0;
    const struct weir_limit *limit = read_rate(script, &cost);
    decide(script, limit, WEIR_OP_DECIDE, cost, rate_write);
}

/* rate in tokens per second (with a fraction), capacity, cost */
static void bucket(const struct weir_script_call *script)
{
    int64_t capacity, cost;
    uint64_t tokens, seconds;
    if (weir_script_fraction(script, 0, &tokens, &seconds) &&
        weir_script_integer(script, 1, 1, BURST_MAX, &capacity) &&
        weir_script_integer(script, 2, 0, COST_MAX, &cost))
        decide(script, weir_script_bucket(script, capacity, tokens, seconds), WEIR_OP_DECIDE, cost,
               bucket_write);
}

/* seconds per token (with a fraction), capacity, cost; a look has no cost, and asks for 1 */
static void gcra(const struct weir_script_call *script)
{
    bool peek = script->script == WEIR_SCRIPT_GCRA_PEEK;
    int64_t capacity, cost = 1;
    uint64_t tokens, seconds;
    if (weir_script_fraction(script, 0, &seconds, &tokens) &&
        weir_script_integer(script, 1, 1, BURST_MAX, &capacity) &&
        (peek || weir_script_integer(script, 2, 0, COST_MAX, &cost)))
        decide(script, weir_script_bucket(script, capacity, tokens, seconds),
               peek ? WEIR_OP_PEEK : WEIR_OP_DECIDE, cost, gcra_write);
}

/* rate per second, capacity, now, cost */
static void spring(const struct weir_script_call *script)
{
    int64_t tokens, capacity, cost;
    if (weir_script_integer(script, 0, 1, BURST_MAX, &tokens) &&
        weir_script_integer(script, 1, 1, BURST_MAX, &capacity) &&
        weir_script_integer(script, 3, 0, COST_MAX, &cost))
        decide(script, weir_script_bucket(script, capacity, (uint64_t)tokens, 1), WEIR_OP_DECIDE,
               cost, spring_write);
}

/* --- As much as there is
 * ---------------------------------------------------------------------------- */

struct at_most {
    struct weir_edit edit; /* first */
    const struct weir_limit *limit;
    int64_t cost;
    struct result result;
};

static void at_most_run(struct weir_edit *edit, struct weir_edit_state *states, uint32_t count,
                        uint64_t now_ns)
{
    struct at_most *most = (struct at_most *)(void *)edit;
    struct weir_cell *cell = &states[0].cell;
    struct weir_use use = {.now_ns = now_ns, .cost = 1};
    (void)count;
    most->result = (struct result){.allowed = false};
    weir_cell_report(most->limit, cell, &use, false, &most->result.report);
    if (most->result.report.remaining == 0)
        return;
    most->result.allowed = true;
    most->result.cost = most->cost;
    if ((uint64_t)most->cost > most->result.report.remaining)
        most->result.cost = (int64_t)most->result.report.remaining;
    use.cost = (uint64_t)most->result.cost;
    weir_cell_charge(most->limit, cell, now_ns, use.cost);
    weir_cell_report(most->limit, cell, &use, true, &most->result.report);
}

static void at_most_write(struct weir_slot *slot, struct weir_output *output)
{
    const struct at_most *most = weir_resp_edit_data(slot);
    struct weir_script_reply reply = {.error = NULL};
    char text[WEIR_RESP_PROBLEM_MAX];
    reply.error = weir_resp_edit_failure(slot, text);
    if (!reply.error)
        say_rate(&reply, &most->result);
    weir_script_write(slot, output, &reply);
    weir_resp_edit_finish(slot);
}

static void rate_at_most(const struct weir_script_call *script)
{
    struct weir_resp_build build;
    int64_t cost = 0;
    const struct weir_limit *limit;
    if (!weir_resp_has_counters(script->call))
        return;
    limit = read_rate(script, &cost);
    struct at_most *most =
        limit ? weir_resp_build_begin(&build, script->call, sizeof *most, at_most_run) : NULL;
    if (!most)
        return;
    most->limit = limit;
    most->cost = cost;
    (void)weir_resp_build_state(&build, WEIR_RESP_BUCKETS, script->keys[0], limit);
    weir_resp_build_wait(&build, at_most_write);
}

/* --- Logs
 * -------------------------------------------------------------------------------------------- */

const struct weir_limit *weir_script_log(const struct weir_script_call *script, int64_t most,
                                         uint64_t window_ns)
{
    struct weir_resp_workspace *redis = script->call->redis;
    const struct weir_limit *limit;
    struct weir_reason reason = {{0}};
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_SLIDING_LOG, .rate = (uint64_t)most, .window_ns = window_ns};
    weir_resp_refresh(redis);
    int err = weir_adhoc_limits_find(redis->shared->limits, redis->worker->store,
                                     redis->worker->local, &spec, NULL, &limit, &reason);
    if (err == 0)
        return limit;
    weir_adhoc_limit_error(script->call, err, "ERR ", &reason);
    return NULL;
}

static void take_from_log(const struct weir_script_call *script, const struct weir_limit *limit,
                          enum weir_op op, int64_t amount,
                          void (*write)(struct weir_slot *, struct weir_output *))
{
    if (limit)
        weir_resp_decide(script->call, WEIR_RESP_WINDOWS, script->keys[0], limit, op,
                         (uint64_t)amount, write);
}

static void moving_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_script_reply reply = {.single = true};
    const struct result result = result_of(slot);
    weir_script_say(&reply, result.allowed ? WEIR_SCRIPT_INTEGER : WEIR_SCRIPT_NULL, 1);
    finish(slot, output, &reply);
}

/* now, limit, seconds, amount */
static void moving_take(const struct weir_script_call *script)
{
    int64_t most, seconds, amount = 1;
    if (weir_script_integer(script, 1, 1, WEIR_LOG_MAX, &most) &&
        weir_script_integer(script, 2, 1, SECONDS_MAX, &seconds) &&
        (script->arg_count <= 3 || weir_script_integer(script, 3, 0, COST_MAX, &amount)))
        take_from_log(script, weir_script_log(script, most, (uint64_t)seconds * SECOND_NS),
                      WEIR_OP_DECIDE, amount, moving_write);
}

/* What remained before this request, when the log will be as new (denied: when a request will be
 * admitted) in seconds since 1970, and the limit. */
static void koa_write(struct weir_slot *slot, struct weir_output *output)
{
    const struct weir_decision *decision = slot->decision;
    struct weir_script_reply reply = {.error = NULL};
    const struct result result = result_of(slot);
    bool charged = result.allowed && decision->op == WEIR_OP_DECIDE;
    uint64_t wait_ns = result.allowed ? result.report.reset_after_ns : result.report.retry_after_ns;
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER,
                    result.allowed ? (int64_t)result.report.remaining + charged : 0);
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER,
                    (int64_t)((decision->now_ns + wait_ns) / SECOND_NS));
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER, (int64_t)result.report.limit);
    finish(slot, output, &reply);
}

/* now, ms, limit, whether it is only a look ("1") */
static void koa(const struct weir_script_call *script)
{
    int64_t most, ms;
    bool looks = script->arg_count > 3 && weir_resp_is(script->args[3], "1");
    if (weir_script_integer(script, 1, 1, SECONDS_MAX * 1000, &ms) &&
        weir_script_integer(script, 2, 1, WEIR_LOG_MAX, &most))
        take_from_log(script, weir_script_log(script, most, (uint64_t)ms * MS_NS),
                      looks ? WEIR_OP_PEEK : WEIR_OP_DECIDE, 1, koa_write);
}

/* When the oldest one was, in seconds since 1970, and how many there are; null where there is none.
 */
static void moving_count_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_decision *decision = slot->decision;
    const struct weir_report *seen = &decision->outcomes[0].report;
    struct weir_script_reply reply = {.error = NULL};
    if (decision->error) {
        reply.error = "ERR store: the state is busy";
    } else if (decision->verdict == WEIR_ALLOWED && seen->limit == WEIR_LOOK_LOG) {
        weir_script_say(&reply, WEIR_SCRIPT_SECONDS,
                        (int64_t)(decision->now_ns - seen->retry_after_ns));
        weir_script_say(&reply, WEIR_SCRIPT_INTEGER, (int64_t)seen->remaining);
    } else {
        reply.single = true;
        weir_script_say(&reply, WEIR_SCRIPT_NULL, 0);
    }
    finish(slot, output, &reply);
}

static void moving_count(const struct weir_script_call *script)
{
    if (weir_resp_has_counters(script->call))
        weir_resp_decide(script->call, WEIR_RESP_WINDOWS, script->keys[0], NULL, WEIR_OP_LOOK, 0,
                         moving_count_write);
}

void weir_script_decide(const struct weir_script_call *script)
{
    switch (script->script) {
    case WEIR_SCRIPT_MOVING_TAKE:
        moving_take(script);
        break;
    case WEIR_SCRIPT_MOVING_COUNT:
        moving_count(script);
        break;
    case WEIR_SCRIPT_RATE:
        rate(script);
        break;
    case WEIR_SCRIPT_RATE_AT_MOST:
        rate_at_most(script);
        break;
    case WEIR_SCRIPT_BUCKET:
        bucket(script);
        break;
    case WEIR_SCRIPT_KOA:
        koa(script);
        break;
    case WEIR_SCRIPT_GCRA:
    case WEIR_SCRIPT_GCRA_PEEK:
        gcra(script);
        break;
    default:
        spring(script);
        break;
    }
}
