/* SPDX-License-Identifier: Apache-2.0 */
/* see fixed.h */
#include "server/resp/script/fixed.h"

#include "core/counter.h"
#include "core/divisor.h"
#include "server/resp/counter_step.h"
#include "server/resp/decide.h"
#include "server/resp/edit.h"
#include "server/resp/reply.h"
#include "server/resp/script/rates.h"

#define WIDTH 3                                /* arguments of a rate: window start, limit, place */
#define LIFE_MAX_MS (INT64_C(31622400) * 1000) /* 366 days */
#define CLOCKS_APART_MAX_MS INT64_C(60000)
#define COUNT_MAX ((INT64_C(1) << WEIR_SCRIPT_FIXED_COUNT_BITS) - 1)
#define BEGAN_MAX_MS ((INT64_C(1) << 42) - 1) /* in 2109: above it the value would be negative */

struct rate {
    int64_t began_ms, most;
    uint8_t state;
};

struct fixed {
    struct weir_edit edit; /* first */
    struct rate rates[WEIR_SCRIPT_RATES_MAX];
    uint32_t count;
    int64_t weight;
    int64_t client_ms; /* the client's time */
    int64_t failing;   /* out: the first rate that denies; -1: none */
    const char *error; /* out */
};

bool weir_script_is_fixed(const struct weir_script_call *script, uint32_t first, uint32_t count,
                          int64_t weight)
{
    for (uint32_t i = 0; i < count; i++) {
        int64_t most, place;
        if (!weir_resp_number(script->args[first + i * WIDTH + 1], &most) ||
            !weir_resp_number(script->args[first + i * WIDTH + 2], &place) || place != -1)
            return false;
        if (most - weight != -1)
            return true;
    }
    return false; /* a weight that no rate admits, which rates.c has denied */
}

/* What a rate has counted in the window that the client means. */
static int64_t counted(const struct weir_edit_state *state, const struct rate *rate)
{
    return weir_script_fixed_began(state->cell.b) < rate->began_ms
               ? 0
               : weir_script_fixed_count(state->cell.b);
}

static void charge(struct weir_edit_state *state, const struct rate *rate, int64_t weight,
                   uint64_t now_ns)
{
    int64_t before_ms = weir_script_fixed_began(state->cell.b), life_ms;
    if (before_ms >= rate->began_ms) {
        state->cell.b += (uint64_t)weight;
        return;
    }
    /* Without one before it, when it began: a multiple, too. */
    life_ms =
        (int64_t)weir_divisor((uint64_t)rate->began_ms, (uint64_t)(rate->began_ms - before_ms));
    weir_counter_put(state, rate->began_ms << WEIR_SCRIPT_FIXED_COUNT_BITS | weight,
                     (int64_t)(now_ns / COUNTER_MS_NS) +
                         (life_ms < LIFE_MAX_MS ? life_ms : LIFE_MAX_MS),
                     now_ns);
}

/* Why this cannot be decided; NULL: it can. */
static const char *refusal(const struct fixed *fixed, const struct weir_edit_state *states,
                           uint64_t now_ns)
{
    int64_t apart_ms = fixed->client_ms - (int64_t)(now_ns / COUNTER_MS_NS);
    if (apart_ms > CLOCKS_APART_MAX_MS || apart_ms < -CLOCKS_APART_MAX_MS)
        return "ERR the client's clock is more than a minute apart from weir's, and it says when "
               "the fixed windows of pyrate-limiter begin";
    for (uint32_t i = 0; i < fixed->count; i++) {
        const struct weir_edit_state *state = &states[fixed->rates[i].state];
        if (state->other_until_ns ||
            (weir_counter_exists(state) && !weir_script_fixed_began(state->cell.b)))
            return "WRONGTYPE Operation against a key holding the wrong kind of value";
    }
    return NULL;
}

static void fixed_run(struct weir_edit *edit, struct weir_edit_state *states, uint32_t count,
                      uint64_t now_ns)
{
    struct fixed *fixed = (struct fixed *)(void *)edit;
    (void)count;
    fixed->failing = -1;
    fixed->error = refusal(fixed, states, now_ns);
    if (fixed->error)
        return;
    for (uint32_t i = 0; i < fixed->count; i++) {
        const struct rate *rate = &fixed->rates[i];
        if (rate->most - counted(&states[rate->state], rate) < fixed->weight) {
            fixed->failing = i;
            return;
        }
    }
    for (uint32_t i = 0; fixed->weight && i < fixed->count; i++)
        charge(&states[fixed->rates[i].state], &fixed->rates[i], fixed->weight, now_ns);
}

/* The place of the rate that denies or -1, and that no request blocks. */
static void fixed_write(struct weir_slot *slot, struct weir_output *output)
{
    const struct fixed *fixed = weir_resp_edit_data(slot);
    char text[WEIR_RESP_PROBLEM_MAX];
    const char *failure = weir_resp_edit_failure(slot, text);
    struct weir_script_reply reply = {.error = failure ? failure : fixed->error};
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER, fixed->failing);
    weir_script_say(&reply, WEIR_SCRIPT_INTEGER, -1);
    weir_script_write(slot, output, &reply);
    weir_resp_edit_finish(slot);
}

void weir_script_fixed(const struct weir_script_call *script, uint32_t first, uint32_t count,
                       int64_t weight)
{
    struct weir_resp_build build;
    char name[WEIR_SCRIPT_RATE_NAME_MAX];
    if (!weir_resp_has_counters(script->call))
        return;
    struct fixed *fixed = weir_resp_build_begin(&build, script->call, sizeof *fixed, fixed_run);
    if (!fixed)
        return;
    fixed->count = count;
    fixed->weight = weight;
    bool reads = weir_script_integer(script, 0, 1, BEGAN_MAX_MS, &fixed->client_ms);
    for (uint32_t i = 0; reads && i < count; i++) {
        struct rate *rate = &fixed->rates[i];
        uint32_t at = first + i * WIDTH;
        reads = weir_script_integer(script, at, 1, fixed->client_ms, &rate->began_ms) &&
                weir_script_integer(script, at + 1, 1, COUNT_MAX, &rate->most);
        rate->state =
            (uint8_t)weir_resp_build_key(&build, weir_script_rate_key(script->keys[0], i, name));
    }
    if (reads)
        weir_resp_build_wait(&build, fixed_write);
    else
        weir_resp_build_drop(&build);
}
