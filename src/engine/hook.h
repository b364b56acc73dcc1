/* SPDX-License-Identifier: Apache-2.0 */
/* Request hooks: what features do with a request while it is decided, beside the purpose of its
 * decision (turn.h).
 *
 *   the store decides ──▶ again     a further try, or questions to other regions: it waits
 *                         decided   before the books: the answer of several tries, standing
 *                         counted   behind the counters of the limits, before somebody is blamed
 *                         told      behind all of it: warnings, strikes
 *   the store fails   ──▶ failed    a further try: the first one counts
 *   its wait is over  ──▶ late
 *
 * Each generation of rules has the hooks that its rules want, as a mask; each request has those and
 * what it met by itself (weir_entry.hooks). Requests of plain rules have none: each step of a
 * request tests one mask, and knows no feature. Hooks run in the order of the table in hook.c. So a
 * new hook is a line there, its number and the masks of its steps here, and in the feature's folder
 * its struct.
 *
 * hook.c is in a circle with request.h and effect/warning.h: requests run hooks, and the record of
 * a warning is decided as a request is.
 *
 * Threads: those of the engine.
 */
#ifndef WEIR_ENGINE_HOOK_H
#define WEIR_ENGINE_HOOK_H

#include "engine/pool.h"
#include "rules/rules.h"

struct weir_engine;

/* In the order in which they run. */
enum weir_hook_number {
    WEIR_HOOK_REACH,
    WEIR_HOOK_LEND,
    WEIR_HOOK_CANDIDATE, /* sees what the limits have decided: before the answer of pools */
    WEIR_HOOK_BORROW,
    WEIR_HOOK_STANDING,
    WEIR_HOOK_SCORE,
    WEIR_HOOK_ACTION,
    WEIR_HOOK_WARNING,
    WEIR_HOOK_STRIKE,
    WEIR_HOOKS,
};
#define WEIR_HOOK_BIT(NAME) (1U << WEIR_HOOK_##NAME)

/* The hooks that have each step: others are not looked at. hook.c's table agrees (test_hook.c). */
#define WEIR_HOOKS_AGAIN (WEIR_HOOK_BIT(REACH) | WEIR_HOOK_BIT(LEND) | WEIR_HOOK_BIT(BORROW))
#define WEIR_HOOKS_DECIDED (WEIR_HOOK_BIT(BORROW) | WEIR_HOOK_BIT(STANDING) | WEIR_HOOK_BIT(SCORE))
#define WEIR_HOOKS_COUNTED (WEIR_HOOK_BIT(LEND) | WEIR_HOOK_BIT(CANDIDATE) | WEIR_HOOK_BIT(BORROW))
#define WEIR_HOOKS_TOLD (WEIR_HOOK_BIT(ACTION) | WEIR_HOOK_BIT(WARNING) | WEIR_HOOK_BIT(STRIKE))

/* What is NULL is left out. */
struct weir_hook {
    /* Whether each request of these rules has it. NULL: only requests that ask for it. */
    bool (*wanted)(const struct weir_rules *rules);
    /* Opens its memory, for rules that need it. Errors: WEIR_ERR_MEMORY. */
    int (*open)(struct weir_engine *engine, const struct weir_rules *rules);
    /* Returns true where the decision was queued once more, or waits. */
    bool (*again)(struct weir_engine *engine, struct weir_entry *entry);
    void (*decided)(struct weir_engine *engine, struct weir_entry *entry);
    void (*counted)(struct weir_engine *engine, struct weir_entry *entry);
    void (*told)(struct weir_engine *engine, struct weir_entry *entry);
    /* Returns true where the decision is as its first try was. */
    bool (*failed)(struct weir_engine *engine, struct weir_entry *entry);
    void (*late)(struct weir_engine *engine, struct weir_entry *entry);
};

/* The features' own. */
extern const struct weir_hook weir_hook_reach, weir_hook_lend, weir_hook_candidate,
    weir_hook_borrow, weir_hook_standing, weir_hook_score, weir_hook_action, weir_hook_warning,
    weir_hook_strike;

/* The hook of a number. */
const struct weir_hook *weir_hook_at(enum weir_hook_number number);

/* The hooks that each request of these rules has. */
uint32_t weir_hooks_wanted(const struct weir_rules *rules);

/* Opens the memory of all hooks. Errors: WEIR_ERR_MEMORY. */
int weir_hooks_open(struct weir_engine *engine, const struct weir_rules *rules)
    __attribute__((warn_unused_result));

/* Each calls the hooks that the entry has. */
bool weir_hooks_again(struct weir_engine *engine, struct weir_entry *entry);
void weir_hooks_decided(struct weir_engine *engine, struct weir_entry *entry);
void weir_hooks_counted(struct weir_engine *engine, struct weir_entry *entry);
void weir_hooks_told(struct weir_engine *engine, struct weir_entry *entry);
bool weir_hooks_failed(struct weir_engine *engine, struct weir_entry *entry);
void weir_hooks_late(struct weir_engine *engine, struct weir_entry *entry);

#endif
