/* The store: where states live, behind one interface.
 *
 * A store decides batches of decisions at one time. The embedded store (store/embedded) is the
 * table, answers at once and returns 0 from submit; a store elsewhere (Redis) answers later, on the
 * same thread, through `done`, never from inside submit or cancel.
 *
 * Threads: one weir_store per worker, used by that worker alone. Stores of several workers may
 * stand on one table.
 */
#ifndef WEIR_STORE_STORE_H
#define WEIR_STORE_STORE_H

#include <stddef.h>

#include "core/check.h"

struct weir_store;

/* Called once for every decision that stayed pending and was not cancelled. `error` is 0, or why
 * the store could not decide; the engine then applies on_store_error. */
typedef void (*weir_store_done)(void *context, struct weir_decision *decision, int error);

struct weir_store_ops {
    const char *name;
    /* Makes a limit known to the store before the first check that carries it; sets limit->id.
     * Errors: WEIR_ERR_FULL, WEIR_ERR_UNSUPPORTED (the limit cannot live in this store). */
    int (*prepare)(struct weir_store *, struct weir_limit *limit);
    /* Decides a batch at one time. Every decision it could decide has verdict != WEIR_PENDING when
     * it returns; the others are pending. Returns how many are pending (0 for the table). */
    size_t (*submit)(struct weir_store *, uint64_t now_ns, struct weir_decision *const *, size_t);
    /* End of a turn of the loop: sends what was collected, in one write. */
    void (*flush)(struct weir_store *);
    /* Forgets a pending decision: `done` is never called for it. Its state may still be charged. */
    void (*cancel)(struct weir_store *, struct weir_decision *);
    /* Ends a lease of a concurrency limit. Errors: WEIR_ERR_NOT_FOUND (no such lease, or ended). */
    int (*release)(struct weir_store *, uint64_t now_ns, const uint64_t hash[2], uint64_t lease_id);
    /* Forgets the state of one key. Errors: WEIR_ERR_NOT_FOUND. */
    int (*reset)(struct weir_store *, const uint64_t hash[2]);
    /* When the state of one key will equal a fresh one; NULL: this store cannot tell at once.
     * Errors: WEIR_ERR_NOT_FOUND. */
    int (*look)(struct weir_store *, const uint64_t hash[2], uint64_t *fresh_at_ns);
    void (*close)(struct weir_store *);
};

/* The first member of every store. */
struct weir_store {
    const struct weir_store_ops *ops;
    weir_store_done done; /* set by the engine before the first submit */
    void *done_context;
};

struct weir_table;

/* A store on `table`, which must outlive it; attaches this thread to the table as one owner.
 * Errors: WEIR_ERR_MEMORY, WEIR_ERR_FULL (no free owner slot in the region). */
int weir_store_embedded_open(struct weir_store **store, struct weir_table *table)
    __attribute__((warn_unused_result));

#endif
