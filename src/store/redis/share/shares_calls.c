/* SPDX-License-Identifier: Apache-2.0 */
/* see shares.h: calls, their ends, and time */
#include "store/redis/share/table.h"

#include "core/check.h"

static struct lease_entry *pop(struct redis_leases *leases)
{
    struct lease_entry *entry = leases->queue;

    leases->queue = entry->next_queued;
    if (leases->queue == NULL)
        leases->queue_end = &leases->queue;
    entry->queued = false;
    leases->busy--;
    return entry;
}

/* When to look at an entry that nothing happens to. */
static void schedule(struct redis_leases *leases, struct lease_entry *entry)
{
    uint64_t due_ns = lease_due(&entry->lease, &entry->terms);
    uint64_t idle_ns = entry->seen_ns + LEASE_LIFE_MAX_NS;

    lease_wheel_set(&leases->wheel, &entry->timer, due_ns < idle_ns ? due_ns : idle_ns);
}

/* Fills the call of an entry. False: it has nothing to say. */
static bool fill(struct redis_leases *leases, struct lease_entry *entry, uint64_t now_ns)
{
    uint64_t id = leases->last_id + 1;
    bool asks = entry->first != NULL || !entry->gives_back;

    if (asks) {
        lease_ask(&entry->lease, &entry->terms, id, entry->waited_cost, now_ns, &entry->call);
    } else {
        entry->gives_back = entry->slot == NULL;
        if (!lease_give_back(&entry->lease, &entry->terms, id, now_ns, &entry->call))
            return false;
    }
    leases->last_id = id;
    leases->counters.refills += asks;
    leases->counters.returns += !asks;
    entry->call.holder = leases->holder;
    entry->waited_cost = 0;
    return true;
}

bool redis_leases_next(struct redis_leases *leases, uint64_t now_ns, struct redis_leases_call *call)
{
    while (leases->queue != NULL) {
        struct lease_entry *entry = pop(leases);

        if (!fill(leases, entry, now_ns)) {
            lease_table_free(leases, entry); /* it is idle, or it leaves */
            continue;
        }
        lease_wheel_stop(&leases->wheel, &entry->timer);
        entry->sent = true;
        leases->busy++;
        *call =
            (struct redis_leases_call){.check = &entry->check, .ask = entry->call, .place = entry};
        return true;
    }
    return false;
}

/* The decisions that waited, taken off the entry. */
static struct redis_leases_wait *wake(struct lease_entry *entry)
{
    struct redis_leases_wait *woken = entry->first;

    for (struct redis_leases_wait *wait = woken; wait != NULL; wait = wait->next)
        wait->place = NULL;
    entry->first = entry->last = NULL;
    return woken;
}

/* A call has ended: what comes next for its entry. An idle key's entry goes with its shares: cold
 * keys are decided exactly. */
static struct redis_leases_wait *finish(struct redis_leases *leases, struct lease_entry *entry)
{
    bool returned = !entry->lease.asked_share;
    struct redis_leases_wait *woken = wake(entry);

    entry->sent = false;
    leases->busy--;
    if (entry->slot == NULL && !returned) {
        entry->gives_back = true;
        lease_table_queue(leases, entry);
    } else if (entry->slot == NULL || (returned && woken == NULL)) {
        lease_table_free(leases, entry);
    } else {
        entry->gives_back = false;
        schedule(leases, entry);
    }
    return woken;
}

struct redis_leases_wait *redis_leases_answered(struct redis_leases *leases, void *place,
                                                const struct lease_reply *reply, uint64_t now_ns)
{
    struct lease_entry *entry = place;

    (void)lease_answered(&entry->lease, &entry->terms, reply, now_ns);
    leases->counters.forfeited += reply->forfeited;
    return finish(leases, entry);
}

struct redis_leases_wait *redis_leases_failed(struct redis_leases *leases, void *place,
                                              bool executed)
{
    struct lease_entry *entry = place;

    leases->counters.forfeited += lease_failed(&entry->lease, executed);
    return finish(leases, entry);
}

uint64_t redis_leases_tick(struct redis_leases *leases, uint64_t now_ns)
{
    struct lease_timer *timer;

    while ((timer = lease_wheel_next(&leases->wheel, now_ns)) != NULL) {
        struct lease_entry *entry = (struct lease_entry *)(void *)timer; /* its first member */

        if (entry->queued || entry->sent)
            continue;
        if (now_ns >= lease_due(&entry->lease, &entry->terms) ||
            now_ns >= entry->seen_ns + LEASE_LIFE_MAX_NS) {
            entry->gives_back = true;
            lease_table_queue(leases, entry);
        } else {
            schedule(leases, entry);
        }
    }
    return lease_wheel_due(&leases->wheel);
}

void redis_leases_end(struct redis_leases *leases)
{
    leases->ending = true;
    for (struct lease_entry *entry = leases->all; entry != NULL; entry = entry->next)
        if (entry->slot != NULL)
            lease_table_leave(leases, entry);
}
