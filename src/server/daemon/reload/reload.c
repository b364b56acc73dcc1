/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: loading them, checking what concerns the daemon, handing new ones over. See daemon.h. */
#include "server/daemon/reload/reload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "feature/dashboard/server/rules_api.h"
#include "rules/follow.h"
#include "server/daemon/addresses.h"
#include "server/daemon/clock.h"
#include "server/daemon/draining.h"
#include "server/daemon/redis_access.h"
#include "server/daemon/reload/retired.h"
#include "server/daemon/services/list.h"
#include "server/daemon/services/restart.h"
#include "server/daemon/services/services.h"
#include "server/daemon/state/state.h"
#include "server/daemon/watch.h"
#include "server/daemon/work.h"
#include "store/store.h"

/* What runs without a rules file. */
static const char no_rules[] = "version: 1\nlimits: []\n";

/* A reload that takes so long is worth a line, and another one after each minute. */
#define SLOW_NS (UINT64_C(5) * 1000000000)
#define SLOW_AGAIN_NS (UINT64_C(60) * 1000000000)

static void problem_print(const struct weir_problem *problem)
{
    if (problem->line)
        fprintf(stderr, "weir: %s:%u:%u: %s\n", problem->file, problem->line, problem->column,
                problem->message);
    else
        fprintf(stderr, "weir: %s: %s\n", problem->file, problem->message);
}

static void problem_log(struct weir_log *log, const struct weir_problem *problem)
{
    struct weir_log_line line;
    weir_log_begin(&line, log, WEIR_LOG_ERROR,
                   problem->refused_from ? "rules_deprecated" : "rules_error");
    weir_log_text(&line, "file", problem->file);
    weir_log_number(&line, "line", problem->line);
    weir_log_number(&line, "column", problem->column);
    weir_log_text(&line, "message", problem->message);
    weir_log_end(&line);
}

static int load_rules(struct weir_reload *reload)
{
    struct weir_daemon *daemon = reload->daemon;
    struct weir_problems problems = {.has = weir_services_have};
    const char *config = daemon->options.config;
    const char *text = daemon->options.config_text;
    int err = config ? weir_rules_load(&reload->rules, config, &problems)
                     : weir_rules_parse(&reload->rules, text ? "(environment)" : "(no rules file)",
                                        ".", text ? text : no_rules,
                                        text ? strlen(text) : sizeof no_rules - 1, &problems);
    for (uint32_t i = 0; i < problems.count; i++)
        if (!reload->first || problems.list[i].refused_from)
            problem_log(&daemon->log, &problems.list[i]);
        else
            problem_print(&problems.list[i]);
    if (reload->first && problems.dropped)
        fprintf(stderr, "weir: %u more errors\n", problems.dropped);
    if (err < 0 && reload->first && !problems.count)
        fprintf(stderr, "weir: %s: %s\n", config, weir_error_text(err));
    if (err < 0 && !reload->first)
        reload->problems = weir_rules_problems_text(&problems);
    weir_problems_free(&problems);
    return err;
}

/* --- What concerns the daemon ----------------------------------------------------------------- */

/* A listener that others can reach says who may call, or that all may. */
static int listener_check(const struct weir_front *front, const char *address,
                          const struct weir_listener_settings *settings, struct weir_reason *reason)
{
    struct weir_endpoint endpoint;
    struct weir_reason why;
    if (weir_endpoint_parse(&endpoint, address, &why) < 0) {
        snprintf(reason->text, sizeof reason->text, "%s: %.200s", front->name, why.text);
        return WEIR_ERR_RULES;
    }
    if (endpoint.kind == WEIR_ENDPOINT_OFF || endpoint.local || settings->token || settings->open ||
        settings->tls.client_ca_file)
        return 0;
    snprintf(reason->text, sizeof reason->text,
             "%s: %.80s is not loopback: give %s a token or a tls.client_ca, or say "
             "open: true",
             front->name, address, front->setting);
    return WEIR_ERR_RULES;
}

static int file_check(const char *setting, const char *path, struct weir_reason *reason)
{
    struct weir_reason why = {{0}};
    if (!path || weir_file_check(path, &why) == 0)
        return 0;
    snprintf(reason->text, sizeof reason->text, "%s: %.220s", setting, why.text);
    return WEIR_ERR_RULES;
}

