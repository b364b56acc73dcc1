/* SPDX-License-Identifier: Apache-2.0 */
/* The circuit breaker of a server that several stores reach, each over a connection and on a thread
 * of its own: base/breaker.h's states, once for all of them.
 *
 * It knows one way in which a server is gone: it is silent. WEIR_BREAKER_FAILURES late calls in a
 * row, of whichever stores, open it for all; an answer to any store begins the count anew. A lost
 * connection says nothing about the others, so it is left to the breaker that each store also has.
 *
 *   each call     redis_shared_breaker_closed, one atomic read; an answer likewise
 *   a late call   counts under the lock
 *   open          every store that has something to send sets its timer to the probe's time. The
 *                 first that comes is the prober; the others see its end at their next call or
 * timer
 *
 * So nothing is ever sent from one thread to another. A prober that stops without a result is
 * replaced after REDIS_SHARED_BREAKER_PROBE_NS, and one that leaves at once. A store whose probe
 * was not answered comes REDIS_SHARED_BREAKER_YIELD_NS after the others next: perhaps only its
 * connection is silent.
 *
 * Memory: itself. Threads: any; the lock is never held over I/O. Times: uv_hrtime(), or another
 * clock that all share; one that is behind the latest seen is taken for that.
 */
#ifndef WEIR_STORE_REDIS_SHARED_BREAKER_H
#define WEIR_STORE_REDIS_SHARED_BREAKER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/breaker.h"

#define REDIS_SHARED_BREAKER_PROBE_NS UINT64_C(2000000000) /* far above a store's deadline */
#define REDIS_SHARED_BREAKER_YIELD_NS UINT64_C(20000000)

struct redis_shared_breaker {
    atomic_bool open;              /* it is not closed */
    atomic_bool failing;           /* calls were late since the last answer */
    _Atomic uint64_t due_ns;       /* when the probe may be taken next; closed: UINT64_MAX */
    _Atomic(const void *) yielder; /* whose probe was not answered last; NULL: none */
    pthread_mutex_t lock;          /* guards what follows */
    struct weir_breaker breaker;
    const void *prober;      /* NULL: none */
    uint64_t probe_until_ns; /* half open: when another may take the probe */
    uint64_t latest_ns;      /* the latest time seen */
    uint16_t probe_slot;
};

void redis_shared_breaker_init(struct redis_shared_breaker *shared, uint64_t random_seed);

/* No store uses it any more. */
void redis_shared_breaker_end(struct redis_shared_breaker *shared);

/* Whether calls may be sent. NULL: there is none, true. */
static inline bool redis_shared_breaker_closed(const struct redis_shared_breaker *shared)
{
    return !shared || !atomic_load_explicit(&shared->open, memory_order_relaxed);
}

/* A call had no answer within its time; `slot` is where the probe asks if this opens it. Returns
 * whether this has opened it. */
bool redis_shared_breaker_late(struct redis_shared_breaker *shared, uint64_t now_ns, uint16_t slot);

/* A call was answered. */
void redis_shared_breaker_answered(struct redis_shared_breaker *shared, uint64_t now_ns);

/* A store has reached the server: the next probe is due within WEIR_BREAKER_PAUSE_MIN_NS / 2. */
void redis_shared_breaker_hurry(struct redis_shared_breaker *shared, uint64_t now_ns);

/* When `who` may call redis_shared_breaker_probe; UINT64_MAX: it is closed. `who` is a store, only
 * compared. */
uint64_t redis_shared_breaker_due_ns(const struct redis_shared_breaker *shared, const void *who);

/* Whether `who` is to send the probe now, to *slot: then it is half open. */
bool redis_shared_breaker_probe(struct redis_shared_breaker *shared, const void *who,
                                uint64_t now_ns, uint16_t *slot);

/* What became of the probe of `who`; nothing if that is another's by now. Returns whether this has
 * closed it; then *open_ns is how long it was open. */
bool redis_shared_breaker_probed(struct redis_shared_breaker *shared, const void *who,
                                 uint64_t now_ns, bool answered, uint64_t *open_ns);

/* `who` ends: a probe of its own is due for the others at once. */
void redis_shared_breaker_leave(struct redis_shared_breaker *shared, const void *who);

#endif
