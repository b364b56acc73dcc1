/* SPDX-License-Identifier: Apache-2.0 */
/* A store for tests that answers when the test lets it: late, out of order, with an error, or
 * never.
 *
 * It decides by the core's functions on plain memory, one state per key, with no cleverness: the
 * slow, obvious model of what any store does with a batch. Decisions that are not answered at once
 * are kept in the order in which they came; the test picks which one is answered, and when.
 */
#ifndef TESTS_FAKE_STORE_H
#define TESTS_FAKE_STORE_H

#include "store/store.h"

#define FAKE_KEYS_MAX 4096
#define FAKE_PENDING_MAX 4096

struct fake_state {
    uint64_t hash[2];
    struct weir_limit kept;         /* as of the key's first check, whose rules may go */
    const struct weir_limit *limit; /* `kept` */
    uint64_t *memory;               /* a cell, or a span */
};

struct fake_store {
    struct weir_store base; /* first */
    uint32_t later_every;   /* 0: answers all at once; 1: none; n: every n-th is left pending */
    int fails_at_once;      /* 0; else the error with which submit fails all */
    uint32_t seen;
    struct weir_decision *pending[FAKE_PENDING_MAX];
    uint64_t asked_ns[FAKE_PENDING_MAX];
    uint32_t pending_count;
    struct fake_state states[FAKE_KEYS_MAX];
    uint32_t state_count;
    uint32_t submits, largest_batch, flushes, cancels, releases; /* calls so far */
    uint32_t prefetched;                                         /* checks */
};

/* Never fails: a test without memory ends here. */
struct fake_store *fake_store_open(void);

/* The same as a remote store, which names its states: the digest of one is its hash. */
struct fake_store *fake_store_open_named(void);
#define FAKE_TAG 77
void fake_store_close(struct fake_store *fake);

/* Answers the pending decision `index` (0: the oldest), decided at the time it was asked. */
void fake_store_answer(struct fake_store *fake, uint32_t index);

/* Says that it could not be decided; nothing is charged. */
void fake_store_fail(struct fake_store *fake, uint32_t index, int error);

/* Decides one decision as a store does, without the engine. */
void fake_store_decide(struct fake_store *fake, uint64_t now_ns, struct weir_decision *decision);

#endif
