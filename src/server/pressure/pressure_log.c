/* SPDX-License-Identifier: Apache-2.0 */
/* See pressure_log.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/pressure/pressure_log.h"

#include "server/pressure/daemon.h"
#include "server/pressure/pressure.h"

/* --- Names ------------------------------------------------------------------------------------ */

struct names {
    const struct weir_table_account *accounts;
    const char **names;
    uint32_t count;
};

static int find_name(void *context, struct weir_limit *limit, const char *name)
{
    const struct names *names = context;
    uint64_t account = weir_table_account_name(limit->name);
    for (uint32_t i = 0; i < names->count; i++)
        if (names->accounts[i].name == account)
            names->names[i] = limit->name ? limit->name : "(commands and records)";
    return 0;
}

/* Sets the names of accounts, of which the table has only hashes: one walk over all limits. */
static void find_names(const struct weir_daemon *daemon, const struct weir_table_account *accounts,
                       uint32_t count, const char **names)
{
    struct names context = {accounts, names, count};
    for (uint32_t i = 0; i < count; i++)
        names[i] = accounts[i].name == WEIR_TABLE_OTHERS ? "(limits without a place of their own)"
                                                         : "(a limit that is gone)";
    int never = weir_rules_prepare(daemon->rules, find_name, &context);
    (void)never;
}

/* --- The log ---------------------------------------------------------------------------------- */

static void look(struct weir_daemon *daemon, uint64_t now_ns, struct weir_pressure_report *report)
{
    const struct weir_pressure_run *run = weir_daemon_pressure(daemon);
    for (uint32_t i = 0; i < weir_table_accounts(daemon->table); i++)
        weir_table_account(daemon->table, i, &run->accounts[i]);
    weir_pressure_look(run->pressure, now_ns, run->accounts, report);
}

int weir_daemon_pressure_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    uint32_t accounts = weir_table_accounts(daemon->table);
    struct weir_pressure_report none;
    struct weir_pressure_run *run = calloc(1, sizeof *run);
    if (run)
        run->accounts = calloc(accounts, sizeof *run->accounts);
    weir_own_set(daemon, WEIR_OWN_PRESSURE, run);
    int err = run && run->accounts ? weir_pressure_open(&run->pressure, accounts) : WEIR_ERR_MEMORY;
    if (err == 0)
        look(daemon, 0, &none); /* what was before is not reported */
    else
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(err));
    return err;
}

void weir_daemon_pressure_close(struct weir_daemon *daemon)
{
    struct weir_pressure_run *run = weir_daemon_pressure(daemon);
    if (!run)
        return;
    weir_pressure_close(run->pressure);
    free(run->accounts);
    free(run);
    weir_own_set(daemon, WEIR_OWN_PRESSURE, NULL);
}

static void log_stats(struct weir_log_line *line, const struct weir_table_limit_stats *stats)
{
    weir_log_number(line, "evictions", (int64_t)stats->evictions);
    weir_log_number(line, "overflows", (int64_t)stats->overflows);
}

void weir_daemon_pressure_tick(struct weir_daemon *daemon, uint64_t now_ns)
{
    const char *names[WEIR_PRESSURE_LINES];
    struct weir_pressure_report report;
    struct weir_log_line line;
    look(daemon, now_ns, &report);
    if (report.count > 0)
        find_names(daemon, report.lines, report.count, names);
    for (uint32_t i = 0; i < report.count; i++) {
        weir_log_begin(&line, &daemon->log, WEIR_LOG_WARNING, "no_room_for_keys");
        weir_log_text(&line, "limit", names[i]);
        log_stats(&line, &report.lines[i].stats);
        weir_log_text(&line, "reason",
                      "the state is full: an eviction forgives what a key has used, overflow "
                      "denies newcomers early; raise state.size");
        weir_log_end(&line);
    }
    if (report.more == 0)
        return;
    weir_log_begin(&line, &daemon->log, WEIR_LOG_WARNING, "no_room_for_keys");
    weir_log_number(&line, "more_limits", report.more);
    log_stats(&line, &report.others);
    weir_log_end(&line);
}

/* --- /readyz ---------------------------------------------------------------------------------- */

static void append(char *text, size_t room, size_t *used, const char *part)
{
    if (*used < room)
        *used += (size_t)snprintf(text + *used, room - *used, "%s", part);
}

bool weir_daemon_is_pressed(const struct weir_daemon *daemon)
{
    struct weir_pressure_recent recent;
    weir_pressure_recent(weir_daemon_pressure(daemon)->pressure, &recent);
    return recent.count > 0;
}

/* " (login 40, api 2, and 3 more limits)" */
static void append_names(const struct weir_daemon *daemon,
                         const struct weir_pressure_recent *recent, char *text, size_t room,
                         size_t *used)
{
    const char *names[WEIR_PRESSURE_BUSIEST];
    char part[128];
    find_names(daemon, recent->busiest, recent->count, names);
    for (uint32_t i = 0; i < recent->count; i++) {
        const struct weir_table_limit_stats *stats = &recent->busiest[i].stats;
        snprintf(part, sizeof part, "%s%.80s %" PRIu64, i > 0 ? ", " : " (", names[i],
                 stats->evictions + stats->overflows);
        append(text, room, used, part);
    }
    if (recent->accounts > recent->count) {
        snprintf(part, sizeof part, ", and %" PRIu32 " more limits",
                 recent->accounts - recent->count);
        append(text, room, used, part);
    }
    append(text, room, used, ")");
}

void weir_daemon_pressure_text(const struct weir_daemon *daemon, bool names, char *text,
                               size_t room)
{
    struct weir_pressure_recent recent;
    char part[128];
    size_t used = 0;
    weir_pressure_recent(weir_daemon_pressure(daemon)->pressure, &recent);
    text[0] = 0;
    snprintf(part, sizeof part,
             "no room for all keys: %" PRIu64 " evictions and %" PRIu64
             " overflows in the last two minutes",
             recent.all.evictions, recent.all.overflows);
    append(text, room, &used, part);
    if (names && recent.count > 0)
        append_names(daemon, &recent, text, room, &used);
}
