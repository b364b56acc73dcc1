/* SPDX-License-Identifier: Apache-2.0 */
/* see counting.h */
#include "server/resp/script/counting.h"

#include <string.h>

#include "core/counter.h"
#include "core/wide.h"
#include "server/resp/counter_step.h"
#include "server/resp/edit.h"
#include "server/resp/reply.h"

/* What a script's numbers may be: a life in seconds or ms, and an amount. */
#define SECONDS_MAX INT64_C(31622400) /* 366 days */
#define MS_MAX (SECONDS_MAX * 1000)
#define AMOUNT_MAX (INT64_C(1) << 53)

struct counting {
    struct weir_edit edit; /* first */
    enum weir_script script;
    int64_t args[4]; /* as `signature` reads them */
    uint8_t states[2];
    struct weir_script_reply reply;
};

/* One run: the counters of the script's keys, and the time. */
struct run {
    struct counting *counting;
    struct weir_edit_state *key, *second; /* KEYS[1], KEYS[2] */
    uint64_t now_ns;
    int64_t now_ms;
};

static void say(const struct run *run, enum weir_script_type type, int64_t number)
{
    weir_script_say(&run->counting->reply, type, number);
}

static void say_single(const struct run *run, enum weir_script_type type, int64_t number)
{
    run->counting->reply.single = true;
    say(run, type, number);
}

static int64_t value_of(const struct weir_edit_state *state)
{
    return (int64_t)state->cell.b;
}

/* The same where it is added up: no sum of these overflows. */
static int64_t capped(const struct weir_edit_state *state)
{
    const int64_t most = INT64_C(1) << 60;
    int64_t value = value_of(state);
    return value > most ? most : value < -most ? -most : value;
}

static void say_value(const struct run *run, const struct weir_edit_state *state)
{
    say(run, weir_counter_exists(state) ? WEIR_SCRIPT_STRING : WEIR_SCRIPT_NULL, value_of(state));
}

/* Adds; false: it would overflow, and that is the reply. */
static bool add(const struct run *run, struct weir_edit_state *state, int64_t amount)
{
    if (weir_counter_add(state, amount, run->now_ns))
        return true;
    run->counting->reply.error = "ERR increment or decrement would overflow";
    return false;
}

static int64_t pttl(const struct run *run, const struct weir_edit_state *state)
{
    return weir_counter_pttl(state, run->now_ns);
}

static void put(const struct run *run, struct weir_edit_state *state, int64_t value,
                int64_t life_ms)
{
    weir_counter_put(state, value, run->now_ms + life_ms, run->now_ns);
}

static void expire(const struct run *run, struct weir_edit_state *state, int64_t life_ms)
{
    weir_counter_expire(state, run->now_ms + life_ms, run->now_ns);
}

/* --- The scripts ---------------------------------------------------------------------------------
 */

/* amount, seconds. Over Valkey the script lets a counter without an end stay so: the library
 * blocks a key for ever by one. */
static void increment_new(const struct run *run)
{
    const int64_t *args = run->counting->args;
    if (!weir_counter_exists(run->key))
        put(run, run->key, 0, args[1] * 1000);
    if (!add(run, run->key, args[0]))
        return;
    if (run->counting->script == WEIR_SCRIPT_INCREMENT_NEW && pttl(run, run->key) == -1)
        expire(run, run->key, args[1] * 1000);
    say(run, WEIR_SCRIPT_INTEGER, value_of(run->key));
    say(run, WEIR_SCRIPT_INTEGER, pttl(run, run->key));
}

/* reset (1: each hit renews the window), ms */
static void count_then_life(const struct run *run)
{
    const int64_t *args = run->counting->args;
    if (!add(run, run->key, 1))
        return;
    if (pttl(run, run->key) <= 0 || args[0] == 1)
        expire(run, run->key, args[1]);
    say(run, WEIR_SCRIPT_INTEGER, value_of(run->key));
    say(run, WEIR_SCRIPT_INTEGER, pttl(run, run->key));
}