/* Of one Redis: what it says of TLS. */
static int access_check(const char *name, const struct weir_redis_access *access,
                        struct weir_reason *reason)
{
    int err = file_check(name, access->ca_file, reason);
    if (err == 0)
        err = file_check(name, access->cert_file, reason);
    return err < 0 ? err : file_check(name, access->key_file, reason);
}

static int files_check(const struct weir_settings *settings, struct weir_reason *reason)
{
    int err = access_check("store.redis.tls", &settings->store.redis, reason);
    if (err == 0)
        err = access_check("identities.redis.tls", &settings->identities.redis, reason);
    if (err == 0)
        err = access_check("sticky.tls", &settings->sticky.access, reason);
    if (err == 0)
        err = file_check("webhook.ca", settings->webhook.ca_file, reason);
    return err;
}

int weir_daemon_check(const struct weir_daemon *daemon, const struct weir_settings *settings,
                      struct weir_reason *reason)
{
    int err = files_check(settings, reason);
    for (unsigned i = 0; i < daemon->fronts.count && err == 0; i++) {
        const struct weir_front *front = daemon->fronts.list[i];
        if (!front->anybody)
            err = listener_check(front, weir_daemon_address(daemon, front, settings),
                                 weir_front_settings(front, settings), reason);
    }
    return err;
}

struct prepare_context {
    struct weir_store *store, *local;
    const struct weir_table *table;
    bool known; /* only the limits that the table knows already */
    struct weir_reason *reason;
};

/* The limit that the table is to know. */
static const struct weir_limit *table_limit(const struct weir_limit *limit)
{
    return limit->local ? limit->local : limit;
}

static int prepare_limit(void *context, struct weir_limit *limit, const char *name)
{
    struct prepare_context *prepare = context;
    struct weir_reason why = {{0}};
    if (limit->id != 0 || (prepare->known && !weir_table_knows(prepare->table, table_limit(limit))))
        return 0;
    int err = weir_store_prepare(prepare->store, prepare->local, limit, &why);
    if (err < 0)
        snprintf(prepare->reason->text, sizeof prepare->reason->text, "limit '%s': %s%s%.150s",
                 name, weir_error_text(err), why.text[0] ? ": " : "", why.text);
    return err;
}

static int forget_limit(void *context, struct weir_limit *limit, const char *name)
{
    limit->id = 0;
    return 0;
}

/* First the limits that the table knows, so that they keep their states when the list is full and
 * the others ask for the places of limits that are not in use. */
int weir_daemon_prepare(struct weir_daemon *daemon, struct weir_rules *rules,
                        struct weir_reason *reason)
{
    struct prepare_context prepare = {.store = daemon->admin->store,
                                      .local = daemon->admin->local,
                                      .table = daemon->table,
                                      .known = true,
                                      .reason = reason};
    int err = weir_rules_prepare(rules, forget_limit, NULL); /* ids of another table */
    if (err == 0)
        err = weir_rules_prepare(rules, prepare_limit, &prepare);
    prepare.known = false;
    if (err == 0)
        err = weir_rules_prepare(rules, prepare_limit, &prepare);
    if (err < 0)
        weir_daemon_unpin_rules(daemon, rules);
    return err;
}

/* --- Reload ----------------------------------------------------------------------------------- */

/* Which store nodes share, and how it is reached. Modes and tags of limits are read anew. */
static bool store_differs(const struct weir_store_settings *old,
                          const struct weir_store_settings *new)
{
    return weir_redis_access_differs(&old->redis, &new->redis) ||
           weir_setting_differs(old->prefix, new->prefix) || old->lease_ns != new->lease_ns ||
           old->remember_ns != new->remember_ns || old->deadline_ns != new->deadline_ns;
}

/* Names what a running daemon cannot change. */
static void reload_compare(struct weir_daemon *daemon, const struct weir_settings *old,
                           const struct weir_settings *new)
{
    for (unsigned i = 0; i < daemon->fronts.count; i++) {
        const struct weir_front *front = daemon->fronts.list[i];
        weir_restart_note(daemon,
                          weir_setting_differs(weir_daemon_address(daemon, front, old),
                                               weir_daemon_address(daemon, front, new)),
                          front->setting);
    }
    weir_restart_note(daemon, old->workers != new->workers && !daemon->options.workers,
                      "server.workers");
    weir_restart_note(daemon, store_differs(&old->store, &new->store),
                      new->sticky.by ? "sticky.deadline" : "store.redis");
}

