/* SPDX-License-Identifier: Apache-2.0 */
/* see counters.h */
#include "server/resp/counters.h"

#include <string.h>

#include "server/resp/decide.h"
#include "server/resp/reply.h"
#include "wire/resp/line.h"

#define NOT_INTEGER "ERR value is not an integer or out of range"
#define SYNTAX "ERR syntax error"
#define NOT_KEPT                                                                                   \
    "ERR weir keeps 64-bit integers only: this value is none (docs/redis-protocol.md, Counters)"

#define NOT_PICKLED                                                                                \
    "ERR weir keeps 64-bit integers only, and this is a pickled object, as Django's cache writes " \
    "for the throttles of Django REST framework: use weir's middleware for Django "                \
    "(docs/limiter-libraries.md)"

struct steps_edit {
    struct weir_edit edit; /* first */
    uint32_t count;
    struct weir_counter_step steps[];
};

/* --- Arguments ---------------------------------------------------------------------------------
 */

static bool refuse(struct weir_counter_step *step, const char *error)
{
    step->op = WEIR_COUNTER_REFUSED;
    step->error = error;
    return false;
}

/* As Redis reads numbers: no plus, no leading zeros. */
static bool read_number(struct weir_counter_step *step, struct weir_bytes arg, int64_t *value)
{
    if (arg.data && resp_integer_read(arg.data, arg.size, value))
        return true;
    return refuse(step, NOT_INTEGER);
}

static bool read_kept(struct weir_counter_step *step, struct weir_bytes arg)
{
    if (arg.data && resp_integer_read(arg.data, arg.size, &step->value))
        return true;
    /* What pickle writes first, from its protocol 2 on. */
    bool pickled = arg.data && arg.size > 2 && (unsigned char)arg.data[0] == 0x80 &&
                   arg.data[1] >= 2 && arg.data[1] <= 5;
    return refuse(step, pickled ? NOT_PICKLED : NOT_KEPT);
}

struct command {
    const char *name;
    void (*read)(const struct weir_resp_call *call, struct weir_counter_step *step);
    uint16_t flags;
    uint8_t op;   /* enum weir_counter_op */
    bool several; /* it takes any number of keys */
    const char *bad_time;
};

static void read_incr(const struct weir_resp_call *call, struct weir_counter_step *step)
{
    step->value = 1;
    if (call->count > 2)
        read_number(step, call->args[2], &step->value);
}

static void read_decr(const struct weir_resp_call *call, struct weir_counter_step *step)
{
    read_incr(call, step);
    if (step->value == INT64_MIN && step->op != WEIR_COUNTER_REFUSED)
        refuse(step, "ERR decrement would overflow");
    else
        step->value = -step->value;
}

static void read_key(const struct weir_resp_call *call, struct weir_counter_step *step)
{
    (void)call;
    (void)step;
}

/* The life of SET and SETEX, which must be above 0. */
static bool read_life(struct weir_counter_step *step, struct weir_bytes arg)
{
    if (!read_number(step, arg, &step->time))
        return false;
    step->flags |= WEIR_COUNTER_LIVES;
    return step->time > 0 || refuse(step, step->bad_time);
}

static void read_setex(const struct weir_resp_call *call, struct weir_counter_step *step)
{
    if (read_life(step, call->args[2]))
        read_kept(step, call->args[3]);
}

static void read_setnx(const struct weir_resp_call *call, struct weir_counter_step *step)
{
    read_kept(step, call->args[2]);
}

/* An option of SET; `excludes` it may not be beside. */
struct set_option {
    const char *name;
    uint16_t flags, excludes;
    bool time;
};

#define LIFE (WEIR_COUNTER_LIVES | WEIR_COUNTER_KEEP)
static const struct set_option set_options[] = {
    {"NX", WEIR_COUNTER_NX, WEIR_COUNTER_XX, false},
    {"XX", WEIR_COUNTER_XX, WEIR_COUNTER_NX, false},
    {"GET", WEIR_COUNTER_RETURN, 0, false},
    {"KEEPTTL", WEIR_COUNTER_KEEP, WEIR_COUNTER_LIVES, false},
    {"EX", WEIR_COUNTER_LIVES | WEIR_COUNTER_SECONDS, LIFE, true},
    {"PX", WEIR_COUNTER_LIVES, LIFE, true},
    {"EXAT", WEIR_COUNTER_LIVES | WEIR_COUNTER_SECONDS | WEIR_COUNTER_ABSOLUTE, LIFE, true},
    {"PXAT", WEIR_COUNTER_LIVES | WEIR_COUNTER_ABSOLUTE, LIFE, true},
};

static const struct set_option *set_option_find(struct weir_bytes name)
{
    for (size_t i = 0; i < sizeof set_options / sizeof *set_options; i++)
        if (weir_resp_is(name, set_options[i].name))
            return &set_options[i];
    return NULL;
}