/* The same; a counter without an end begins anew. */
static void window(const struct run *run)
{
    const int64_t *args = run->counting->args;
    if (pttl(run, run->key) <= 0)
        put(run, run->key, 1, args[1]);
    else if (!add(run, run->key, 1))
        return;
    else if (args[0] == 1)
        expire(run, run->key, args[1]);
    say(run, WEIR_SCRIPT_INTEGER, value_of(run->key));
    say(run, WEIR_SCRIPT_INTEGER, pttl(run, run->key));
}

static void count_and_life(const struct run *run)
{
    say_value(run, run->key);
    say(run, WEIR_SCRIPT_INTEGER, pttl(run, run->key));
}

/* seconds, amount */
static void increment(const struct run *run)
{
    const int64_t *args = run->counting->args;
    if (!add(run, run->key, args[1]))
        return;
    say_single(run, WEIR_SCRIPT_INTEGER, value_of(run->key));
    if (value_of(run->key) == args[1])
        expire(run, run->key, args[0] * 1000);
}

/* The counter of the present window lives for two windows. When the first is over, it becomes that
 * of the one before. */
static void slide(const struct run *run, int64_t window_ms)
{
    int64_t left_ms = pttl(run, run->second);
    if (left_ms <= 0 || left_ms >= window_ms)
        return;
    run->key->cell = run->second->cell;
    put(run, run->second, 0, left_ms + window_ms);
}

/* seconds */
static void sliding_counts(const struct run *run)
{
    slide(run, run->counting->args[0] * 1000);
    say_value(run, run->key);
    say(run, WEIR_SCRIPT_INTEGER, pttl(run, run->key));
    say_value(run, run->second);
    say(run, WEIR_SCRIPT_INTEGER, pttl(run, run->second));
}

/* count * left / window, rounded down; `left` counts as at most `window`. */
static int64_t weigh(int64_t count, int64_t left, int64_t window)
{
    uint64_t rest, part = (uint64_t)(left < window ? left : window);
    struct wide product = wide_multiply((uint64_t)(count > 0 ? count : 0), part);
    return (int64_t)wide_divide(product.hi, product.lo, (uint64_t)window, &rest);
}

/* limit, seconds, amount */
static void sliding_take(const struct run *run)
{
    const int64_t *args = run->counting->args;
    int64_t window_ms = args[1] * 1000, left_ms;
    bool admits = args[2] <= args[0];
    if (admits) {
        slide(run, window_ms);
        left_ms = pttl(run, run->key);
        admits =
            weigh(capped(run->key), left_ms > 0 ? left_ms : 0, window_ms) + capped(run->second) <=
            args[0] - args[2];
    }
    if (admits && weir_counter_exists(run->second))
        admits = add(run, run->second, args[2]);
    else if (admits)
        put(run, run->second, args[2], 2 * window_ms);
    say_single(run, admits ? WEIR_SCRIPT_INTEGER : WEIR_SCRIPT_NULL, 1);
}

/* seconds, limit, amount */
static void fixed(const struct run *run)
{
    const int64_t *args = run->counting->args;
    if (!add(run, run->key, args[2]))
        return;
    if (value_of(run->key) == args[2])
        expire(run, run->key, args[0] * 1000);
    say(run, WEIR_SCRIPT_INTEGER, value_of(run->key) > args[1]);
    say(run, WEIR_SCRIPT_INTEGER, value_of(run->key));
}

/* What both scripts of two windows answer. `left_ms`: until the present one ends. */
static void say_two_windows(const struct run *run, int64_t used, bool limited, int64_t before,
                            int64_t left_ms)
{
    int64_t amount = run->counting->args[2], retry_ns = 0;
    if (limited)
        retry_ns = left_ms * (int64_t)COUNTER_MS_NS;
    if (limited && before > 0 && amount <= before)
        retry_ns = weigh(retry_ns, amount, before);
    say(run, limited ? WEIR_SCRIPT_INTEGER : WEIR_SCRIPT_NULL, 1);
    say(run, WEIR_SCRIPT_INTEGER, used);
    say(run, WEIR_SCRIPT_SECONDS, retry_ns);
}

