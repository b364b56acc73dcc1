/* SPDX-License-Identifier: Apache-2.0 */
/* An engine on a fake store, with what its tests need: limits, checks by name, and the order in
 * which decisions were reported. */
#ifndef TESTS_ENGINE_RIG_H
#define TESTS_ENGINE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "fake_store.h"

#define SECOND UINT64_C(1000000000)
#define START (UINT64_C(1700000000) * SECOND)
#define DEADLINE (SECOND / 50)

struct rig {
    struct weir_engine *engine;
    struct fake_store *store, *local;
    struct weir_decision *done[8192]; /* in the order of `done` */
    uint32_t done_count;
    bool holds; /* some decisions are looked up only (weir_engine_look) */
    bool keep;  /* `done` leaves the decision to the test; else it releases it */
    void (*on_done)(struct rig *rig, struct weir_decision *decision); /* may be NULL */
};

/* Opens an engine without rules; `local` NULL in its options unless with_local. */
void rig_open(struct rig *rig, uint32_t decisions, bool with_local);
void rig_close(struct rig *rig);

/* The same with rules (may be NULL), a store that names its states, and a local one. */
void rig_open_elsewhere(struct rig *rig, struct weir_rules *rules);

/* The same, and regions that lend. */
void rig_open_regions(struct rig *rig, struct weir_rules *rules, struct weir_store *const *regions);

/* The same with rules, parsed from `text`. */
struct weir_rules *rig_rules(const char *text);
void rig_open_rules(struct rig *rig, struct weir_rules *rules);
void rig_open_text(struct rig *rig, const char *text);

/* The same with a directory of callers. */
void rig_open_directory(struct rig *rig, struct weir_rules *rules,
                        struct weir_directory *directory);

struct weir_limit rig_limit(enum weir_algorithm algorithm, uint64_t rate, uint64_t window_ns);

/* Makes it a request of these attributes: name, value, ..., NULL. Those that no rule reads are
 * dropped, as front ends do. */
void rig_request(struct weir_request *request, const struct weir_rules *rules,
                 const char *const *pairs);

/* A decision with an owner and no check yet; must not fail. */
struct weir_decision *rig_take(struct rig *rig, uintptr_t owner);

/* Adds a check on the key with this text (and a hash of it). */
struct weir_check *rig_check(struct weir_decision *decision, const struct weir_limit *limit,
                             const char *key, uint64_t cost);

/* Take, one check, queue. */
struct weir_decision *rig_queue(struct rig *rig, uintptr_t owner, const struct weir_limit *limit,
                                const char *key, uint64_t cost);

/* Expects that the key of a check of the rules has this text. */
void rig_expect_key(const struct weir_decision *decision, uint16_t check, const char *text);

/* Ends the leases of a token, in a run of its own; `done` must leave its decision to the test,
 * which releases it with all others. Returns 0, WEIR_ERR_NOT_FOUND or WEIR_ERR_SYNTAX. */
int release_lease(struct weir_engine *engine, uint64_t now_ns, struct weir_bytes token);

static inline uintptr_t owner_of(const struct weir_decision *decision)
{
    return (uintptr_t)decision->owner;
}

#endif
