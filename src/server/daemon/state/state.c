/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a daemon: its table, in memory or in a file; see daemon.h. */
#include "server/daemon/state/state.h"

#include <stdio.h>
#include <string.h>

#include "rules/rules.h"
#include "server/daemon/clock.h"
#include "server/daemon/redis_access.h"
#include "server/daemon/services/restart.h"
#include "server/daemon/state/state_guard.h"
#include "table/file/state_file.h"

/* Buckets of the table that are looked at in one tick: some milliseconds at most. */
#define TIDY_BUCKETS 16384

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

static struct weir_table_options table_options(const struct weir_rules *rules, bool reset)
{
    const struct weir_settings *settings = weir_rules_settings(rules);
    return (struct weir_table_options){
        .path = settings->state_file,
        .bytes = settings->state_bytes,
        .span_percent = settings->state_spans,
        .span_percent_new = weir_rules_span_percent(rules),
        .owner = settings->state_owner,
        .group = settings->state_group,
        .mode = settings->state_mode,
        .reset = reset,
        .wall_ns = weir_clock_wall_ns(),
        .boot_ns = weir_clock_boot_ns(),
        .patience_ns = WEIR_STATE_PATIENCE_NS,
    };
}

int weir_daemon_check_state(const struct weir_daemon *daemon, struct weir_rules *rules,
                            struct weir_reason *reason)
{
    const struct weir_table_options options = table_options(rules, daemon->options.reset_state);
    struct weir_reason why = {{0}};
    uint32_t limits, specs;
    int err = weir_rules_distinct(rules, &limits, &specs);
    if (err == 0)
        err = weir_table_check_room(&options, limits, specs, &why);
    return err == 0 ? 0 : fail_state(options.path, err, &why, reason);
}

int weir_server_few_keys(const struct weir_rules *rules, struct weir_few_keys *few)
{
    const struct weir_table_options options = table_options(rules, false);
    struct weir_table_capacity capacity;
    int err = weir_table_plan_capacity(&options, &capacity, NULL);
    *few = (struct weir_few_keys){.count = 0};
    if (err == 0 && !weir_rules_settings(rules)->store.redis.url)
        weir_few_keys_find(few, rules, &capacity);
    return err;
}

int weir_server_capacity(const struct weir_rules *rules, uint64_t bytes,
                         struct weir_table_capacity *capacity)
{
    struct weir_table_options options = table_options(rules, false);
    if (bytes > 0) {
        options.path = NULL;
        options.bytes = bytes;
    }
    return weir_table_plan_capacity(&options, capacity, NULL);
}

void weir_daemon_log_few_keys(struct weir_daemon *daemon)
{
    struct weir_table_capacity capacity;
    struct weir_few_keys few;
    struct weir_log_line line;
    if (weir_rules_settings(daemon->rules)->store.redis.url)
        return; /* the table has what on_store_error decides */
    weir_table_capacity(daemon->table, &capacity);
    weir_few_keys_find(&few, daemon->rules, &capacity);
    for (uint32_t i = 0; i < few.listed; i++) {
        char text[WEIR_FEW_KEYS_TEXT_MAX];
        weir_few_keys_text(&few, i, text);
        weir_log_begin(&line, &daemon->log, WEIR_LOG_INFO, "few_keys");
        weir_log_text(&line, "limit", few.list[i].name);
        weir_log_number(&line, "keys", (int64_t)few.list[i].keys);
        weir_log_text(&line, "reason", text);
        weir_log_end(&line);
    }
    if (few.count == few.listed)
        return;
    weir_log_begin(&line, &daemon->log, WEIR_LOG_INFO, "few_keys");
    weir_log_number(&line, "more_limits", few.count - few.listed);
    weir_log_end(&line);
}

static int state_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    const struct weir_table_options options =
        table_options(daemon->rules, daemon->options.reset_state);
    struct weir_reason why = {{0}};
    int err = daemon->table ? 0 : weir_daemon_check_state(daemon, daemon->rules, reason);
    if (err < 0)
        return err;
    if (!daemon->table) /* else the last run has left it */
        err = weir_table_open(&daemon->table, &options, &why);
    if (err == 0 && options.reset && options.path)
        weir_log_event(&daemon->log, WEIR_LOG_INFO, "state_reset", "file", options.path);
    daemon->options.reset_state = false; /* done: a reload keeps the state */
    /* With a shared store, the state file is already the fallback beside it. */
    if (err == 0 && options.path && !weir_rules_settings(daemon->rules)->store.redis.url)
        err = weir_table_open_spare(&daemon->file.spare, daemon->table, &why);
    if (err < 0)
        return fail_state(options.path, err, &why, reason);
    weir_state_guard_set(daemon->table, options.path, &daemon->log);
    return 0;
}

int weir_daemon_reopen_table(struct weir_daemon *daemon, struct weir_reason *reason)
{
    struct weir_table_options options = table_options(daemon->rules, false);
    struct weir_table *next;
    struct weir_reason why = {{0}};
    options.copy_of = daemon->table;
    int err = weir_table_open(&next, &options, &why);
    if (err < 0)
        return fail_state(options.path, err, &why, reason);
    weir_state_guard_clear();
    weir_table_close(daemon->table);
    daemon->table = next;
    return 0;
}

static int state_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                            struct weir_reason *reason)
{
    options->table = daemon->table;
    options->spare = daemon->file.spare;
    return 0;
}

/* What a running daemon cannot change of it. */
static void state_apply(struct weir_daemon *daemon, struct weir_rules *rules, void *read)
{
    const struct weir_settings *old = weir_rules_settings(daemon->rules);
    const struct weir_settings *new = weir_rules_settings(rules);
    weir_restart_note(daemon, weir_setting_differs(old->state_file, new->state_file), "state.file");
    weir_restart_note(daemon, old->state_bytes != new->state_bytes, "state.size");
    weir_restart_note(daemon, new->state_spans != 0 && old->state_spans != new->state_spans,
                      "state.spans");
}

/* Also while nobody asks anything. */
static void state_tick(struct weir_daemon *daemon, uint64_t now_ns)
{
    weir_table_mark(daemon->table, now_ns);
    weir_table_tidy(daemon->table, now_ns, TIDY_BUCKETS);
}

/* weir keeps using the file that it has, so this does not change whether it is ready. */
static void state_ready(const struct weir_daemon *daemon, char *text, size_t room)
{
    size_t used = strlen(text);
    if (daemon->file.state == WEIR_TABLE_FILE_GONE || daemon->file.state == WEIR_TABLE_FILE_OTHER)
        snprintf(text + used, room - used, "%s the state file %s; reload to repair it",
                 strchr(text, ':') ? "," : ":",
                 daemon->file.state == WEIR_TABLE_FILE_GONE ? "is gone"
                                                            : "is not the one at its path");
}

/* The next run of this process begins with the table. */
static void state_close(struct weir_daemon *daemon)
{
    weir_table_close(daemon->file.spare);
    daemon->file.spare = NULL;
    if (daemon->next.wanted)
        return;
    weir_state_guard_clear();
    weir_table_close(daemon->table);
    daemon->table = NULL;
}

const struct weir_service weir_service_state = {
    .name = "state",
    .open = state_open,
    .for_worker = state_for_worker,
    .apply = state_apply,
    .tick = state_tick,
    .ready = state_ready,
    .close = state_close,
};