/* seconds, limit, amount. KEYS[1] is the present window's, KEYS[2] that of the one before. */
static void two_windows(const struct run *run)
{
    const int64_t *args = run->counting->args;
    const int64_t window_ms = args[0] * 1000, left_ms = window_ms - run->now_ms % window_ms;
    int64_t before = weigh(capped(run->second), left_ms, window_ms);
    int64_t used = before + capped(run->key) + args[2];
    bool limited = used > args[1] && args[2] != 0;
    if (!limited && !weir_counter_exists(run->key))
        put(run, run->key, args[2], 3 * window_ms);
    else if (!limited && !add(run, run->key, args[2]))
        return;
    say_two_windows(run, used, limited, before, left_ms);
}

/* The same, and what is denied counts too. */
static void two_windows_all(const struct run *run)
{
    const int64_t *args = run->counting->args;
    const int64_t window_ms = args[0] * 1000, left_ms = window_ms - run->now_ms % window_ms;
    if (!add(run, run->key, args[2]))
        return;
    if (value_of(run->key) == args[2])
        expire(run, run->key, 3 * window_ms);
    int64_t before = weigh(capped(run->second), left_ms, window_ms);
    int64_t used = before + capped(run->key);
    say_two_windows(run, used, used > args[1], before, left_ms);
}

/* old, new, seconds */
static void swap(const struct run *run)
{
    const int64_t *args = run->counting->args;
    bool same = weir_counter_exists(run->key) && value_of(run->key) == args[0];
    if (!weir_counter_exists(run->key)) {
        run->counting->reply.error = "key does not exist";
        return;
    }
    if (same)
        put(run, run->key, args[1], args[2] * 1000);
    say_single(run, WEIR_SCRIPT_INTEGER, same);
}

/* amount, ms */
static void increment_ms(const struct run *run)
{
    const int64_t *args = run->counting->args;
    int64_t life_ms = args[1];
    if (!add(run, run->key, args[0]))
        return;
    say(run, WEIR_SCRIPT_INTEGER, value_of(run->key));
    if (value_of(run->key) != args[0])
        life_ms = pttl(run, run->key);
    else if (life_ms > 0)
        expire(run, run->key, life_ms);
    say(run, WEIR_SCRIPT_INTEGER, life_ms);
}

static void count_or_zero(const struct run *run)
{
    bool exists = weir_counter_exists(run->key);
    say(run, WEIR_SCRIPT_INTEGER, exists ? value_of(run->key) : 0);
    say(run, WEIR_SCRIPT_INTEGER, exists ? pttl(run, run->key) : 0);
}

/* value, seconds */
static void laravel_add(const struct run *run)
{
    const int64_t *args = run->counting->args;
    bool exists = weir_counter_exists(run->key);
    if (!exists)
        put(run, run->key, args[0], args[1] * 1000);
    say_single(run, exists ? WEIR_SCRIPT_NULL : WEIR_SCRIPT_OK, 0);
}

/* seconds, limit: a window that begins with its first use, in whole seconds */
static void laravel_duration(const struct run *run)
{
    const int64_t *args = run->counting->args;
    int64_t ends_s = run->now_ms / 1000 + args[0];
    bool begins = !weir_counter_exists(run->key) || pttl(run, run->key) < 0;
    if (begins)
        weir_counter_put(run->key, 1, ends_s * 1000, run->now_ns);
    else if (!add(run, run->key, 1))
        return;
    else
        ends_s = (int64_t)(run->key->cell.a / COUNTER_MS_NS / 1000);
    bool admits = begins || value_of(run->key) <= args[1];
    say(run, admits ? WEIR_SCRIPT_INTEGER : WEIR_SCRIPT_NULL, 1);
    say(run, begins ? WEIR_SCRIPT_INTEGER : WEIR_SCRIPT_STRING, ends_s);
    say(run, WEIR_SCRIPT_INTEGER, args[1] - (begins ? 1 : capped(run->key)));
}

