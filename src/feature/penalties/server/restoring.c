/* SPDX-License-Identifier: Apache-2.0 */
/* see restoring.h */
#include "feature/penalties/server/restoring.h"

#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/text/reason.h"

static void set_name(char *room, size_t size, struct weir_bytes name)
{
    size_t used = name.size < size ? name.size : size - 1;

    memcpy(room, name.data, used);
    room[used] = '\0';
}

/* What stands for a ladder in queues; false: it cannot be read. */
static bool strike_of(const struct weir_history_ladder *ladder, struct weir_queued_strike *strike)
{
    struct weir_cidr network = {{0}, 0};
    const struct weir_cidr *of = ladder->network ? &network : NULL;

    *strike = (struct weir_queued_strike){.moves = false};
    if (of && weir_cidr_parse(&network, ladder->value.data, ladder->value.size) < 0)
        return false;
    strike->hash = weir_known_hash(ladder->penalty, of, ladder->id);
    strike->value_hash = weir_known_hash((struct weir_bytes){NULL, 0}, of, ladder->id);
    set_name(strike->penalty, sizeof strike->penalty, ladder->penalty);
    set_name(strike->kind, sizeof strike->kind, ladder->kind);
    set_name(strike->value.shown, sizeof strike->value.shown, ladder->value);
    if (of)
        strike->value.network = network;
    memcpy(strike->value.id, ladder->id, sizeof ladder->id);
    return true;
}

/* Ladders come by kind and value. */
static void take_ladder(void *context, const struct weir_history_ladder *ladder)
{
    struct weir_ladder_restoring *restoring = context;
    struct weir_queued_strike strike, *last = &restoring->last;
    uint64_t until_ns = ladder->state.until_ns;

    if (!strike_of(ladder, &strike))
        return;
    weir_known_add(restoring->known, strike.hash);
    restoring->lost += weir_ladder_memory_add(restoring->memory, ladder) < 0;
    if (until_ns <= restoring->now_ns)
        return;
    if (strcmp(strike.kind, last->kind) == 0 && strcmp(strike.value.shown, last->value.shown) == 0)
        restoring->due(restoring->context, &strike,
                       until_ns < restoring->last_until_ns ? until_ns : restoring->last_until_ns);
    *last = strike;
    restoring->last_until_ns = until_ns;
}

int weir_ladder_restoring_begin(struct weir_ladder_restoring *restoring,
                                struct weir_history *history, uint64_t now_ns,
                                struct weir_reason *reason)
{
    const struct weir_history_filter filter = {.now_ns = now_ns, .count = UINT64_MAX};
    int err;

    restoring->now_ns = now_ns;
    restoring->unread = !history;
    if (!history)
        return 0;
    err = weir_history_ladders(history, &filter, take_ladder, restoring, reason);
    return err == 0 && restoring->lost > 0 ? WEIR_ERR_MEMORY : err;
}

static void page_read(struct weir_keeper_job *job)
{
    struct weir_ladder_restoring *restoring = job->context;
    const struct weir_keeper_page *page = job->page;

    for (uint32_t i = 0; job->err == 0 && i < page->count; i++) {
        const struct weir_keeper_page_row *row = &page->rows[i];
        const struct weir_history_ladder ladder = {.penalty = weir_bytes_of(row->ladder.penalty),
                                                   .kind = weir_bytes_of(row->kind),
                                                   .value = weir_bytes_of(row->value),
                                                   .network = row->network,
                                                   .id = {row->id[0], row->id[1]},
                                                   .gone_ns = row->gone_ns,
                                                   .state = row->ladder.state};

        take_ladder(restoring, &ladder);
    }
    if (job->err == 0) {
        restoring->read_count += page->count;
        restoring->unread = page->count == WEIR_KEEPER_PAGE_MAX;
    }
    restoring->reading = false;
    weir_keeper_free(restoring->keeper, job);
}

void weir_ladder_restoring_tick(struct weir_ladder_restoring *restoring, struct weir_keeper *keeper,
                                uint64_t now_ns)
{
    static const struct weir_bytes none = {"", 0};
    struct weir_keeper_page *page;
    struct weir_keeper_state state;
    struct weir_keeper_job *job;

    if (!restoring->unread || restoring->reading)
        return;
    weir_keeper_state(keeper, &state);
    page = state.opened ? calloc(1, sizeof *page) : NULL;
    job = page ? weir_keeper_take(keeper, WEIR_KEEPER_PAGE, none, none, none) : NULL;
    if (!job) {
        free(page);
        return;
    }
    page->skip = restoring->read_count;
    page->now_ns = restoring->now_ns = now_ns;
    job->page = page;
    job->done = page_read;
    job->context = restoring;
    restoring->keeper = keeper;
    restoring->reading = true;
    weir_keeper_start(keeper, job);
}
