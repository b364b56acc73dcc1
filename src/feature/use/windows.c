/* SPDX-License-Identifier: Apache-2.0 */
/* see windows.h */
#include "feature/use/windows.h"

#include <stdlib.h>

#define S UINT64_C(1000000000)

struct slot {
    struct weir_heavy *heavy;
    uint64_t number; /* its time over the length of its slots; 0: never used */
};

struct level {
    uint64_t length_ns;
    uint32_t first, count; /* of the slots */
};

static const struct level levels[WEIR_WINDOWS] = {
    {10 * S, 0, 7},
    {300 * S, 7, 13},
    {3600 * S, 20, 25},
};

struct weir_windows {
    uint32_t room;
    uint64_t newest; /* number of the slot of 10 s that is being filled */
    struct slot slots[WEIR_WINDOW_SLOTS];
};

int weir_windows_open(struct weir_windows **windows, uint32_t room)
{
    struct weir_windows *w = calloc(1, sizeof *w);
    if (!w)
        return WEIR_ERR_MEMORY;
    w->room = room;
    for (unsigned i = 0; i < WEIR_WINDOW_SLOTS; i++) {
        if (weir_heavy_open(&w->slots[i].heavy, room) < 0) {
            weir_windows_close(w);
            return WEIR_ERR_MEMORY;
        }
    }
    *windows = w;
    return 0;
}

void weir_windows_close(struct weir_windows *windows)
{
    if (!windows)
        return;
    for (unsigned i = 0; i < WEIR_WINDOW_SLOTS; i++)
        weir_heavy_close(windows->slots[i].heavy);
    free(windows);
}

/* The slot of a time, emptied of what it had an earlier time. */
static struct weir_heavy *slot_at(struct weir_windows *w, enum weir_window window, uint64_t at_ns)
{
    const struct level *level = &levels[window];
    uint64_t number = at_ns / level->length_ns;
    struct slot *slot = &w->slots[level->first + number % level->count];
    if (slot->number != number) {
        weir_heavy_clear(slot->heavy);
        slot->number = number;
    }
    return slot->heavy;
}

/* Hands on a slot of 10 s that is full. */
static int hand_on(struct weir_windows *w, uint64_t number)
{
    const struct slot *slot = &w->slots[number % levels[WEIR_WINDOW_MINUTE].count];
    uint64_t at_ns = number * levels[WEIR_WINDOW_MINUTE].length_ns;
    if (number == 0 || slot->number != number)
        return 0;
    int err = weir_heavy_merge(slot_at(w, WEIR_WINDOW_HOUR, at_ns), slot->heavy);
    int last = weir_heavy_merge(slot_at(w, WEIR_WINDOW_DAY, at_ns), slot->heavy);
    return err < 0 ? err : last;
}

static int go_on(struct weir_windows *w, uint64_t now_ns)
{
    uint64_t number = now_ns / levels[WEIR_WINDOW_MINUTE].length_ns;
    if (number <= w->newest)
        return 0;
    int err = hand_on(w, w->newest);
    w->newest = number;
    return err;
}

int weir_windows_add(struct weir_windows *windows, const struct weir_heavy *batch, uint64_t now_ns)
{
    int err = go_on(windows, now_ns);
    if (weir_heavy_weight(batch) == 0)
        return err;
    int last = weir_heavy_merge(slot_at(windows, WEIR_WINDOW_MINUTE, now_ns), batch);
    return err < 0 ? err : last;
}

int weir_windows_read(struct weir_windows *windows, enum weir_window window, uint64_t now_ns,
                      struct weir_heavy *out)
{
    const struct level *level = &levels[window];
    int err = go_on(windows, now_ns);
    uint64_t now = now_ns / level->length_ns;
    weir_heavy_clear(out);
    for (uint32_t i = 0; i < level->count && err == 0; i++) {
        const struct slot *slot = &windows->slots[level->first + i];
        if (slot->number > 0 && slot->number <= now && slot->number + level->count > now)
            err = weir_heavy_merge(out, slot->heavy);
    }
    if (window != WEIR_WINDOW_MINUTE && err == 0) {
        /* What has not been handed on yet. */
        const struct slot *slot =
            &windows->slots[windows->newest % levels[WEIR_WINDOW_MINUTE].count];
        if (slot->number == windows->newest && windows->newest > 0)
            err = weir_heavy_merge(out, slot->heavy);
    }
    return err;
}