static void reload_hand_over(struct weir_daemon *daemon, struct weir_rules *rules)
{
    for (unsigned i = 0; i < daemon->worker_count; i++)
        weir_worker_set_rules(daemon->workers[i], rules);
    weir_worker_set_rules(daemon->admin, rules);
    weir_daemon_retire(daemon, daemon->rules);
    daemon->rules = rules;
}

static bool state_stays(const struct weir_daemon *daemon, const struct weir_rules *rules)
{
    return !weir_setting_differs(weir_rules_settings(daemon->rules)->state_file,
                                 weir_rules_settings(rules)->state_file);
}

/* Whether the state file's path no longer names the file that is open. */
static bool state_lost(const struct weir_reload *reload)
{
    return reload->state == WEIR_TABLE_FILE_GONE || reload->state == WEIR_TABLE_FILE_OTHER;
}

/* Everything that reads files or takes long, on the background thread. */
static void reload_run(struct weir_job *job)
{
    struct weir_reload *reload = (struct weir_reload *)(void *)job; /* its first member */
    struct weir_daemon *daemon = reload->daemon;
    weir_daemon_forget_rules(daemon); /* their places in the table are free for the new ones */
    int err = load_rules(reload);
    if (err == 0)
        err = weir_daemon_check(daemon, weir_rules_settings(reload->rules), &reload->reason);
    if (err == 0) {
        const struct weir_settings *settings = weir_rules_settings(reload->rules);
        weir_certificate_watch_start(&reload->watch, &daemon->fronts, settings);
        err = weir_certificates_load(&reload->certificates, &daemon->fronts, settings,
                                     &reload->reason);
    }
    if (err == 0 && !reload->first)
        err = weir_rules_follow(reload->rules, daemon->rules);
    if (err == 0 && !reload->first)
        err = weir_services_check(reload);
    if (err == 0 && !reload->first && state_stays(daemon, reload->rules))
        reload->state = weir_table_file_state(daemon->table);
    if (err == 0 && state_lost(reload))
        err = weir_daemon_check_state(daemon, reload->rules, &reload->reason);
    else if (err == 0 && !reload->first) /* the last thing that can fail: places are taken */
        err = weir_daemon_prepare(daemon, reload->rules, &reload->reason);
    reload->err = err;
}

void weir_daemon_reload_drop(struct weir_daemon *daemon)
{
    struct weir_reload *reload = &daemon->reload;
    weir_services_drop(reload);
    weir_rules_unref(reload->rules);
    weir_certificates_unref(reload->certificates);
    free(reload->problems);
    memset(reload, 0, sizeof *reload);
}

static void reload_begin(struct weir_daemon *daemon, void (*done)(struct weir_job *job), bool first)
{
    struct weir_reload *reload = &daemon->reload;
    memset(reload, 0, sizeof *reload);
    reload->job = (struct weir_job){.what = "a reload", .run = reload_run, .done = done};
    reload->daemon = daemon;
    reload->first = first;
    reload->began_ns = weir_clock_boot_ns();
    reload->slow_ns = reload->began_ns + SLOW_NS;
    weir_background_start(daemon->background, &reload->job);
}

static void first_done(struct weir_job *job)
{
}

int weir_daemon_load(struct weir_daemon *daemon)
{
    struct weir_reload *reload = &daemon->reload;
    reload_begin(daemon, first_done, true);
    weir_background_wait(daemon->background);
    int err = reload->err;
    if (err < 0 && reload->reason.text[0])
        fprintf(stderr, "weir: %s\n", reload->reason.text);
    if (err == 0) {
        daemon->rules = reload->rules;
        daemon->certificates = reload->certificates;
        daemon->certificate_watch = reload->watch;
        reload->rules = NULL;
        reload->certificates = NULL;
    }
    weir_daemon_reload_drop(daemon);
    return err;
}

