/* SPDX-License-Identifier: Apache-2.0 */
/* see increx.h */
#include "server/resp/increx.h"

#include "server/resp/counter_step.h"
#include "server/resp/decide.h"
#include "server/resp/edit.h"
#include "server/resp/increx_window.h"
#include "server/resp/reply.h"
#include "server/resp/script/script.h"
#include "wire/resp/line.h"

#define TIMES                                                                                      \
    (WEIR_INCREX_EX | WEIR_INCREX_PX | WEIR_INCREX_EXAT | WEIR_INCREX_PXAT | WEIR_INCREX_PERSIST)

/* --- Options -------------------------------------------------------------------------------------
 */

static const struct option {
    const char *name;
    uint16_t option;
    uint16_t excludes; /* beside itself */
    const char *value; /* as errors name it; NULL: it has none */
} options[] = {
    {"BYINT", WEIR_INCREX_BY, 0, "Increment is"},
    {"LBOUND", WEIR_INCREX_LOWER, 0, "LBOUND is"},
    {"UBOUND", WEIR_INCREX_UPPER, 0, "UBOUND is"},
    {"SATURATE", WEIR_INCREX_SATURATE, 0, NULL},
    {"EX", WEIR_INCREX_EX, TIMES, "value is"},
    {"PX", WEIR_INCREX_PX, TIMES, "value is"},
    {"EXAT", WEIR_INCREX_EXAT, TIMES, "value is"},
    {"PXAT", WEIR_INCREX_PXAT, TIMES, "value is"},
    {"PERSIST", WEIR_INCREX_PERSIST, TIMES | WEIR_INCREX_ENX, NULL},
    {"ENX", WEIR_INCREX_ENX, WEIR_INCREX_PERSIST, NULL},
};

static const struct option *find(struct weir_bytes name)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (weir_resp_is(name, options[i].name))
            return &options[i];
    return NULL;
}

static int64_t *place(struct weir_increx *increx, uint16_t option)
{
    return option == WEIR_INCREX_BY      ? &increx->by
           : option == WEIR_INCREX_LOWER ? &increx->lower
           : option == WEIR_INCREX_UPPER ? &increx->upper
                                         : &increx->time;
}

static bool is_refused(struct weir_resp_call *call, struct weir_bytes name)
{
    if (weir_resp_is(name, "BYFLOAT"))
        weir_resp_error(call, "ERR INCREX with BYFLOAT is not served: weir counts in integers; "
                              "count in a smaller unit, with BYINT");
    else if (weir_resp_is(name, "NX") || weir_resp_is(name, "XX"))
        weir_resp_error(call, "ERR INCREX with %.*s, an option of Valkey, is not served",
                        WEIR_RESP_SHOWN(name));
    else
        return false;
    return true;
}

/* Takes the option at args[*i]. False: it was answered. */
static bool option_read(struct weir_resp_call *call, uint32_t *i, struct weir_increx *increx)
{
    const struct option *option = find(call->args[*i]);
    if (is_refused(call, call->args[*i]))
        return false;
    if (!option || increx->options & (option->option | option->excludes) ||
        (option->value && *i + 1 >= call->count)) {
        weir_resp_syntax_error(call);
        return false;
    }
    increx->options |= option->option;
    if (!option->value)
        return true;
    struct weir_bytes value = call->args[++*i];
    if (value.data && resp_integer_read(value.data, value.size, place(increx, option->option)))
        return true;
    weir_resp_error(call, "ERR %s not an integer or out of range", option->value);
    return false;
}

static bool increx_read(struct weir_resp_call *call, struct weir_increx *increx)
{
    *increx = (struct weir_increx){.by = 1, .lower = INT64_MIN, .upper = INT64_MAX};
    for (uint32_t i = 2; i < call->count; i++)
        if (!option_read(call, &i, increx))
            return false;
    bool ends = increx->options & TIMES & ~WEIR_INCREX_PERSIST;
    if (increx->options & WEIR_INCREX_ENX && !ends)
        weir_resp_error(call, "ERR ENX flag requires an expiration");
    else if (increx->lower > increx->upper)
        weir_resp_error(call, "ERR LBOUND can't be greater than UBOUND");
    else if (ends && increx->time <= 0)
        weir_resp_error(call, "ERR invalid expire time in 'increx' command");
    else
        return true;
    return false;
}

