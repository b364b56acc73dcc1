/* SPDX-License-Identifier: Apache-2.0 */
/* see ladder_memory.h */
#include "feature/penalties/server/ladder_memory.h"

#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/text/reason.h"
#include "core/text/siphash.h"

#define SLOTS_MIN 64
/* Slots that a sweep looks at: a million ladders in a minute. */
#define SWEPT_MAX 32768

struct weir_ladder_slot {
    uint64_t value[2]; /* hash of kind and value */
    uint64_t gone_ns;
    struct weir_ladder_state state;
    uint16_t penalty; /* number of its name, from 1; 0: the slot is free */
};

int weir_ladder_memory_init(struct weir_ladder_memory *memory, const uint64_t secret[2])
{
    *memory = (struct weir_ladder_memory){.mask = SLOTS_MIN - 1};
    memcpy(memory->secret, secret, sizeof memory->secret);
    memory->calls_end = &memory->calls;
    memory->slots = calloc(SLOTS_MIN, sizeof *memory->slots);
    memory->names = calloc(WEIR_LADDER_NAMES_MAX, sizeof *memory->names);
    return memory->slots && memory->names ? 0 : WEIR_ERR_MEMORY;
}

void weir_ladder_memory_free(struct weir_ladder_memory *memory)
{
    free(memory->slots);
    free(memory->names);
    memory->slots = NULL;
    memory->names = NULL;
}

/* --- The table -------------------------------------------------------------------------------- */

static void hash_value(const struct weir_ladder_memory *memory, struct weir_bytes kind,
                       struct weir_bytes value, uint64_t hash[2])
{
    char text[WEIR_STANDING_KIND_MAX + 1 + WEIR_LIST_VALUE_MAX];
    size_t kind_size = kind.size < WEIR_STANDING_KIND_MAX ? kind.size : WEIR_STANDING_KIND_MAX;
    size_t size = value.size < WEIR_LIST_VALUE_MAX ? value.size : WEIR_LIST_VALUE_MAX;

    memcpy(text, kind.data, kind_size);
    text[kind_size] = '\0';
    memcpy(text + kind_size + 1, value.data, size);
    weir_siphash128(memory->secret, text, kind_size + 1 + size, hash);
}

static struct weir_ladder_slot *slot_at(const struct weir_ladder_memory *memory, uint64_t at)
{
    return &memory->slots[at & memory->mask];
}

static bool has_value(const struct weir_ladder_slot *slot, const uint64_t hash[2])
{
    return slot->value[0] == hash[0] && slot->value[1] == hash[1];
}

/* The slot of a ladder, or the free one where it belongs. */
static struct weir_ladder_slot *find_slot(const struct weir_ladder_memory *memory,
                                          const uint64_t hash[2], uint16_t penalty)
{
    uint64_t at = hash[0];

    while (slot_at(memory, at)->penalty != 0 &&
           !(slot_at(memory, at)->penalty == penalty && has_value(slot_at(memory, at), hash)))
        at++;
    return slot_at(memory, at);
}

/* Empties a slot, and moves those behind it up that would not be found any more. */
static void remove_slot(struct weir_ladder_memory *memory, struct weir_ladder_slot *slot)
{
    uint64_t hole = (uint64_t)(slot - memory->slots), at = hole;

    for (;;) {
        uint64_t home;

        at = (at + 1) & memory->mask;
        if (memory->slots[at].penalty == 0)
            break;
        home = memory->slots[at].value[0] & memory->mask;
        if (((at - home) & memory->mask) < ((at - hole) & memory->mask))
            continue; /* its home is behind the hole */
        memory->slots[hole] = memory->slots[at];
        hole = at;
    }
    memory->slots[hole] = (struct weir_ladder_slot){.penalty = 0};
    memory->count--;
}

static int double_slots(struct weir_ladder_memory *memory)
{
    struct weir_ladder_slot *old = memory->slots;
    uint64_t size = memory->mask + 1;

    memory->slots = calloc(2 * size, sizeof *old);
    if (!memory->slots) {
        memory->slots = old;
        return WEIR_ERR_MEMORY;
    }
    memory->mask = 2 * size - 1;
    for (uint64_t i = 0; i < size; i++)
        if (old[i].penalty != 0)
            *find_slot(memory, old[i].value, old[i].penalty) = old[i];
    free(old);
    return 0;
}