/* seconds, limit */
static void laravel_too_many(const struct run *run)
{
    const int64_t *args = run->counting->args;
    if (weir_counter_exists(run->key) && !counter_is_endless(&run->key->cell)) {
        say(run, WEIR_SCRIPT_STRING, (int64_t)(run->key->cell.a / COUNTER_MS_NS / 1000));
        say(run, WEIR_SCRIPT_INTEGER, args[1] - capped(run->key));
        return;
    }
    say(run, WEIR_SCRIPT_INTEGER, 0);
    say(run, WEIR_SCRIPT_INTEGER, run->now_ms / 1000 + args[0]);
}

/* The window that a hit above the limit begins: twice as long for each further one, as far as a
 * counter lives. */
static int64_t backed_off(int64_t window_ms, int64_t exceeding)
{
    for (; exceeding > 1 && window_ms < MS_MAX; exceeding--)
        window_ms *= 2;
    return window_ms < MS_MAX ? window_ms : MS_MAX;
}

/* ms, limit, whether a hit above the limit renews the window, whether it doubles it. Up to 10.2 a
 * counter without an end gets one; later it has none. Version 9 has another argument, which says
 * after how many hits above the limit a caller is banned (-1: never). */
static void fastify(const struct run *run)
{
    const int64_t *args = run->counting->args;
    const bool newest = run->counting->script == WEIR_SCRIPT_FASTIFY;
    const bool bans = run->counting->script == WEIR_SCRIPT_FASTIFY_BAN;
    if (!add(run, run->key, 1))
        return;
    int64_t count = value_of(run->key), life_ms = pttl(run, run->key);
    bool begins = newest ? count == 1 : life_ms == -1;
    if (begins || (args[2] && count > args[1]))
        expire(run, run->key, life_ms = args[0]);
    else if (!bans && args[3] && count > args[1])
        expire(run, run->key, life_ms = backed_off(args[0], capped(run->key) - args[1]));
    say(run, WEIR_SCRIPT_INTEGER, count);
    say(run, WEIR_SCRIPT_INTEGER, life_ms);
    if (bans) /* false is null, as Lua has it */
        say(run,
            args[3] != -1 && capped(run->key) - args[1] > args[3] ? WEIR_SCRIPT_INTEGER
                                                                  : WEIR_SCRIPT_NULL,
            1);
}

static void fastify_read(const struct run *run)
{
    int64_t life_ms = pttl(run, run->key);
    say(run, WEIR_SCRIPT_INTEGER, weir_counter_exists(run->key) ? value_of(run->key) : 0);
    say(run, WEIR_SCRIPT_INTEGER, life_ms > 0 ? life_ms : 0);
}

/* ms, limit, ms of a block. KEYS[1] counts, KEYS[2] is there while the caller is blocked. */
static void nest(const struct run *run)
{
    const int64_t *args = run->counting->args;
    if (!add(run, run->key, 1))
        return;
    if (pttl(run, run->key) <= 0)
        expire(run, run->key, args[0]);
    bool blocked = weir_counter_exists(run->second);
    if (!blocked && value_of(run->key) > args[1]) {
        put(run, run->second, 1, args[2]);
        blocked = true;
    }
    int64_t block_ms = blocked ? pttl(run, run->second) : 0;
    if (blocked && block_ms <= 0) { /* a block without an end, which somebody else has set */
        put(run, run->second, 0, 0);
        put(run, run->key, 1, args[0]);
        blocked = false;
    }
    say(run, WEIR_SCRIPT_INTEGER, value_of(run->key));
    say(run, WEIR_SCRIPT_INTEGER, pttl(run, run->key));
    say(run, WEIR_SCRIPT_INTEGER, blocked);
    say(run, WEIR_SCRIPT_INTEGER, block_ms);
}

