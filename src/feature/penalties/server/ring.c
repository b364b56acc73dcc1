/* SPDX-License-Identifier: Apache-2.0 */
/* see ring.h */
#include "feature/penalties/server/ring.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/daemon/clock.h"
#include "server/daemon/log.h"
#include "table/table.h"

#define BEAT_TICKS (1000 / WEIR_STRIKES_POLL_MS)
#define AGE_MAX_NS (UINT64_C(3600) * 1000000000)

/* --- Taking ----------------------------------------------------------------------------------- */

static int find_penalty(const struct weir_rules *rules, uint64_t print)
{
    const struct weir_standing_kind *kinds = weir_rules_settings(rules)->standing->kinds;

    for (uint32_t i = 0; i < weir_rules_penalty_count(rules); i++) {
        const struct weir_penalty *penalty = weir_rules_penalty(rules, i);

        if (weir_penalty_print(penalty, &kinds[penalty->kind],
                               weir_rules_penalty_limit(rules, i)) == print)
            return (int)i;
    }
    return -1;
}

/* Whom it is held against. False: no value of this kind. */
static bool find_value(const struct weir_penalties_ring *ring,
                       const struct weir_standing_kind *kind, const struct weir_ring_strike *from,
                       struct weir_strike *strike)
{
    uint8_t family = from->network.address.family;
    struct weir_bytes text = {from->text, from->size};

    if (kind->address) {
        strike->network = from->network;
        return family != 0 && from->network.bits == (family == 4 ? kind->bits4 : kind->bits6);
    }
    strike->value = text;
    memcpy(strike->id, from->id, sizeof strike->id);
    strike->hidden = kind->secret;
    if (kind->secret)
        return weir_standing_value_hidden(text);
    if (text.size == 0)
        return false;
    weir_standing_id(ring->standing->map, kind->name, text, strike->id);
    return true;
}

bool weir_penalties_ring_take(struct weir_penalties_ring *ring, const struct weir_ring_strike *from,
                              uint64_t now_ns, bool again)
{
    const struct weir_rules *rules = *ring->rules;
    int number = find_penalty(rules, from->penalty);
    struct weir_strike strike = {.penalty = (uint8_t)number};

    if (number >= 0) {
        const struct weir_penalty *penalty = weir_rules_penalty(rules, (uint32_t)number);

        const struct weir_standing_kind *kind =
            &weir_rules_settings(rules)->standing->kinds[penalty->kind];

        if (find_value(ring, kind, from, &strike)) {
            uint64_t at_ns = from->now_ns < now_ns ? from->now_ns : now_ns;

            memcpy(strike.check.hash, from->count, sizeof from->count);
            return weir_penalties_struck(
                       ring->penalties,
                       &(struct weir_struck){
                           .penalty = penalty,
                           .kind = kind,
                           .strike = &strike,
                           .now_ns = now_ns - at_ns > AGE_MAX_NS ? now_ns - AGE_MAX_NS : at_ns,
                           .moves = from->moves,
                           .again = again}) != WEIR_STRIKE_REFUSED ||
                   !from->moves; /* else it was counted as lost */
        }
    }
    ring->refused++;
    return true;
}

static bool take(void *context, const struct weir_ring_strike *strike, bool again)
{
    struct weir_penalties_ring *ring = context;

    return weir_penalties_ring_take(ring, strike,
                                    weir_table_time(ring->table, weir_clock_boot_ns()), again);
}

/* --- Keeping ---------------------------------------------------------------------------------- */

/* Who hands strikes over also follows what comes of them: the group that may read the state may
 * read the map of standing, which has no values in it. What the system refuses stays as it is. */
static void share_map(const struct weir_penalties_ring *ring)
{
    struct stat status;
    const char *path = weir_rules_settings(*ring->rules)->standing->map;

    if (!path || stat(ring->state_file, &status) != 0 || (status.st_mode & S_IRGRP) == 0)
        return;
    if (chown(path, (uid_t)-1, status.st_gid) == 0)
        (void)!chmod(path, S_IRUSR | S_IWUSR | S_IRGRP);
}

static void keep(struct weir_penalties_ring *ring)
{
    struct weir_reason reason = {{0}};

    if (weir_strike_ring_keep(&ring->ring, ring->state_file, &reason) == 0) {
        share_map(ring);
        ring->failed = false;
        return;
    }
    ring->ring = NULL;
    if (!ring->failed)
        weir_log_event(ring->standing->log, WEIR_LOG_WARNING, "strikes_not_taken", "reason",
                       reason.text);
    ring->failed = true;
}

static void drop(struct weir_penalties_ring *ring)
{
    if (!ring->ring)
        return;
    ring->lost += weir_strike_ring_lost(ring->ring);
    ring->deferred += weir_strike_ring_deferred(ring->ring);
    weir_strike_ring_close(ring->ring);
    ring->ring = NULL;
}

static void tick(struct weir_penalties_ring *ring)
{
    uint64_t now_ns = weir_clock_boot_ns();
    bool beats = ring->ticks++ % BEAT_TICKS == 0;

    if (ring->ring && (weir_strike_ring_poll(ring->ring, now_ns, take, ring) < 0 ||
                       (beats && weir_strike_ring_beat(ring->ring, now_ns) < 0)))
        drop(ring);
    if (ring->ring || !beats)
        return;
    keep(ring);
    if (ring->ring && weir_strike_ring_beat(ring->ring, now_ns) < 0)
        drop(ring);
}

static void on_poll(uv_timer_t *timer)
{
    tick(timer->data);
}

int weir_penalties_ring_open(struct weir_penalties_ring *ring, const char *state_file,
                             uv_loop_t *loop)
{
    ring->state_file = strdup(state_file);
    if (!ring->state_file)
        return WEIR_ERR_MEMORY;
    if (uv_timer_init(loop, &ring->poll) < 0)
        return WEIR_ERR_IO;
    ring->poll.data = ring;
    tick(ring);
    if (uv_timer_start(&ring->poll, on_poll, WEIR_STRIKES_POLL_MS, WEIR_STRIKES_POLL_MS) < 0)
        return WEIR_ERR_IO;
    return 0;
}

void weir_penalties_ring_close(struct weir_penalties_ring *ring)
{
    drop(ring);
    free(ring->state_file);
    ring->state_file = NULL;
}

uint64_t weir_penalties_ring_lost(const struct weir_penalties_ring *ring)
{
    return ring->refused + ring->lost + (ring->ring ? weir_strike_ring_lost(ring->ring) : 0);
}

uint64_t weir_penalties_ring_deferred(const struct weir_penalties_ring *ring)
{
    return ring->deferred + (ring->ring ? weir_strike_ring_deferred(ring->ring) : 0);
}
