/* SPDX-License-Identifier: Apache-2.0 */
/* see shares.h: calls, their ends, and time */
#include "store/redis/share/table.h"

#include "core/check.h"

static struct share_entry *pop(struct redis_shares *shares)
{
    struct share_entry *entry = shares->queue;

    shares->queue = entry->next_queued;
    if (shares->queue == NULL)
        shares->queue_end = &shares->queue;
    entry->queued = false;
    shares->busy--;
    return entry;
}

/* When to look at an entry that nothing happens to. */
static void schedule(struct redis_shares *shares, struct share_entry *entry)
{
    uint64_t due_ns = share_due(&entry->share, &entry->terms);
    uint64_t idle_ns = entry->seen_ns + SHARE_LIFE_MAX_NS;

    share_wheel_set(&shares->wheel, &entry->timer, due_ns < idle_ns ? due_ns : idle_ns);
}

/* Fills the call of an entry. False: it has nothing to say. */
static bool fill(struct redis_shares *shares, struct share_entry *entry, uint64_t now_ns)
{
    uint64_t id = shares->last_id + 1;
    bool asks = entry->first != NULL || !entry->gives_back;

    if (asks) {
        share_ask(&entry->share, &entry->terms, id, entry->waited_cost, now_ns, &entry->call);
    } else {
        entry->gives_back = entry->slot == NULL;
        if (!share_give_back(&entry->share, &entry->terms, id, now_ns, &entry->call))
            return false;
    }
    shares->last_id = id;
    shares->counters.refills += asks;
    shares->counters.returns += !asks;
    entry->call.holder = shares->holder;
    entry->waited_cost = 0;
    return true;
}

bool redis_shares_next(struct redis_shares *shares, uint64_t now_ns, struct redis_shares_call *call)
{
    while (shares->queue != NULL) {
        struct share_entry *entry = pop(shares);

        if (!fill(shares, entry, now_ns)) {
            share_table_free(shares, entry); /* it is idle, or it leaves */
            continue;
        }
        share_wheel_stop(&shares->wheel, &entry->timer);
        entry->sent = true;
        shares->busy++;
        *call =
            (struct redis_shares_call){.check = &entry->check, .ask = entry->call, .place = entry};
        return true;
    }
    return false;
}

/* The decisions that waited, taken off the entry. */
static struct redis_shares_wait *wake(struct share_entry *entry)
{
    struct redis_shares_wait *woken = entry->first;

    for (struct redis_shares_wait *wait = woken; wait != NULL; wait = wait->next)
        wait->place = NULL;
    entry->first = entry->last = NULL;
    return woken;
}

/* A call has ended: what comes next for its entry. An idle key's entry goes with its portions: cold
 * keys are decided exactly. */
static struct redis_shares_wait *finish(struct redis_shares *shares, struct share_entry *entry)
{
    bool returned = !entry->share.asked_portion;
    struct redis_shares_wait *woken = wake(entry);

    entry->sent = false;
    shares->busy--;
    if (entry->slot == NULL && !returned) {
        entry->gives_back = true;
        share_table_queue(shares, entry);
    } else if (entry->slot == NULL || (returned && woken == NULL)) {
        share_table_free(shares, entry);
    } else {
        entry->gives_back = false;
        schedule(shares, entry);
    }
    return woken;
}

struct redis_shares_wait *redis_shares_answered(struct redis_shares *shares, void *place,
                                                const struct share_reply *reply, uint64_t now_ns)
{
    struct share_entry *entry = place;

    (void)share_answered(&entry->share, &entry->terms, reply, now_ns);
    shares->counters.forfeited += reply->forfeited;
    return finish(shares, entry);
}

struct redis_shares_wait *redis_shares_failed(struct redis_shares *shares, void *place,
                                              bool executed)
{
    struct share_entry *entry = place;

    shares->counters.forfeited += share_failed(&entry->share, executed);
    return finish(shares, entry);
}

uint64_t redis_shares_tick(struct redis_shares *shares, uint64_t now_ns)
{
    struct share_timer *timer;

    while ((timer = share_wheel_next(&shares->wheel, now_ns)) != NULL) {
        struct share_entry *entry = (struct share_entry *)(void *)timer; /* its first member */

        if (entry->queued || entry->sent)
            continue;
        if (now_ns >= share_due(&entry->share, &entry->terms) ||
            now_ns >= entry->seen_ns + SHARE_LIFE_MAX_NS) {
            entry->gives_back = true;
            share_table_queue(shares, entry);
        } else {
            schedule(shares, entry);
        }
    }
    return share_wheel_due(&shares->wheel);
}

void redis_shares_end(struct redis_shares *shares)
{
    shares->ending = true;
    for (struct share_entry *entry = shares->all; entry != NULL; entry = entry->next)
        if (entry->slot != NULL)
            share_table_leave(shares, entry);
}
