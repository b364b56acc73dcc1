/* SPDX-License-Identifier: Apache-2.0 */
/* see hook.h */
#include "engine/hook.h"

static const struct weir_hook *const hooks[WEIR_HOOKS] = {
    [WEIR_HOOK_REACH] = &weir_hook_reach,         [WEIR_HOOK_LEND] = &weir_hook_lend,
    [WEIR_HOOK_CANDIDATE] = &weir_hook_candidate, [WEIR_HOOK_BORROW] = &weir_hook_borrow,
    [WEIR_HOOK_STANDING] = &weir_hook_standing,   [WEIR_HOOK_SCORE] = &weir_hook_score,
    [WEIR_HOOK_ACTION] = &weir_hook_action,       [WEIR_HOOK_WARNING] = &weir_hook_warning,
    [WEIR_HOOK_STRIKE] = &weir_hook_strike,
};

const struct weir_hook *weir_hook_at(enum weir_hook_number number)
{
    return hooks[number];
}

uint32_t weir_hooks_wanted(const struct weir_rules *rules)
{
    uint32_t wanted = 0;
    for (unsigned i = 0; i < WEIR_HOOKS; i++)
        if (hooks[i]->wanted && hooks[i]->wanted(rules))
            wanted |= 1U << i;
    return wanted;
}

int weir_hooks_open(struct weir_engine *engine, const struct weir_rules *rules)
{
    int err = 0;
    for (unsigned i = 0; err == 0 && i < WEIR_HOOKS; i++)
        if (hooks[i]->open)
            err = hooks[i]->open(engine, rules);
    return err;
}

/* Takes the first hook of a mask, which is not 0, out of it. */
static const struct weir_hook *next(uint32_t *mask)
{
    const struct weir_hook *hook = hooks[__builtin_ctz(*mask)];
    *mask &= *mask - 1;
    return hook;
}

bool weir_hooks_again(struct weir_engine *engine, struct weir_entry *entry)
{
    for (uint32_t mask = entry->hooks & WEIR_HOOKS_AGAIN; mask != 0;)
        if (next(&mask)->again(engine, entry))
            return true;
    return false;
}

void weir_hooks_decided(struct weir_engine *engine, struct weir_entry *entry)
{
    for (uint32_t mask = entry->hooks & WEIR_HOOKS_DECIDED; mask != 0;)
        next(&mask)->decided(engine, entry);
}

void weir_hooks_counted(struct weir_engine *engine, struct weir_entry *entry)
{
    for (uint32_t mask = entry->hooks & WEIR_HOOKS_COUNTED; mask != 0;)
        next(&mask)->counted(engine, entry);
}

void weir_hooks_told(struct weir_engine *engine, struct weir_entry *entry)
{
    for (uint32_t mask = entry->hooks & WEIR_HOOKS_TOLD; mask != 0;)
        next(&mask)->told(engine, entry);
}

bool weir_hooks_failed(struct weir_engine *engine, struct weir_entry *entry)
{
    for (uint32_t mask = entry->hooks; mask != 0;) {
        const struct weir_hook *hook = next(&mask);
        if (hook->failed && hook->failed(engine, entry))
            return true;
    }
    return false;
}

void weir_hooks_late(struct weir_engine *engine, struct weir_entry *entry)
{
    for (uint32_t mask = entry->hooks; mask != 0;) {
        const struct weir_hook *hook = next(&mask);
        if (hook->late)
            hook->late(engine, entry);
    }
}
