/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a daemon: its table, in memory or in a file; see daemon.h. */
#include <stdio.h>
#include <string.h>

#include "rules/rules.h"
#include "server/daemon/clock.h"
#include "server/daemon/daemon.h"
#include "table/state_file.h"

/* A reason that names the state file, once. */
static int fail_state(const char *path, int err, const struct weir_reason *why,
                      struct weir_reason *reason)
{
    const char *text = why->text[0] ? why->text : weir_error_text(err);
    if (!path || err == WEIR_ERR_FULL)
        snprintf(reason->text, sizeof reason->text, "state: %.240s", text);
    else if (!strncmp(text, path, strlen(path))) /* it says which file by itself */
        snprintf(reason->text, sizeof reason->text, "state file %.240s", text);
    else
        snprintf(reason->text, sizeof reason->text, "state file %.100s: %.140s", path, text);
    return err;
}

static struct weir_table_options table_options(const struct weir_daemon *daemon,
                                               const struct weir_rules *rules)
{
    const struct weir_settings *settings = weir_rules_settings(rules);
    return (struct weir_table_options){
        .path = settings->state_file,
        .bytes = settings->state_bytes,
        .span_percent = settings->state_spans,
        .span_percent_new = weir_rules_span_percent(rules),
        .reset = daemon->options.reset_state,
        .wall_ns = weir_clock_wall_ns(),
        .boot_ns = weir_clock_boot_ns(),
        .patience_ns = WEIR_STATE_PATIENCE_NS,
    };
}

int weir_daemon_check_state(const struct weir_daemon *daemon, struct weir_rules *rules,
                            struct weir_reason *reason)
{
    const struct weir_table_options options = table_options(daemon, rules);
    struct weir_reason why = {{0}};
    uint32_t limits, specs;
    int err = weir_rules_distinct(rules, &limits, &specs);
    if (err == 0)
        err = weir_table_check_room(&options, limits, specs, &why);
    return err == 0 ? 0 : fail_state(options.path, err, &why, reason);
}

int weir_daemon_open_table(struct weir_daemon *daemon, struct weir_reason *reason)
{
    const struct weir_table_options options = table_options(daemon, daemon->rules);
    struct weir_reason why = {{0}};
    int err = daemon->table ? 0 : weir_daemon_check_state(daemon, daemon->rules, reason);
    if (err < 0)
        return err;
    if (!daemon->table) /* else the last run has left it */
        err = weir_table_open(&daemon->table, &options, &why);
    if (err == 0 && options.reset && options.path)
        weir_log_event(&daemon->log, WEIR_LOG_INFO, "state_reset", "file", options.path);
    daemon->options.reset_state = false; /* done: a reload keeps the state */
    /* A store elsewhere has the state file beside it already. */
    if (err == 0 && options.path && !weir_rules_settings(daemon->rules)->store.redis.url)
        err = weir_table_open_spare(&daemon->spare, daemon->table, &why);
    if (err < 0)
        return fail_state(options.path, err, &why, reason);
    weir_state_guard_set(daemon->table, options.path, &daemon->log);
    return 0;
}

int weir_daemon_reopen_table(struct weir_daemon *daemon, struct weir_reason *reason)
{
    struct weir_table_options options = table_options(daemon, daemon->rules);
    struct weir_table *next;
    struct weir_reason why = {{0}};
    options.copy_of = daemon->table;
    options.reset = false;
    int err = weir_table_open(&next, &options, &why);
    if (err < 0)
        return fail_state(options.path, err, &why, reason);
    weir_state_guard_clear();
    weir_table_close(daemon->table);
    daemon->table = next;
    return 0;
}