static void read_set(const struct weir_resp_call *call, struct weir_counter_step *step)
{
    struct weir_bytes life = {NULL, 0};
    for (uint32_t i = 3; i < call->count; i++) {
        const struct set_option *option = set_option_find(call->args[i]);
        if (!option || step->flags & option->excludes || (option->time && i + 1 == call->count)) {
            refuse(step, SYNTAX);
            return;
        }
        step->flags |= option->flags;
        if (option->time)
            life = call->args[++i];
    }
    if (!(step->flags & WEIR_COUNTER_LIVES) || read_life(step, life))
        read_kept(step, call->args[2]);
}

static void read_expire(const struct weir_resp_call *call, struct weir_counter_step *step)
{
    static const struct {
        const char *name;
        uint16_t flag;
    } options[] = {{"NX", WEIR_COUNTER_NX},
                   {"XX", WEIR_COUNTER_XX},
                   {"GT", WEIR_COUNTER_GT},
                   {"LT", WEIR_COUNTER_LT}};
    uint16_t flags = 0;
    for (uint32_t i = 3; i < call->count; i++) {
        uint16_t flag = 0;
        for (size_t o = 0; o < sizeof options / sizeof *options; o++)
            if (weir_resp_is(call->args[i], options[o].name))
                flag = options[o].flag;
        if (flag == 0) {
            refuse(step, "ERR Unsupported option: EXPIRE takes NX, XX, GT and LT");
            return;
        }
        flags |= flag;
    }
    uint16_t bounds = flags & (WEIR_COUNTER_GT | WEIR_COUNTER_LT);
    if (flags & WEIR_COUNTER_NX && flags != WEIR_COUNTER_NX) {
        refuse(step, "ERR NX and XX, GT or LT options at the same time are not compatible");
    } else if (bounds == (WEIR_COUNTER_GT | WEIR_COUNTER_LT)) {
        refuse(step, "ERR GT and LT options at the same time are not compatible");
    } else {
        step->flags |= flags;
        read_number(step, call->args[2], &step->time);
    }
}

#define BAD_TIME(name) "ERR invalid expire time in '" name "' command"
#define SECONDS WEIR_COUNTER_SECONDS
#define ABSOLUTE WEIR_COUNTER_ABSOLUTE
static const struct command commands[] = {
    {"INCR", read_incr, 0, WEIR_COUNTER_ADD, false, NULL},
    {"EXPIRE", read_expire, SECONDS, WEIR_COUNTER_EXPIRE, false, BAD_TIME("expire")},
    {"INCRBY", read_incr, 0, WEIR_COUNTER_ADD, false, NULL},
    {"GET", read_key, 0, WEIR_COUNTER_GET, false, NULL},
    {"SET", read_set, 0, WEIR_COUNTER_SET, false, BAD_TIME("set")},
    {"PEXPIRE", read_expire, 0, WEIR_COUNTER_EXPIRE, false, BAD_TIME("pexpire")},
    {"TTL", read_key, SECONDS, WEIR_COUNTER_TTL, false, NULL},
    {"PTTL", read_key, 0, WEIR_COUNTER_TTL, false, NULL},
    {"DEL", read_key, 0, WEIR_COUNTER_DELETE, true, NULL},
    {"UNLINK", read_key, 0, WEIR_COUNTER_DELETE, true, NULL},
    {"EXISTS", read_key, 0, WEIR_COUNTER_EXISTS, true, NULL},
    {"PERSIST", read_key, 0, WEIR_COUNTER_PERSIST, false, NULL},
    {"DECR", read_decr, 0, WEIR_COUNTER_ADD, false, NULL},
    {"DECRBY", read_decr, 0, WEIR_COUNTER_ADD, false, NULL},
    {"GETDEL", read_key, WEIR_COUNTER_RETURN, WEIR_COUNTER_GET, false, NULL},
    {"SETEX", read_setex, SECONDS, WEIR_COUNTER_SET, false, BAD_TIME("setex")},
    {"PSETEX", read_setex, 0, WEIR_COUNTER_SET, false, BAD_TIME("psetex")},
    {"SETNX", read_setnx, WEIR_COUNTER_NX | WEIR_COUNTER_TELLS, WEIR_COUNTER_SET, false, NULL},
    {"EXPIREAT", read_expire, SECONDS | ABSOLUTE, WEIR_COUNTER_EXPIRE, false, BAD_TIME("expireat")},
    {"PEXPIREAT", read_expire, ABSOLUTE, WEIR_COUNTER_EXPIRE, false, BAD_TIME("pexpireat")},
};

static const struct command *command_find(struct weir_bytes name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (weir_resp_is(name, commands[i].name))
            return &commands[i];
    return NULL;
}

/* How many keys a command names; DEL and EXISTS take several. */
static uint32_t keys_of(const struct command *command, const struct weir_resp_call *call)
{
    return command->several ? call->count - 1 : 1;
}

/* --- Replies -----------------------------------------------------------------------------------
 */

static void steps_run(struct weir_edit *edit, struct weir_edit_state *states, uint32_t count,
                      uint64_t now_ns)
{
    struct steps_edit *steps = (struct steps_edit *)(void *)edit;
    (void)count;
    for (uint32_t i = 0; i < steps->count; i++)
        weir_counter_step_run(&steps->steps[i], states, now_ns);
}

