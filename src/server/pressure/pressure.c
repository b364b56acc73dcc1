/* SPDX-License-Identifier: Apache-2.0 */
/* see pressure.h */
#include "server/pressure/pressure.h"

#include <stdlib.h>

struct account {
    uint64_t name;
    struct weir_table_limit_stats seen;       /* the table's counters at the last look */
    struct weir_table_limit_stats unreported; /* since its last line */
    struct weir_table_limit_stats minute[2];  /* in this minute, in the one before */
    uint64_t reported_ns;                     /* when it was reported last */
    bool evicted, overflowed;                 /* one has been reported */
};

struct weir_pressure {
    uint32_t count, lines; /* lines: in this minute */
    bool looked, summed;   /* summed: in this minute, the others were reported */
    uint64_t minute_ns;    /* when this minute began */
    struct account accounts[];
};

int weir_pressure_open(struct weir_pressure **result, uint32_t accounts)
{
    struct weir_pressure *pressure =
        calloc(1, sizeof *pressure + accounts * sizeof *pressure->accounts);
    if (!pressure)
        return WEIR_ERR_MEMORY;
    pressure->count = accounts;
    *result = pressure;
    return 0;
}

void weir_pressure_close(struct weir_pressure *pressure)
{
    free(pressure);
}

static uint64_t sum(const struct weir_table_limit_stats *stats)
{
    return stats->evictions + stats->overflows;
}

static void add(struct weir_table_limit_stats *to, const struct weir_table_limit_stats *stats)
{
    to->evictions += stats->evictions;
    to->overflows += stats->overflows;
}

/* More than all machines that share a state do between two looks. */
#define GROWTH_MAX (UINT64_C(1) << 40)

/* How much a counter has grown; one that has shrunk began anew. What no machine can have counted is
 * damage of the state, and nothing. */
static uint64_t growth(uint64_t now, uint64_t before)
{
    uint64_t grown = now >= before ? now - before : now;
    return grown < GROWTH_MAX ? grown : 0;
}

static void note(struct account *account, const struct weir_table_account *now, bool first)
{
    if (account->name != now->name) /* a limit in place of one that has gone */
        *account = (struct account){.name = now->name};
    if (!first) {
        const struct weir_table_limit_stats grown = {
            growth(now->stats.evictions, account->seen.evictions),
            growth(now->stats.overflows, account->seen.overflows)};
        add(&account->unreported, &grown);
        add(&account->minute[0], &grown);
    }
    account->seen = now->stats;
}

/* Whether a line about an account is due. */
static bool is_due(const struct account *account, uint64_t now_ns)
{
    const struct weir_table_limit_stats *unreported = &account->unreported;
    return (unreported->evictions > 0 && !account->evicted) ||
           (unreported->overflows > 0 && !account->overflowed) ||
           (sum(unreported) > 0 && now_ns - account->reported_ns >= WEIR_PRESSURE_AGAIN_NS);
}

static void tell(struct account *account, uint64_t now_ns)
{
    account->evicted |= account->unreported.evictions > 0;
    account->overflowed |= account->unreported.overflows > 0;
    account->unreported = (struct weir_table_limit_stats){0, 0};
    account->reported_ns = now_ns;
}

/* Begins the next minute if it is time. */
static void turn(struct weir_pressure *pressure, uint64_t now_ns)
{
    uint64_t passed_ns = now_ns - pressure->minute_ns;
    if (passed_ns < WEIR_PRESSURE_AGAIN_NS)
        return;
    for (uint32_t i = 0; i < pressure->count; i++) {
        struct weir_table_limit_stats *minute = pressure->accounts[i].minute;
        minute[1] = passed_ns < 2 * WEIR_PRESSURE_AGAIN_NS ? minute[0]
                                                           : (struct weir_table_limit_stats){0, 0};
        minute[0] = (struct weir_table_limit_stats){0, 0};
    }
    pressure->minute_ns = now_ns;
    pressure->lines = 0;
    pressure->summed = false;
}

/* Puts an account into a list of those with most. Returns how many are in it. */
static uint32_t insert(struct weir_table_account *list, uint32_t count, uint32_t max, uint64_t name,
                       const struct weir_table_limit_stats *stats)
{
    uint32_t at = count < max ? count : max - 1;
    if (max == 0 || (count == max && sum(stats) <= sum(&list[at].stats)))
        return count;
    for (; at > 0 && sum(&list[at - 1].stats) < sum(stats); at--)
        list[at] = list[at - 1];
    list[at] = (struct weir_table_account){name, *stats};
    return count < max ? count + 1 : max;
}

static bool is_listed(const struct weir_pressure_report *report, uint64_t name)
{
    for (uint32_t i = 0; i < report->count; i++)
        if (report->lines[i].name == name)
            return true;
    return false;
}

/* Decides who of those that are due gets a line. */
static void choose(struct weir_pressure *pressure, uint64_t now_ns,
                   struct weir_pressure_report *report)
{
    uint32_t room = WEIR_PRESSURE_LINES - pressure->lines;
    for (uint32_t i = 0; i < pressure->count; i++) {
        const struct account *account = &pressure->accounts[i];
        if (is_due(account, now_ns))
            report->count =
                insert(report->lines, report->count, room, account->name, &account->unreported);
    }
}

void weir_pressure_look(struct weir_pressure *pressure, uint64_t now_ns,
                        const struct weir_table_account *accounts,
                        struct weir_pressure_report *report)
{
    *report = (struct weir_pressure_report){.count = 0};
    turn(pressure, now_ns);
    for (uint32_t i = 0; i < pressure->count; i++)
        note(&pressure->accounts[i], &accounts[i], !pressure->looked);
    pressure->looked = true;
    choose(pressure, now_ns, report);
    for (uint32_t i = 0; i < pressure->count; i++) {
        struct account *account = &pressure->accounts[i];
        if (!is_due(account, now_ns))
            continue;
        if (!is_listed(report, account->name)) {
            if (pressure->summed)
                continue; /* in the next minute */
            report->more++;
            add(&report->others, &account->unreported);
        }
        tell(account, now_ns);
    }
    pressure->lines += report->count;
    pressure->summed |= report->more > 0;
}

void weir_pressure_recent(const struct weir_pressure *pressure, struct weir_pressure_recent *recent)
{
    *recent = (struct weir_pressure_recent){.count = 0};
    for (uint32_t i = 0; i < pressure->count; i++) {
        const struct account *account = &pressure->accounts[i];
        struct weir_table_limit_stats stats = account->minute[0];
        add(&stats, &account->minute[1]);
        if (sum(&stats) == 0)
            continue;
        recent->accounts++;
        add(&recent->all, &stats);
        recent->count =
            insert(recent->busiest, recent->count, WEIR_PRESSURE_BUSIEST, account->name, &stats);
    }
}