/* limit, ms. The reply is how long the caller has to wait. */
static void fastapi(const struct run *run)
{
    const int64_t *args = run->counting->args;
    int64_t wait_ms = 0;
    if (!weir_counter_exists(run->key) || value_of(run->key) <= 0)
        put(run, run->key, 1, args[1]);
    else if (value_of(run->key) >= args[0])
        wait_ms = pttl(run, run->key);
    else if (!add(run, run->key, 1))
        return;
    say_single(run, WEIR_SCRIPT_INTEGER, wait_ms);
}

/* --- What each one reads
 * -------------------------------------------------------------------------- */

/* Of the script's arguments: the one at `at`, within a range; without one (min above max), whether
 * it is "true". */
struct parameter {
    uint8_t at;
    int64_t min, max;
};

#define SECONDS(at)                                                                                \
    {                                                                                              \
        (at), 1, SECONDS_MAX                                                                       \
    }
#define MS(at)                                                                                     \
    {                                                                                              \
        (at), 1, MS_MAX                                                                            \
    }
#define AMOUNT(at)                                                                                 \
    {                                                                                              \
        (at), 0, AMOUNT_MAX                                                                        \
    }
#define FLAG(at)                                                                                   \
    {                                                                                              \
        (at), 1, 0                                                                                 \
    }
#define ANY(at)                                                                                    \
    {                                                                                              \
        (at), INT64_MIN, INT64_MAX                                                                 \
    }

static const struct signature {
    void (*run)(const struct run *run);
    uint8_t count;
    struct parameter parameters[4];
} signatures[WEIR_SCRIPT_MOVING_TAKE] = {
    [WEIR_SCRIPT_INCREMENT_NEW] = {increment_new, 2, {ANY(0), SECONDS(1)}},
    [WEIR_SCRIPT_INCREMENT_KEPT] = {increment_new, 2, {ANY(0), SECONDS(1)}},
    [WEIR_SCRIPT_COUNT_THEN_LIFE] = {count_then_life, 2, {ANY(0), MS(1)}},
    [WEIR_SCRIPT_WINDOW_OR_RESET] = {window, 2, {ANY(0), MS(1)}},
    [WEIR_SCRIPT_WINDOW] = {window, 1, {MS(0)}},
    [WEIR_SCRIPT_COUNT_AND_LIFE] = {count_and_life, 0, {{0}}},
    [WEIR_SCRIPT_INCREMENT] = {increment, 2, {SECONDS(0), ANY(1)}},
    [WEIR_SCRIPT_SLIDING_TAKE] = {sliding_take, 3, {AMOUNT(0), SECONDS(1), AMOUNT(2)}},
    [WEIR_SCRIPT_SLIDING_COUNTS] = {sliding_counts, 1, {SECONDS(0)}},
    [WEIR_SCRIPT_FIXED] = {fixed, 3, {SECONDS(0), AMOUNT(1), AMOUNT(2)}},
    [WEIR_SCRIPT_TWO_WINDOWS_ALL] = {two_windows_all, 3, {SECONDS(0), AMOUNT(1), AMOUNT(2)}},
    [WEIR_SCRIPT_TWO_WINDOWS] = {two_windows, 3, {SECONDS(0), AMOUNT(1), AMOUNT(2)}},
    [WEIR_SCRIPT_SWAP] = {swap, 3, {ANY(0), ANY(1), SECONDS(2)}},
    [WEIR_SCRIPT_INCREMENT_MS] = {increment_ms, 2, {ANY(0), {1, 0, MS_MAX}}},
    [WEIR_SCRIPT_COUNT_OR_ZERO] = {count_or_zero, 0, {{0}}},
    [WEIR_SCRIPT_LARAVEL_ADD] = {laravel_add, 2, {ANY(0), SECONDS(1)}},
    [WEIR_SCRIPT_LARAVEL_DURATION] = {laravel_duration, 2, {SECONDS(2), AMOUNT(3)}},
    [WEIR_SCRIPT_LARAVEL_TOO_MANY] = {laravel_too_many, 2, {SECONDS(2), AMOUNT(3)}},
    [WEIR_SCRIPT_FASTIFY_BAN] = {fastify, 4, {MS(0), AMOUNT(1), FLAG(3), {2, -1, AMOUNT_MAX}}},
    [WEIR_SCRIPT_FASTIFY_LIFE] = {fastify, 4, {MS(0), AMOUNT(1), FLAG(2), FLAG(3)}},
    [WEIR_SCRIPT_FASTIFY] = {fastify, 4, {MS(0), AMOUNT(1), FLAG(2), FLAG(3)}},
    [WEIR_SCRIPT_FASTIFY_READ] = {fastify_read, 0, {{0}}},
    [WEIR_SCRIPT_NEST] = {nest, 3, {MS(1), AMOUNT(2), MS(3)}},
    [WEIR_SCRIPT_FASTAPI] = {fastapi, 2, {AMOUNT(0), MS(1)}},
};