/* What the running daemon takes over, all of it quick. */
static void reload_apply(struct weir_daemon *daemon, struct weir_reload *reload)
{
    struct weir_rules *rules = reload->rules;
    reload_compare(daemon, weir_rules_settings(daemon->rules), weir_rules_settings(rules));
    daemon->certificate_watch = reload->watch;
    weir_daemon_set_certificates(daemon, reload->certificates);
    weir_services_apply(daemon, reload);
    weir_rules_inherit(rules, daemon->rules);
    reload_hand_over(daemon, rules);
    weir_services_applied(daemon);
    reload->rules = NULL;
    reload->certificates = NULL;
    daemon->loads.count++;
    daemon->loads.last_wall_ns = weir_clock_wall_ns();
}

void weir_daemon_reload_log(struct weir_daemon *daemon, const struct weir_reload *reload)
{
    struct weir_log_line line;
    bool failed = reload->err < 0;
    weir_log_begin(&line, &daemon->log, failed ? WEIR_LOG_ERROR : WEIR_LOG_INFO,
                   failed ? "reload_failed" : "reloaded");
    if (failed)
        weir_log_text(&line, "reason",
                      reload->reason.text[0] ? reload->reason.text : weir_error_text(reload->err));
    else
        weir_log_number(&line, "limits", weir_rules_count(daemon->rules));
    weir_log_number(&line, "took_ms", (int64_t)(daemon->loads.took_ns / 1000000));
    weir_log_end(&line);
}

/* The rest of a reload that has to stop the daemon first: everything is recreated under
 * the new rules, so no worker, no limit and no connection can hold on to the state that is left. */
void weir_daemon_run_again(struct weir_daemon *daemon, struct weir_reload *reload)
{
    weir_log_event(&daemon->log, WEIR_LOG_WARNING, "state_file_reopening", "file",
                   weir_rules_settings(reload->rules)->state_file);
    weir_daemon_keep_sockets(daemon, reload->rules);
    daemon->next.wanted = true;
    daemon->next.began_ns = reload->began_ns;
    daemon->next.rules = reload->rules;
    daemon->next.certificates = reload->certificates;
    daemon->certificate_watch = reload->watch;
    reload->rules = NULL;
    reload->certificates = NULL;
    weir_daemon_drain(daemon);
}

/* What the dashboard says of the last reload. */
static void keep_problems(struct weir_daemon *daemon, struct weir_reload *reload)
{
    free(daemon->loads.problems);
    daemon->loads.problems = reload->problems;
    reload->problems = NULL;
    if (reload->err < 0 && !daemon->loads.problems)
        daemon->loads.problems =
            strdup(reload->reason.text[0] ? reload->reason.text : weir_error_text(reload->err));
}

static void reload_done(struct weir_job *job)
{
    struct weir_reload *reload = (struct weir_reload *)(void *)job; /* its first member */
    struct weir_daemon *daemon = reload->daemon;
    if (!daemon->stopping && reload->err == 0 && state_lost(reload)) {
        weir_daemon_run_again(daemon, reload);
    } else if (!daemon->stopping) {
        if (reload->err == 0) {
            reload->err = weir_services_accept(daemon, reload);
            if (reload->err < 0) /* prepared, and now dropped: give their places back */
                weir_daemon_unpin_rules(daemon, reload->rules);
        }
        if (reload->err == 0)
            reload_apply(daemon, reload);
        else
            daemon->loads.failed++;
        keep_problems(daemon, reload);
        daemon->loads.took_ns = weir_clock_boot_ns() - reload->began_ns;
        weir_daemon_reload_log(daemon, reload);
    }
    weir_daemon_reload_drop(daemon);
    weir_daemon_want(daemon, 0);
}

void weir_daemon_reload_start(struct weir_daemon *daemon)
{
    reload_begin(daemon, reload_done, false);
}

void weir_daemon_reload_tick(struct weir_daemon *daemon)
{
    struct weir_reload *reload = &daemon->reload;
    uint64_t now_ns = weir_clock_boot_ns();
    if (!reload->daemon || now_ns < reload->slow_ns)
        return;
    reload->slow_ns = now_ns + SLOW_AGAIN_NS;
    struct weir_log_line line;
    weir_log_begin(&line, &daemon->log, WEIR_LOG_WARNING, "reload_slow");
    weir_log_number(&line, "since_ms", (int64_t)((now_ns - reload->began_ns) / 1000000));
    weir_log_text(&line, "reason",
                  "reading the rules, or a file that they name, takes unusually long");
    weir_log_end(&line);
}
