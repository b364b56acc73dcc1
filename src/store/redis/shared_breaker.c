/* SPDX-License-Identifier: Apache-2.0 */
/* see shared_breaker.h */
#include "store/redis/shared_breaker.h"

/* Takes the lock. Returns the time, which never runs back: threads read their clocks at different
 * moments, and the breaker subtracts times. */
static uint64_t lock_at(struct redis_shared_breaker *shared, uint64_t now_ns)
{
    pthread_mutex_lock(&shared->lock);
    if (shared->latest_ns < now_ns)
        shared->latest_ns = now_ns;
    return shared->latest_ns;
}

/* Publishes what is read without the lock. */
static void unlock(struct redis_shared_breaker *shared)
{
    const struct weir_breaker *breaker = &shared->breaker;
    uint64_t due_ns = breaker->state == WEIR_BREAKER_HALF_OPEN ? shared->probe_until_ns
                                                               : weir_breaker_due_ns(breaker);

    atomic_store_explicit(&shared->due_ns, due_ns, memory_order_relaxed);
    atomic_store_explicit(&shared->failing, breaker->failures != 0, memory_order_relaxed);
    atomic_store_explicit(&shared->open, !weir_breaker_closed(breaker), memory_order_relaxed);
    pthread_mutex_unlock(&shared->lock);
}

void redis_shared_breaker_init(struct redis_shared_breaker *shared, uint64_t random_seed)
{
    *shared = (struct redis_shared_breaker){.due_ns = UINT64_MAX};
    weir_breaker_init(&shared->breaker, random_seed);
    pthread_mutex_init(&shared->lock, NULL);
}

void redis_shared_breaker_end(struct redis_shared_breaker *shared)
{
    pthread_mutex_destroy(&shared->lock);
}

bool redis_shared_breaker_late(struct redis_shared_breaker *shared, uint64_t now_ns, uint16_t slot)
{
    bool opened = weir_breaker_call(&shared->breaker, lock_at(shared, now_ns), false);

    if (opened) {
        shared->probe_slot = slot;
        atomic_store_explicit(&shared->yielder, NULL, memory_order_relaxed);
    }
    unlock(shared);
    return opened;
}

void redis_shared_breaker_answered(struct redis_shared_breaker *shared, uint64_t now_ns)
{
    if (!atomic_load_explicit(&shared->failing, memory_order_relaxed))
        return;
    now_ns = lock_at(shared, now_ns);
    (void)weir_breaker_call(&shared->breaker, now_ns, true);
    unlock(shared);
}

void redis_shared_breaker_hurry(struct redis_shared_breaker *shared, uint64_t now_ns)
{
    weir_breaker_hurry(&shared->breaker, lock_at(shared, now_ns));
    unlock(shared);
}

static uint64_t yields_ns(const struct redis_shared_breaker *shared, const void *who)
{
    return atomic_load_explicit(&shared->yielder, memory_order_relaxed) == who
               ? REDIS_SHARED_BREAKER_YIELD_NS
               : 0;
}

uint64_t redis_shared_breaker_due_ns(const struct redis_shared_breaker *shared, const void *who)
{
    uint64_t due_ns = atomic_load_explicit(&shared->due_ns, memory_order_relaxed);

    return due_ns == UINT64_MAX ? due_ns : due_ns + yields_ns(shared, who);
}

/* One whose prober has gone or stopped, or a new one. */
static bool take(struct redis_shared_breaker *shared, uint64_t now_ns)
{
    return shared->breaker.state == WEIR_BREAKER_HALF_OPEN
               ? now_ns >= shared->probe_until_ns
               : weir_breaker_probe(&shared->breaker, now_ns);
}

bool redis_shared_breaker_probe(struct redis_shared_breaker *shared, const void *who,
                                uint64_t now_ns, uint16_t *slot)
{
    now_ns = lock_at(shared, now_ns);

    bool taken = now_ns >= redis_shared_breaker_due_ns(shared, who) && take(shared, now_ns);

    if (taken) {
        shared->prober = who;
        shared->probe_until_ns = now_ns + REDIS_SHARED_BREAKER_PROBE_NS;
        *slot = shared->probe_slot;
    }
    unlock(shared);
    return taken;
}

bool redis_shared_breaker_probed(struct redis_shared_breaker *shared, const void *who,
                                 uint64_t now_ns, bool answered, uint64_t *open_ns)
{
    now_ns = lock_at(shared, now_ns);

    bool its = shared->prober == who;

    if (its) {
        shared->prober = NULL;
        *open_ns = now_ns - shared->breaker.opened_ns;
        weir_breaker_probed(&shared->breaker, now_ns, answered);
        atomic_store_explicit(&shared->yielder, answered ? NULL : who, memory_order_relaxed);
    }
    unlock(shared);
    return its && answered;
}

void redis_shared_breaker_leave(struct redis_shared_breaker *shared, const void *who)
{
    (void)lock_at(shared, 0);
    if (shared->prober == who) {
        shared->prober = NULL;
        shared->probe_until_ns = shared->latest_ns;
    }
    if (yields_ns(shared, who) != 0)
        atomic_store_explicit(&shared->yielder, NULL, memory_order_relaxed);
    unlock(shared);
}