static void counting_run(struct weir_edit *edit, struct weir_edit_state *states, uint32_t count,
                         uint64_t now_ns)
{
    struct counting *counting = (struct counting *)(void *)edit;
    const struct run run = {.counting = counting,
                            .key = &states[counting->states[0]],
                            .second = &states[counting->states[1]],
                            .now_ns = now_ns,
                            .now_ms = (int64_t)(now_ns / COUNTER_MS_NS)};
    counting->reply = (struct weir_script_reply){.error = NULL};
    for (uint32_t i = 0; i < count; i++) {
        if (!states[i].other_until_ns)
            continue;
        counting->reply.error = "WRONGTYPE Operation against a key holding the wrong kind of value";
        return;
    }
    signatures[counting->script].run(&run);
}

static void counting_write(struct weir_slot *slot, struct weir_output *output)
{
    struct counting *counting = weir_resp_edit_data(slot);
    char text[WEIR_RESP_PROBLEM_MAX];
    const char *failure = weir_resp_edit_failure(slot, text);
    if (failure)
        counting->reply.error = failure;
    weir_script_write(slot, output, &counting->reply);
    weir_resp_edit_finish(slot);
}

static bool is_true(const struct weir_script_call *script, uint32_t i)
{
    struct weir_bytes arg = i < script->arg_count ? script->args[i] : (struct weir_bytes){NULL, 0};
    return arg.size == 4 && !memcmp(arg.data, "true", 4);
}

static bool read_args(const struct weir_script_call *script, int64_t args[4])
{
    const struct signature *signature = &signatures[script->script];
    for (uint8_t i = 0; i < signature->count; i++) {
        const struct parameter *parameter = &signature->parameters[i];
        if (parameter->min > parameter->max)
            args[i] = is_true(script, parameter->at);
        else if (parameter->at < script->arg_count &&
                 !weir_script_integer(script, parameter->at, parameter->min, parameter->max,
                                      &args[i]))
            return false;
    }
    if (script->script == WEIR_SCRIPT_WINDOW) { /* as the older one without its reset */
        args[1] = args[0];
        args[0] = 0;
    }
    return true;
}

void weir_script_count(const struct weir_script_call *script)
{
    struct weir_resp_build build;
    int64_t args[4] = {0, 1, 0, 0}; /* the amount of limits before 2.1 is 1 */
    if (!weir_resp_has_counters(script->call) || !read_args(script, args))
        return;
    struct counting *counting =
        weir_resp_build_begin(&build, script->call, sizeof *counting, counting_run);
    if (!counting)
        return;
    counting->script = script->script;
    for (int i = 0; i < 4; i++)
        counting->args[i] = args[i];
    for (uint32_t i = 0; i < 2 && i < script->key_count; i++)
        counting->states[i] = (uint8_t)weir_resp_build_key(&build, script->keys[i]);
    weir_resp_build_wait(&build, counting_write);
}