/* --- The counter ---------------------------------------------------------------------------------
 */

struct increx_edit {
    struct weir_edit edit; /* first */
    struct weir_increx increx;
    int64_t value, added;
    const char *error;
};

/* value + by, as near as there is a number; false: it leaves the bounds. */
static bool add_within(const struct weir_increx *increx, int64_t value, int64_t *sum)
{
    bool beyond = __builtin_add_overflow(value, increx->by, sum);
    if (beyond)
        *sum = increx->by > 0 ? INT64_MAX : INT64_MIN;
    return !beyond && *sum >= increx->lower && *sum <= increx->upper;
}

static int64_t bounded(const struct weir_increx *increx, int64_t sum)
{
    return sum < increx->lower ? increx->lower : sum > increx->upper ? increx->upper : sum;
}

/* False: the time is out of range. */
static bool set_end(const struct weir_increx *increx, struct weir_edit_state *state,
                    uint64_t now_ns)
{
    const uint16_t seconds = WEIR_INCREX_EX | WEIR_INCREX_EXAT;
    const uint16_t absolute = WEIR_INCREX_EXAT | WEIR_INCREX_PXAT;
    bool keeps = increx->options & WEIR_INCREX_ENX && weir_counter_pttl(state, now_ns) != -1;
    const struct weir_counter_step step = {
        .time = increx->time,
        .flags = (increx->options & seconds ? WEIR_COUNTER_SECONDS : 0) |
                 (increx->options & absolute ? WEIR_COUNTER_ABSOLUTE : 0)};
    int64_t ends_ms;
    if (increx->options & WEIR_INCREX_PERSIST)
        weir_counter_persist(state, now_ns);
    if (!(increx->options & TIMES & ~WEIR_INCREX_PERSIST) || keeps)
        return true;
    if (!weir_counter_ends(&step, now_ns, &ends_ms))
        return false;
    weir_counter_expire(state, ends_ms, now_ns);
    return true;
}

static void increx_run(struct weir_edit *edit, struct weir_edit_state *states, uint32_t count,
                       uint64_t now_ns)
{
    struct increx_edit *run = (struct increx_edit *)(void *)edit;
    const struct weir_increx *increx = &run->increx;
    struct weir_edit_state *state = &states[0], before = states[0];
    int64_t sum;
    (void)count;
    run->error = state->other_until_ns
                     ? "WRONGTYPE Operation against a key holding the wrong kind of value"
                     : NULL;
    run->value = weir_counter_exists(state) ? (int64_t)state->cell.b : 0;
    run->added = 0;
    if (run->error ||
        (!add_within(increx, run->value, &sum) && !(increx->options & WEIR_INCREX_SATURATE)))
        return;
    if (__builtin_sub_overflow(bounded(increx, sum), run->value, &run->added) ||
        !weir_counter_add(state, run->added, now_ns)) {
        run->error = "ERR applied increment would overflow";
        return;
    }
    run->value += run->added;
    if (set_end(increx, state, now_ns))
        return;
    *state = before;
    run->error = "ERR invalid expire time in 'increx' command";
}

static void increx_write(struct weir_slot *slot, struct weir_output *output)
{
    const struct increx_edit *run = weir_resp_edit_data(slot);
    char text[WEIR_RESP_PROBLEM_MAX];
    const char *failure = weir_resp_edit_failure(slot, text);
    struct weir_script_reply reply = {.error = failure ? failure : run->error};
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER, run->value);
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER, run->added);
    weir_script_write(slot, output, &reply);
    weir_resp_edit_finish(slot);
}

void weir_resp_increx(struct weir_resp_call *call)
{
    struct weir_resp_build build;
    struct weir_increx increx;
    if (!increx_read(call, &increx))
        return;
    if (call->redis->remote) {
        weir_increx_window(call, &increx);
        return;
    }
    struct increx_edit *run = weir_resp_build_begin(&build, call, sizeof *run, increx_run);
    if (!run)
        return;
    run->increx = increx;
    (void)weir_resp_build_key(&build, call->args[1]);
    weir_resp_build_wait(&build, increx_write);
}
