/* SPDX-License-Identifier: Apache-2.0 */
/* see rates.h */
#include "server/resp/script/rates.h"

#include <string.h>

#include "server/resp/decide.h"
#include "server/resp/reply.h"
#include "server/resp/script/deciding.h"
#include "server/resp/script/fixed.h"

#define FIRST 4 /* arguments before those of the rates: now, weight, (name or ttl), how many */
#define MS_MAX (INT64_C(31622400) * 1000) /* 366 days */
#define US_MAX (MS_MAX * 1000)
#define MS_NS INT64_C(1000000)
#define US_IN_SECOND INT64_C(1000000)
#define AMOUNT_MAX (INT64_C(1) << 40)

/* How many arguments each rate has. */
static uint32_t width(enum weir_script script)
{
    return script == WEIR_SCRIPT_PYRATE_WINDOWS ? 3 : 2;
}

/* --- One rate ------------------------------------------------------------------------------------
 */

/* interval in ms, limit */
static const struct weir_limit *of_interval(const struct weir_script_call *script, uint32_t at)
{
    int64_t interval_ms, most;
    if (!weir_script_integer(script, at, 1, MS_MAX, &interval_ms) ||
        !weir_script_integer(script, at + 1, 1, WEIR_LOG_MAX, &most))
        return NULL;
    return weir_script_log(script, most, (uint64_t)(interval_ms * MS_NS));
}

/* When the window began by the client's clock, and limit. */
static const struct weir_limit *of_window(const struct weir_script_call *script, uint32_t at)
{
    int64_t now_ms, began_ms, most;
    if (!weir_script_integer(script, 0, 0, INT64_MAX, &now_ms) ||
        !weir_script_integer(script, at, now_ms > MS_MAX ? now_ms - MS_MAX : 0, now_ms - 1,
                             &began_ms) ||
        !weir_script_integer(script, at + 1, 1, WEIR_LOG_MAX, &most))
        return NULL;
    return weir_script_log(script, most, (uint64_t)((now_ms - began_ms) * MS_NS));
}

/* us for one, burst */
static const struct weir_limit *of_emission(const struct weir_script_call *script, uint32_t at)
{
    int64_t emission_us, burst;
    if (!weir_script_integer(script, at, 1, US_MAX, &emission_us) ||
        !weir_script_integer(script, at + 1, 1, AMOUNT_MAX, &burst))
        return NULL;
    /* US_IN_SECOND in emission_us seconds is one in emission_us microseconds. */
    return weir_script_bucket(script, burst, US_IN_SECOND, (uint64_t)emission_us);
}

/* NULL: it was answered. */
static const struct weir_limit *limit_of(const struct weir_script_call *script, uint32_t at)
{
    switch (script->script) {
    case WEIR_SCRIPT_PYRATE_INTERVALS:
        return of_interval(script, at);
    case WEIR_SCRIPT_PYRATE_WINDOWS:
        return of_window(script, at);
    default:
        return of_emission(script, at);
    }
}

/* --- The decision --------------------------------------------------------------------------------
 */

struct weir_bytes weir_script_rate_key(struct weir_bytes key, uint32_t place,
                                       char name[WEIR_SCRIPT_RATE_NAME_MAX])
{
    if (!place)
        return key;
    memcpy(name, key.data ? key.data : "", key.size);
    name[key.size] = '\0';
    name[key.size + 1] = (char)place;
    return (struct weir_bytes){name, key.size + 2};
}

uint32_t weir_script_rate_places(const struct weir_resp_shared *shared, struct weir_bytes key)
{
    uint32_t rates = atomic_load_explicit(&shared->rates, memory_order_relaxed);
    return rates == 0 || key.size > WEIR_SCRIPT_RATE_NAME_MAX - 2 ? 1 : rates;
}

static void note_rates(struct weir_resp_shared *shared, uint32_t count)
{
    uint32_t most = atomic_load_explicit(&shared->rates, memory_order_relaxed);
    while (most < count && !atomic_compare_exchange_weak(&shared->rates, &most, count))
        ;
}

static bool fill(const struct weir_script_call *script, struct weir_decision *decision, uint32_t i,
                 int64_t weight)
{
    const bool buckets = script->script == WEIR_SCRIPT_PYRATE_GCRA;
    char name[WEIR_SCRIPT_RATE_NAME_MAX];
    const struct weir_limit *limit = limit_of(script, FIRST + i * width(script->script));
    if (!limit || !weir_resp_fill_check(script->call, decision, (uint16_t)i,
                                        buckets ? WEIR_RESP_BUCKETS : WEIR_RESP_WINDOWS,
                                        weir_script_rate_key(script->keys[0], i, name), limit))
        return false;
    decision->checks[i].cost = (uint64_t)weight;
    return true;
}

/* The first rate that denies; -1: none. */
static int64_t failing(const struct weir_decision *decision)
{
    for (uint16_t i = 0; decision->verdict == WEIR_DENIED && i < decision->count; i++)
        if (decision->outcomes[i].verdict == WEIR_DENIED)
            return i;
    return -1;
}

