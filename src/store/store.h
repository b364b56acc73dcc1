/* SPDX-License-Identifier: Apache-2.0 */
/* The store: where states live, behind one interface.
 *
 * A store decides batches of decisions at one time. The embedded store is the
 * table, answers at once, or fails at once where a neighbour on its state file is stopped
 * (WEIR_ERR_BUSY), and returns 0 from submit; a remote store (Redis) answers later, on the
 * same thread, through `done`, never from inside submit or cancel.
 *
 * All that is done with states is a decision: requests (WEIR_OP_DECIDE, PEEK, DEBIT, REFUND), and
 * the ending of leases, forgetting and looking (WEIR_OP_RELEASE, RESET, LOOK).
 *
 * The name of a state. The embedded store uses the hash of a check; a remote store takes the
 * names of limits, the texts of keys and the tags. Of a lease that it gave, name_of says the few
 * bytes that a token carries, so that any node can end it: the checks of a WEIR_OP_RELEASE then
 * have no limit, their `tag` is that of the name, and `key` its digest.
 *
 * Threads: one weir_store per worker, used by that worker alone. Stores of several workers may
 * use one table. prepare alone may be called by any thread.
 */
#ifndef WEIR_STORE_STORE_H
#define WEIR_STORE_STORE_H

#include <stddef.h>

#include "core/check.h"

struct weir_store;

/* Called once for every decision that stayed pending and was not cancelled. `error` is 0, or why
 * the store could not decide; the engine then applies on_store_error. */
typedef void (*weir_store_done)(void *context, struct weir_decision *decision, int error);

/* A remote store's name of a state whose leases end by a token. */
#define WEIR_STORE_DIGEST 16
struct weir_store_name {
    uint64_t tag;
    unsigned char digest[WEIR_STORE_DIGEST];
};

/* How a store that lends is called: see weir_store_ops.lend. */
enum weir_lend {
    WEIR_LEND_AHEAD, /* units will soon be needed: fetches some, where there are none */
    WEIR_LEND_LOOK,  /* whether there are enough */
    WEIR_LEND_TAKE,  /* takes them, if there are enough; else fetches some */
};

/* Units that were taken, and of which portions. */
#define WEIR_LENT_PORTIONS 2
struct weir_lent {
    uint64_t portion[WEIR_LENT_PORTIONS], units[WEIR_LENT_PORTIONS];
};

struct weir_store_ops {
    const char *name;
    /* Makes a limit known to the store before the first check that carries it. The embedded store
     * sets limit->id; a remote store only checks whether it can keep it.
     * Errors: WEIR_ERR_FULL, WEIR_ERR_RANGE (the limit cannot live in this store; `reason`, never
     * NULL, says which field and its bound), WEIR_ERR_IO. */
    int (*prepare)(struct weir_store *, struct weir_limit *limit, struct weir_reason *reason);
    /* Decides a batch at one time. Every decision it could decide has verdict != WEIR_PENDING when
     * it returns. Of the others, which come with error 0, those whose `error` it has set have
     * failed at once, as if `done` had been called with it; the rest are pending. Returns how many
     * are pending (0 for the table). */
    size_t (*submit)(struct weir_store *, uint64_t now_ns, struct weir_decision *const *, size_t);
    /* A decision with these checks will be submitted soon: asks for the memory that it needs.
     * NULL: there is nothing to ask for. */
    void (*prefetch)(struct weir_store *, const struct weir_decision *);
    /* End of a turn of the loop: sends what was collected, in one write. */
    void (*flush)(struct weir_store *);
    /* Forgets a pending decision: `done` is never called for it. Its state may still be charged,
     * but a lease that it may be given all the same is the store's to end, unless the decision has
     * the record of an idempotency key (WEIR_CHECK_IDEMPOTENCY), whose repeat is given it again. */
    void (*cancel)(struct weir_store *, struct weir_decision *);
    /* How this store calls the state of a concurrency check. NULL: by the check's hash. */
    void (*name_of)(const struct weir_store *, const struct weir_check *, struct weir_store_name *);
    /* Takes the `i`-th secret with which tokens of its states are signed so that all nodes on this
     * store take them; the first one signs. False: there is none (more), or it is not known yet.
     * NULL: the store is this node's own. */
    bool (*secret)(const struct weir_store *, unsigned i, uint64_t words[2]);
    /* About what the time is at the store while the caller's is `now_ns`; NULL: the same. */
    uint64_t (*time)(const struct weir_store *, uint64_t now_ns);
    /* Of a store in another region: decides one check at once, from units that it has fetched
     * beforehand (feature/region/engine/lend.h). Returns whether they cover the cost. `outcome` is
     * that of the check: allowed, or denied with a retry of when there may be enough; WEIR_NEVER
     * where that is not known. `lent` is what was taken, with TAKE. NULL: the store lends nothing.
     */
    bool (*lend)(struct weir_store *, enum weir_lend, const struct weir_check *,
                 struct weir_outcome *, struct weir_lent *lent);
    /* Puts back what was taken and not used. What cannot go back any more stays charged. */
    void (*put_back)(struct weir_store *, const struct weir_check *, const struct weir_lent *);
    void (*close)(struct weir_store *);
};

/* The first member of every store. */
struct weir_store {
    const struct weir_store_ops *ops;
    weir_store_done done; /* set by the engine before the first submit */
    void *done_context;
};

/* Makes a limit known to a store and, where the store is not the table itself, to the table beside
 * it (`local`, may be NULL): there as limit->local, if it has one. limit->id becomes the table's.
 * Errors: those of prepare. */
int weir_store_prepare(struct weir_store *store, struct weir_store *local, struct weir_limit *limit,
                       struct weir_reason *reason) __attribute__((warn_unused_result));

struct weir_table;

/* A store on `table`, which must outlive it; attaches this thread to the table as one owner.
 * Errors: WEIR_ERR_MEMORY, WEIR_ERR_FULL (no free owner slot in the region). */
int weir_store_embedded_open(struct weir_store **store, struct weir_table *table)
    __attribute__((warn_unused_result));

/* Moves such a store to another table, which has the states of its own (copy_of) and whose limits
 * are prepared anew; then the first table may be closed. Errors: as above, and nothing has changed.
 */
int weir_store_embedded_move(struct weir_store *store, struct weir_table *table)
    __attribute__((warn_unused_result));

/* The owner by which such a store is attached. */
struct weir_table_owner;
struct weir_table_owner *weir_store_embedded_owner(struct weir_store *store);

/* The same on a spare (weir_table_open_spare), as the local store beside the embedded one on its
 * table: limits carry the ids of that table, prepare does nothing, and a limit is adopted when it
 * is first decided on. Errors: as weir_store_embedded_open. */
int weir_store_spare_open(struct weir_store **store, struct weir_table *spare)
    __attribute__((warn_unused_result));

/* A store in the place of one that could not be opened: it fails each decision that needs a state
 * at once, so that on_store_error decides. It is attached to `stand_in`, whose secret, ids and time
 * the engine has, and on which a store beside it decides what is local. Errors: as
 * weir_store_embedded_open. */
int weir_store_absent_open(struct weir_store **store, struct weir_table *stand_in)
    __attribute__((warn_unused_result));

#endif
