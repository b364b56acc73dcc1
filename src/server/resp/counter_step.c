/* SPDX-License-Identifier: Apache-2.0 */
/* see counter_step.h */
#include "server/resp/counter_step.h"

#include "core/counter.h"

static const char wrong_type[] =
    "WRONGTYPE Operation against a key holding the wrong kind of value";

static int64_t now_ms_of(uint64_t now_ns)
{
    return (int64_t)(now_ns / COUNTER_MS_NS);
}

/* --- One state ---------------------------------------------------------------------------------
 */

static void forget(struct weir_edit_state *state)
{
    state->cell = (struct weir_cell){0, 0};
    state->clear = state->clear || state->other_until_ns != 0;
    state->other_until_ns = 0;
}

static bool is_there(const struct weir_edit_state *state)
{
    return weir_counter_exists(state) || state->other_until_ns != 0;
}

/* An endless counter counts the time since it was used. */
static void touch(struct weir_edit_state *state, uint64_t now_ns)
{
    if (weir_counter_exists(state) && counter_is_endless(&state->cell))
        state->cell.a = counter_endless(now_ns);
}

void weir_counter_expire(struct weir_edit_state *state, int64_t ends_ms, uint64_t now_ns)
{
    if (ends_ms <= now_ms_of(now_ns))
        forget(state);
    else
        state->cell.a = (uint64_t)ends_ms * COUNTER_MS_NS;
}

void weir_counter_put(struct weir_edit_state *state, int64_t value, int64_t ends_ms,
                      uint64_t now_ns)
{
    state->cell = (struct weir_cell){counter_endless(now_ns), (uint64_t)value};
    weir_counter_expire(state, ends_ms, now_ns);
}

bool weir_counter_add(struct weir_edit_state *state, int64_t by, uint64_t now_ns)
{
    int64_t value = (int64_t)state->cell.b;
    if (by > 0 ? value > INT64_MAX - by : value < INT64_MIN - by)
        return false;
    if (!weir_counter_exists(state))
        state->cell.a = counter_endless(now_ns);
    state->cell.b = (uint64_t)(value + by);
    touch(state, now_ns);
    return true;
}

int64_t weir_counter_pttl(const struct weir_edit_state *state, uint64_t now_ns)
{
    uint64_t ends_ns = weir_counter_exists(state) ? state->cell.a : state->other_until_ns;
    if (ends_ns == 0)
        return -2;
    if (ends_ns >> 63)
        return -1;
    return (int64_t)((ends_ns - now_ns + COUNTER_MS_NS - 1) / COUNTER_MS_NS);
}

bool weir_counter_persist(struct weir_edit_state *state, uint64_t now_ns)
{
    bool ends = weir_counter_exists(state) && !counter_is_endless(&state->cell);
    if (ends)
        state->cell.a = counter_endless(now_ns);
    return ends;
}

bool weir_counter_ends(const struct weir_counter_step *step, uint64_t now_ns, int64_t *ends_ms)
{
    int64_t ms = step->time, most = (int64_t)COUNTER_ENDS_MAX_MS;
    if (step->flags & WEIR_COUNTER_SECONDS) {
        if (ms > INT64_MAX / 1000 || ms < INT64_MIN / 1000)
            return false;
        ms *= 1000;
    }
    if (!(step->flags & WEIR_COUNTER_ABSOLUTE)) {
        if (ms > most)
            return false;
        ms += now_ms_of(now_ns);
    }
    *ends_ms = ms;
    return ms <= most;
}

/* --- Steps -------------------------------------------------------------------------------------
 */

static void say(struct weir_counter_step *step, enum weir_counter_reply reply, int64_t number)
{
    step->reply = (uint8_t)reply;
    step->number = number;
}

static void refuse(struct weir_counter_step *step, const char *error)
{
    step->reply = WEIR_COUNTER_ERROR;
    step->error = error;
}

static void step_add(struct weir_counter_step *step, struct weir_edit_state *state, uint64_t now_ns)
{
    if (state->other_until_ns)
        refuse(step, wrong_type);
    else if (weir_counter_add(state, step->value, now_ns))
        say(step, WEIR_COUNTER_INTEGER, (int64_t)state->cell.b);
    else
        refuse(step, "ERR increment or decrement would overflow");
}

static void say_value(struct weir_counter_step *step, const struct weir_edit_state *state)
{
    if (weir_counter_exists(state))
        say(step, WEIR_COUNTER_STRING, (int64_t)state->cell.b);
    else
        say(step, WEIR_COUNTER_NULL, 0);
}

static void step_get(struct weir_counter_step *step, struct weir_edit_state *state, uint64_t now_ns)
{
    if (state->other_until_ns) {
        refuse(step, wrong_type);
        return;
    }
    say_value(step, state);
    if (step->flags & WEIR_COUNTER_RETURN)
        forget(state);
    else
        touch(state, now_ns);
}