/* The number of a penalty's name; 0: there are too many. */
static uint16_t number_of(struct weir_ladder_memory *memory, struct weir_bytes name, bool add)
{
    for (unsigned i = 0; i < memory->names_count; i++)
        if (weir_bytes_are(name, memory->names[i]))
            return (uint16_t)(i + 1);
    if (!add || memory->names_count == WEIR_LADDER_NAMES_MAX || name.size > WEIR_KEEPER_PENALTY_MAX)
        return 0;
    memcpy(memory->names[memory->names_count], name.data, name.size);
    return (uint16_t)++memory->names_count;
}

/* The slot of a ladder, which is made where there is none, with all zero. Errors: WEIR_ERR_FULL,
 * WEIR_ERR_MEMORY. */
static int take_slot(struct weir_ladder_memory *memory, const uint64_t hash[2],
                     struct weir_bytes penalty, struct weir_ladder_slot **slot)
{
    uint16_t number = number_of(memory, penalty, true);
    int err = number == 0 ? WEIR_ERR_FULL : 0;

    if (err == 0 && 2 * (memory->count + 1) > memory->mask)
        err = double_slots(memory);
    if (err < 0)
        return err;
    *slot = find_slot(memory, hash, number);
    if ((*slot)->penalty == 0) {
        **slot = (struct weir_ladder_slot){.value = {hash[0], hash[1]}, .penalty = number};
        memory->count++;
    }
    return 0;
}

int weir_ladder_memory_add(struct weir_ladder_memory *memory,
                           const struct weir_history_ladder *ladder)
{
    struct weir_ladder_slot *slot;
    uint64_t hash[2], before = memory->count;
    int err;

    hash_value(memory, ladder->kind, ladder->value, hash);
    err = take_slot(memory, hash, ladder->penalty, &slot);
    if (err == 0 && memory->count > before) {
        slot->state = ladder->state;
        slot->gone_ns = ladder->gone_ns;
    }
    return err;
}

bool weir_ladder_memory_clear(struct weir_ladder_memory *memory, struct weir_bytes kind,
                              struct weir_bytes value)
{
    uint64_t hash[2], at, before = memory->count;

    hash_value(memory, kind, value, hash);
    at = hash[0];
    while (slot_at(memory, at)->penalty != 0)
        if (has_value(slot_at(memory, at), hash))
            remove_slot(memory, slot_at(memory, at));
        else
            at++;
    return memory->count < before;
}

static void find_ladders(const struct weir_ladder_memory *memory, const uint64_t hash[2],
                         struct weir_keeper_ladders *found)
{
    found->count = 0;
    for (uint64_t at = hash[0]; slot_at(memory, at)->penalty != 0; at++) {
        const struct weir_ladder_slot *slot = slot_at(memory, at);
        struct weir_keeper_ladder *ladder = &found->ladders[found->count];

        if (!has_value(slot, hash) || found->count == WEIR_KEEPER_LADDERS_MAX)
            continue;
        memcpy(ladder->penalty, memory->names[slot->penalty - 1], sizeof ladder->penalty);
        ladder->state = slot->state;
        found->count++;
    }
}

void weir_ladder_memory_find(const struct weir_ladder_memory *memory, struct weir_bytes kind,
                             struct weir_bytes value, struct weir_keeper_ladders *found)
{
    uint64_t hash[2];

    hash_value(memory, kind, value, hash);
    find_ladders(memory, hash, found);
}

void weir_ladder_memory_sweep(struct weir_ladder_memory *memory, uint64_t now_ns)
{
    uint64_t looks = memory->mask < SWEPT_MAX ? memory->mask + 1 : SWEPT_MAX;

    for (uint64_t i = 0; i < looks; i++) {
        struct weir_ladder_slot *slot = slot_at(memory, memory->swept);

        if (slot->penalty != 0 && slot->gone_ns <= now_ns)
            remove_slot(memory, slot); /* what moves up is looked at next */
        else
            memory->swept++;
    }
}

/* --- Calls ------------------------------------------------------------------------------------ */

