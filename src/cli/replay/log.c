/* SPDX-License-Identifier: Apache-2.0 */
/* see log.h */
#include "cli/replay/log.h"

#include <stdlib.h>

#include <weir/error.h>

#define ROOM_MIN 4

static struct replay_admission *entry_at(const struct replay_log *log, uint32_t i)
{
    return &log->ring[(log->first + i) & (log->room - 1)];
}

void replay_log_expire(struct replay_log *log, uint64_t now_ns, uint64_t window_ns)
{
    while (log->count > 0) {
        const struct replay_admission *oldest = entry_at(log, 0);
        if (oldest->t_ns > now_ns || now_ns - oldest->t_ns < window_ns)
            return;
        log->sum -= oldest->cost;
        log->first = (log->first + 1) & (log->room - 1);
        log->count--;
    }
}

static int grow(struct replay_log *log)
{
    uint32_t room = log->room > 0 ? log->room * 2 : ROOM_MIN;
    struct replay_admission *ring = room == 0 ? NULL : malloc(room * sizeof *ring);
    if (!ring)
        return WEIR_ERR_MEMORY;
    for (uint32_t i = 0; i < log->count; i++)
        ring[i] = *entry_at(log, i);
    free(log->ring);
    log->ring = ring;
    log->first = 0;
    log->room = room;
    return 0;
}

int replay_log_add(struct replay_log *log, uint64_t t_ns, uint64_t cost)
{
    if (cost == 0)
        return 0;
    if (log->count > 0 && entry_at(log, log->count - 1)->t_ns == t_ns) {
        entry_at(log, log->count - 1)->cost += cost;
    } else {
        if (log->count == log->room && grow(log) < 0)
            return WEIR_ERR_MEMORY;
        *entry_at(log, log->count++) = (struct replay_admission){t_ns, cost};
    }
    log->sum += cost;
    if (log->sum > log->worst)
        log->worst = log->sum;
    return 0;
}

bool replay_log_admits(const struct replay_log *log, uint64_t limit, uint64_t cost)
{
    return log->sum <= limit && cost <= limit - log->sum;
}

void replay_log_free(struct replay_log *log)
{
    free(log->ring);
    *log = (struct replay_log){0};
}