static char *write_error(char *out, struct weir_slot *slot, const char *error)
{
    struct weir_resp_workspace *redis = weir_connection_workspace(slot->connection);
    weir_count(&redis->errors, 1);
    return weir_resp_write_error(out, error, strlen(error));
}

static char *write_string(char *out, int64_t number)
{
    char digits[WEIR_DECIMAL_MAX + 1], *end = digits;
    if (number < 0)
        *end++ = '-';
    end = weir_decimal_write(end, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
    return weir_resp_write_bulk(out, digits, (size_t)(end - digits));
}

static char *write_step(char *out, struct weir_slot *slot, const struct weir_counter_step *step)
{
    switch ((enum weir_counter_reply)step->reply) {
    case WEIR_COUNTER_INTEGER:
        return weir_resp_write_integer(out, step->number);
    case WEIR_COUNTER_STRING:
        return write_string(out, step->number);
    case WEIR_COUNTER_NULL:
        return weir_resp_write_null(out, slot->flags);
    case WEIR_COUNTER_OK:
        return WEIR_LITERAL_WRITE(out, "+OK\r\n");
    case WEIR_COUNTER_ERROR:
        return write_error(out, slot, step->error);
    }
    return out;
}

/* The longest reply of a step is an error of its own, or that of the store: below 128 bytes. */
_Static_assert(WEIR_RESP_STEPS_MAX * 128 <= WEIR_REPLY_MAX, "all replies fit one write");

static void steps_write(struct weir_slot *slot, struct weir_output *output)
{
    struct steps_edit *edit = weir_resp_edit_data(slot);
    char *out = output->data + output->used, text[WEIR_RESP_PROBLEM_MAX];
    const char *failure = weir_resp_edit_failure(slot, text);
    int64_t joined = 0;
    for (uint32_t i = 0; i < edit->count; i++) {
        struct weir_counter_step *step = &edit->steps[i];
        if (step->flags & WEIR_COUNTER_JOINS && step->op != WEIR_COUNTER_REFUSED) {
            joined += step->number;
            continue;
        }
        step->number += joined;
        joined = 0;
        out = failure ? write_error(out, slot, failure) : write_step(out, slot, step);
    }
    output->used = (size_t)(out - output->data);
    weir_resp_edit_finish(slot);
}

/* --- Building ----------------------------------------------------------------------------------
 */

static bool steps_begin(struct weir_resp_steps *steps, struct weir_resp_call *call, uint32_t max)
{
    if (!steps->edit)
        steps->edit = weir_resp_build_begin(
            &steps->build, call, sizeof *steps->edit + max * sizeof *steps->edit->steps, steps_run);
    return steps->edit;
}

/* Adds the steps of a command; none, if there is no room for all of them. */
static bool steps_add(struct weir_resp_steps *steps, const struct command *command,
                      struct weir_resp_call *call, uint32_t max)
{
    uint32_t keys = keys_of(command, call), begin = steps->edit->count;
    uint16_t states = steps->build.decision->count;
    if (keys > max - begin)
        return false;
    for (uint32_t i = 0; i < keys; i++) {
        struct weir_counter_step *step = &steps->edit->steps[begin + i];
        int state = weir_resp_build_key(&steps->build, call->args[1 + i]), bucket = state;
        if (state >= 0 && weir_counter_step_any(command->op))
            bucket = weir_resp_build_state(&steps->build, WEIR_RESP_BUCKETS, call->args[1 + i],
                                           steps->build.narrow);
        if (bucket < 0) {
            steps->build.decision->count = states;
            return false;
        }
        *step = (struct weir_counter_step){.op = command->op,
                                           .state = (uint8_t)state,
                                           .bucket = (uint8_t)bucket,
                                           .flags = command->flags,
                                           .bad_time = command->bad_time};
        command->read(call, step);
        if (i + 1 < keys)
            step->flags |= WEIR_COUNTER_JOINS;
    }
    steps->edit->count = begin + keys;
    return true;
}

void weir_resp_steps_end(struct weir_resp_steps *steps)
{
    if (steps->edit && steps->edit->count > 0)
        weir_resp_build_wait(&steps->build, steps_write);
    else if (steps->edit)
        weir_resp_build_drop(&steps->build);
    steps->edit = NULL;
}

bool weir_resp_steps_add(struct weir_resp_steps *steps, struct weir_resp_call *call)
{
    const struct command *command = call->redis->remote ? NULL : command_find(call->args[0]);
    while (command) {
        if (!steps_begin(steps, call, WEIR_RESP_STEPS_MAX) ||
            steps_add(steps, command, call, WEIR_RESP_STEPS_MAX))
            return true;
        if (steps->edit->count == 0) /* too many keys for one edit */
            break;
        weir_resp_steps_end(steps);
    }
    weir_resp_steps_end(steps);
    return false;
}

void weir_resp_counter(struct weir_resp_call *call)
{
    const struct command *command = command_find(call->args[0]);
    struct weir_resp_steps steps = {.edit = NULL};
    if (!command || !weir_resp_has_counters(call) || !steps_begin(&steps, call, 1))
        return;
    (void)steps_add(&steps, command, call, 1); /* one key, and all the room for it */
    weir_resp_steps_end(&steps);
}