static bool is_state(const struct weir_ladder_state *one, const struct weir_ladder_state *other)
{
    return one->step == other->step && one->until_ns == other->until_ns &&
           one->clean_ns == other->clean_ns;
}

static void job_done(struct weir_keeper_job *job)
{
    weir_keeper_free(job->context, job);
}

/* Queues the ladder for the history, as it is now. Errors: WEIR_ERR_FULL. */
static int keep(struct weir_ladder_memory *memory, const struct weir_ladder_call *call)
{
    const struct weir_standing_value *value = call->value;
    struct weir_keeper_put *put = calloc(1, sizeof *put);
    struct weir_keeper_job *job =
        put ? weir_keeper_take(memory->keeper, WEIR_KEEPER_PUT, value->kind->name,
                               weir_bytes_of(value->shown), call->by)
            : NULL;

    if (!job) {
        free(put);
        return WEIR_ERR_FULL;
    }
    memcpy(put->penalty, call->swap.penalty.data, call->swap.penalty.size);
    put->state = call->swap.next;
    put->gone_ns = call->swap.gone_ns;
    put->sets = call->swap.sets;
    job->put = put;
    job->now_ns = call->now_ns;
    job->entry.network = value->kind->address;
    job->entry.entry = call->entry;
    memcpy(job->entry.id, value->id, sizeof value->id);
    job->done = job_done;
    job->context = memory->keeper;
    weir_keeper_start(memory->keeper, job);
    return 0;
}

static void swap_now(struct weir_ladder_memory *memory, struct weir_ladder_call *call,
                     const uint64_t hash[2])
{
    struct weir_ladder_slot *slot;

    call->err = take_slot(memory, hash, call->swap.penalty, &slot);
    call->swapped = call->err == 0 && is_state(&slot->state, &call->swap.expected);
    if (call->swapped) {
        slot->state = call->swap.next;
        slot->gone_ns = call->swap.gone_ns;
        call->err = keep(memory, call);
    }
    if (call->err < 0)
        reason_text(&call->reason, call->err == WEIR_ERR_FULL ? "the history is behind"
                                                              : weir_error_text(call->err));
}

static void do_call(struct weir_ladder_memory *memory, struct weir_ladder_call *call)
{
    uint64_t hash[2];

    hash_value(memory, call->value->kind->name, weir_bytes_of(call->value->shown), hash);
    call->err = 0;
    call->swapped = false;
    call->reason.text[0] = '\0';
    if (call->swaps)
        swap_now(memory, call, hash);
    else
        find_ladders(memory, hash, &call->found);
}

/* What a change means is in force before the next call is looked at: `done` does that. */
static void on_called(uv_async_t *handle)
{
    struct weir_ladder_memory *memory = handle->data;
    struct weir_ladder_call *call = memory->calls, *next;

    memory->calls = NULL;
    memory->calls_end = &memory->calls;
    for (; call; call = next) {
        next = call->next;
        do_call(memory, call);
        call->done(call);
    }
}

static int begin(struct weir_ladder_store *store, struct weir_ladder_call *call, bool swaps)
{
    struct weir_ladder_memory *memory = (struct weir_ladder_memory *)(void *)store; /* its first */

    call->swaps = swaps;
    call->next = NULL;
    *memory->calls_end = call;
    memory->calls_end = &call->next;
    uv_async_send(&memory->called);
    return 0;
}

static int memory_read(struct weir_ladder_store *store, struct weir_ladder_call *call)
{
    return begin(store, call, false);
}

static int memory_swap(struct weir_ladder_store *store, struct weir_ladder_call *call)
{
    return begin(store, call, true);
}

int weir_ladder_memory_join(struct weir_ladder_memory *memory, struct weir_keeper *keeper,
                            uv_loop_t *loop)
{
    memory->base = (struct weir_ladder_store){.read = memory_read, .swap = memory_swap};
    memory->keeper = keeper;
    if (uv_async_init(loop, &memory->called, on_called) < 0)
        return WEIR_ERR_IO;
    memory->called.data = memory;
    return 0;
}

bool weir_ladder_memory_busy(const struct weir_ladder_memory *memory)
{
    return memory->calls;
}