static void step_set(struct weir_counter_step *step, struct weir_edit_state *state, uint64_t now_ns)
{
    bool returns = step->flags & WEIR_COUNTER_RETURN, tells = step->flags & WEIR_COUNTER_TELLS;
    int64_t ends_ms = 0;
    if (step->flags & WEIR_COUNTER_LIVES && !weir_counter_ends(step, now_ns, &ends_ms)) {
        refuse(step, step->bad_time);
        return;
    }
    if (returns && state->other_until_ns) {
        refuse(step, wrong_type);
        return;
    }
    if (returns)
        say_value(step, state);
    if (step->flags & (is_there(state) ? WEIR_COUNTER_NX : WEIR_COUNTER_XX)) {
        if (!returns)
            say(step, tells ? WEIR_COUNTER_INTEGER : WEIR_COUNTER_NULL, 0);
        return;
    }
    uint64_t life = counter_endless(now_ns);
    if (step->flags & WEIR_COUNTER_KEEP && is_there(state))
        life = weir_counter_exists(state) ? state->cell.a
                                          : state->other_until_ns / COUNTER_MS_NS * COUNTER_MS_NS;
    state->cell = (struct weir_cell){life, (uint64_t)step->value};
    state->other_until_ns = 0;
    touch(state, now_ns);
    if (step->flags & WEIR_COUNTER_LIVES)
        weir_counter_expire(state, ends_ms, now_ns);
    if (!returns)
        say(step, tells ? WEIR_COUNTER_INTEGER : WEIR_COUNTER_OK, 1);
}

static void step_expire(struct weir_counter_step *step, struct weir_edit_state *state,
                        uint64_t now_ns)
{
    int64_t ends_ms;
    uint16_t flags = step->flags;
    if (!weir_counter_ends(step, now_ns, &ends_ms)) {
        refuse(step, step->bad_time);
        return;
    }
    say(step, WEIR_COUNTER_INTEGER, 0);
    if (!weir_counter_exists(state)) /* a window has its own end */
        return;
    bool endless = counter_is_endless(&state->cell);
    int64_t present_ms = (int64_t)(state->cell.a / COUNTER_MS_NS);
    if ((flags & WEIR_COUNTER_NX && !endless) || (flags & WEIR_COUNTER_XX && endless) ||
        (flags & WEIR_COUNTER_GT && (endless || ends_ms <= present_ms)) ||
        (flags & WEIR_COUNTER_LT && !endless && ends_ms >= present_ms)) {
        touch(state, now_ns);
        return;
    }
    weir_counter_expire(state, ends_ms, now_ns);
    step->number = 1;
}

/* A counter's as Redis rounds; a key of another kind is there until the later one of its states is
 * fresh. */
static void step_ttl(struct weir_counter_step *step, struct weir_edit_state *state,
                     const struct weir_edit_state *bucket, uint64_t now_ns)
{
    bool counter = weir_counter_exists(state);
    int64_t ms = weir_counter_pttl(state, now_ns), other_ms = weir_counter_pttl(bucket, now_ns);
    touch(state, now_ns);
    if (!counter && other_ms > ms)
        ms = other_ms;
    if (ms >= 0 && step->flags & WEIR_COUNTER_SECONDS)
        ms = (ms + (counter ? 500 : 999)) / 1000;
    say(step, WEIR_COUNTER_INTEGER, ms);
}

static void step_persist(struct weir_counter_step *step, struct weir_edit_state *state,
                         uint64_t now_ns)
{
    say(step, WEIR_COUNTER_INTEGER, weir_counter_persist(state, now_ns));
}

void weir_counter_step_run(struct weir_counter_step *step, struct weir_edit_state *states,
                           uint64_t now_ns)
{
    struct weir_edit_state *state = &states[step->state], *bucket = &states[step->bucket];
    switch ((enum weir_counter_op)step->op) {
    case WEIR_COUNTER_ADD:
        step_add(step, state, now_ns);
        break;
    case WEIR_COUNTER_GET:
        step_get(step, state, now_ns);
        break;
    case WEIR_COUNTER_SET:
        step_set(step, state, now_ns);
        break;
    case WEIR_COUNTER_EXPIRE:
        step_expire(step, state, now_ns);
        break;
    case WEIR_COUNTER_TTL:
        step_ttl(step, state, bucket, now_ns);
        break;
    case WEIR_COUNTER_PERSIST:
        step_persist(step, state, now_ns);
        break;
    case WEIR_COUNTER_DELETE:
        say(step, WEIR_COUNTER_INTEGER, is_there(state) || is_there(bucket));
        forget(state);
        forget(bucket);
        break;
    case WEIR_COUNTER_EXISTS:
        say(step, WEIR_COUNTER_INTEGER, is_there(state) || is_there(bucket));
        touch(state, now_ns);
        break;
    case WEIR_COUNTER_REFUSED:
        refuse(step, step->error);
        break;
    }
}