/* How long that rate denies, in ms, rounded up; -1: for ever. */
static int64_t wait_ms_of(const struct weir_decision *decision, int64_t rate)
{
    struct weir_report report;
    weir_decision_report(decision, (uint16_t)rate, &report);
    if (report.retry_after_ns > (uint64_t)INT64_MAX - (uint64_t)MS_NS)
        return -1;
    return (int64_t)(report.retry_after_ns + (uint64_t)MS_NS - 1) / MS_NS;
}

static void finish(struct weir_slot *slot, struct weir_output *output,
                   const struct weir_script_reply *reply)
{
    weir_script_write(slot, output, reply);
    weir_worker_give(slot->connection->worker, slot->decision);
}

/* The place of the rate that denies, or -1. */
static void intervals_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_script_reply reply = {.single = true};
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER, failing(slot->decision));
    finish(slot, output, &reply);
}

/* The same, and when the request was that blocks, by weir's clock in ms since 1970. The library
 * adds the interval to it, and takes its own clock's time from the sum. */
static void windows_write(struct weir_slot *slot, struct weir_output *output)
{
    const struct weir_decision *decision = slot->decision;
    struct weir_script_reply reply = {.error = NULL};
    int64_t rate = failing(decision), blocks_ms = -1;
    int64_t wait_ms = rate < 0 ? -1 : wait_ms_of(decision, rate);
    if (wait_ms >= 0)
        blocks_ms = (int64_t)(decision->now_ns / (uint64_t)MS_NS) + wait_ms -
                    (int64_t)(decision->checks[rate].limit->spec.window_ns / (uint64_t)MS_NS);
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER, rate);
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER, blocks_ms);
    finish(slot, output, &reply);
}

/* The same, and how long it denies. */
static void gcra_write(struct weir_slot *slot, struct weir_output *output)
{
    const struct weir_decision *decision = slot->decision;
    struct weir_script_reply reply = {.error = NULL};
    int64_t rate = failing(decision);
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER, rate);
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER, rate < 0 ? 0 : wait_ms_of(decision, rate));
    finish(slot, output, &reply);
}

static bool takes(const struct weir_script_call *script, int64_t *weight, int64_t *count)
{
    if (!weir_script_integer(script, 1, 0, AMOUNT_MAX, weight) ||
        !weir_script_integer(script, 3, 1, WEIR_SCRIPT_RATES_MAX, count))
        return false;
    if (script->arg_count < FIRST + (uint32_t)*count * width(script->script)) {
        weir_resp_error(script->call, "ERR this script takes %u arguments for each rate",
                        width(script->script));
        return false;
    }
    if (script->keys[0].size > WEIR_SCRIPT_RATE_NAME_MAX - 2) {
        weir_resp_error(script->call, "ERR the key is longer than %d bytes",
                        WEIR_SCRIPT_RATE_NAME_MAX - 2);
        return false;
    }
    return true;
}

/* A weight above the first limit, which is the least: no window ever admits it, whichever kind it
 * is. */
static bool never_fits(const struct weir_script_call *script, int64_t weight)
{
    int64_t most;
    return script->script == WEIR_SCRIPT_PYRATE_WINDOWS &&
           weir_resp_number(script->args[FIRST + 1], &most) && weight > most;
}

static void deny_for_ever(struct weir_resp_call *call)
{
    char *out = weir_resp_begin(call, WEIR_RESP_HEAD_MAX + 2 * WEIR_RESP_INTEGER_MAX);
    if (!out)
        return;
    out = weir_resp_write_array(out, 2);
    out = weir_resp_write_integer(out, 0);
    weir_resp_end(call, weir_resp_write_integer(out, -1));
}

void weir_script_rates(const struct weir_script_call *script)
{
    int64_t weight, count;
    if (!takes(script, &weight, &count))
        return;
    note_rates(script->call->redis->shared, (uint32_t)count);
    if (never_fits(script, weight)) {
        deny_for_ever(script->call);
        return;
    }
    if (script->script == WEIR_SCRIPT_PYRATE_WINDOWS &&
        weir_script_is_fixed(script, FIRST, (uint32_t)count, weight)) {
        weir_script_fixed(script, FIRST, (uint32_t)count, weight);
        return;
    }
    struct weir_decision *decision = weir_worker_take(script->call->redis->worker);
    if (!decision) { /* not after weir_worker_has_room */
        weir_resp_error(script->call, "ERR overloaded");
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (fill(script, decision, i, weight))
            continue;
        weir_worker_give(script->call->redis->worker, decision);
        return;
    }
    decision->count = (uint16_t)count;
    weir_resp_wait(script->call, decision,
                   script->script == WEIR_SCRIPT_PYRATE_INTERVALS ? intervals_write
                   : script->script == WEIR_SCRIPT_PYRATE_WINDOWS ? windows_write
                                                                  : gcra_write);
}
