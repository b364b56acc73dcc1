/* SPDX-License-Identifier: Apache-2.0 */
/* see listening.h */
#include "server/daemon/listening.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "feature/identity/server/daemon.h"
#include "feature/region/server/daemon.h"
#include "feature/region/server/lenders.h"
#include "feature/sticky/server/daemon.h"
#include "feature/sticky/store/sticky.h"
#include "server/daemon/addresses.h"
#include "server/net/files.h"
#include "server/stores/daemon.h"

/* Files that weir opens when its connections may have taken all others: of a loop (epoll, a pipe,
 * an eventfd, its place in the state file), with a shared store (connections to its servers),
 * with callers in Redis (likewise, and to Sentinels); and of the process: signals, the watch, a
 * reload (rules, keys and certificates at a time), webhooks, a connection that is closed at once.
 */
#define FILES_OF_LOOP 5
#define FILES_OF_STORE 16
#define FILES_OF_PEERS (2 * STICKY_PEERS_MAX) /* also those of a list that has just changed */
#define FILES_OF_DIRECTORY 8
#define FILES_OF_PROCESS 16

unsigned weir_listening_workers(const struct weir_daemon *daemon)
{
    unsigned wanted = daemon->options.workers;
    if (!wanted)
        wanted = weir_rules_settings(daemon->rules)->workers;
    if (!wanted)
        wanted = uv_available_parallelism();
    return wanted < WEIR_WORKERS_MAX ? wanted : WEIR_WORKERS_MAX;
}

static void log_listening(struct weir_daemon *daemon, const char *front,
                          const struct weir_endpoint *endpoint)
{
    if (endpoint->kind == WEIR_ENDPOINT_OFF)
        return;
    char address[WEIR_ENDPOINT_TEXT_MAX];
    struct weir_log_line line;
    weir_endpoint_format(endpoint, address);
    weir_log_begin(&line, &daemon->log, WEIR_LOG_INFO, "listening");
    weir_log_text(&line, "front", front);
    weir_log_text(&line, "address", address);
    weir_log_end(&line);
}

/* One front end's sockets: one a worker, or the admin worker's one. */
struct listening {
    const struct weir_front *front;
    const char *address;
    struct weir_place *place;
    struct weir_worker *const *workers;
    unsigned count, bound; /* bound: sockets that no worker has yet */
    bool passed;           /* they are a supervisor's, too */
    int fds[WEIR_WORKERS_MAX];
};

static bool is_admin(const struct listening *listening)
{
    return listening->front->kind == WEIR_LISTENER_ADMIN;
}

/* All of them, by the rules of the daemon. */
static unsigned listenings_fill(struct weir_daemon *daemon, struct listening all[WEIR_FRONTS_MAX])
{
    const struct weir_settings *settings = weir_rules_settings(daemon->rules);
    for (unsigned i = 0; i < daemon->fronts.count; i++) {
        const struct weir_front *front = daemon->fronts.list[i];
        bool admin = front->kind == WEIR_LISTENER_ADMIN;
        all[i] = (struct listening){.front = front,
                                    .address = weir_daemon_address(daemon, front, settings),
                                    .place = &daemon->places[i],
                                    .workers = admin ? &daemon->admin : daemon->workers,
                                    .count = admin ? 1 : daemon->worker_count};
    }
    return daemon->fronts.count;
}

static void log_few_files(struct weir_daemon *daemon, const struct weir_files *files,
                          const struct weir_files_plan *plan)
{
    char text[256];
    struct weir_log_line line;
    snprintf(text, sizeof text,
             "the limit of open files leaves %u connections to a listener, and %u to an admin "
             "listener: raise it (ulimit -n, LimitNOFILE=); from %llu on it limits nothing",
             plan->decisions.max, plan->admin.max, (unsigned long long)plan->full);
    weir_log_begin(&line, &daemon->log, WEIR_LOG_WARNING, "few_open_files");
    weir_log_number(&line, "limit", (int64_t)files->limit);
    weir_log_text(&line, "reason", text);
    weir_log_end(&line);
}

/* What weir will have open beside connections, on top of what is open now. */
static uint64_t files_to_come(const struct weir_daemon *daemon, uint32_t workers)
{
    uint64_t of_worker = FILES_OF_LOOP + (weir_daemon_shared(daemon) ? FILES_OF_STORE : 0) +
                         (weir_daemon_sticky(daemon) ? FILES_OF_PEERS : 0) +
                         weir_lenders_count(weir_daemon_lenders(daemon)) * FILES_OF_STORE +
                         (weir_daemon_directories(daemon) ? FILES_OF_DIRECTORY : 0);
    return FILES_OF_PROCESS + (workers + 1) * of_worker; /* and the admin worker */
}

/* Gives every listener its pool of connections. Errors: WEIR_ERR_FULL. */
int weir_listening_plan(struct weir_daemon *daemon, struct weir_reason *reason)
{
    struct listening all[WEIR_FRONTS_MAX];
    struct weir_files files = {.limit = weir_files_raise_limit(),
                               .workers = weir_listening_workers(daemon)};
    struct weir_files_plan plan;
    files.taken = weir_files_count() + files_to_come(daemon, files.workers);
    unsigned count = listenings_fill(daemon, all);
    for (unsigned i = 0; i < count; i++) {
        bool admin = is_admin(&all[i]);
        if (!strcmp(all[i].address, "off"))
            continue;
        files.admin_listeners += admin;
        files.listeners += !admin;
        files.taken += admin ? 1 : files.workers;
        files.taken -= daemon->places[i].kept.count; /* open already */
    }
    uint64_t passed = daemon->supervisor.passed_count; /* likewise */
    files.taken -= passed < files.taken ? passed : files.taken;
    if (weir_files_plan(&files, &plan) < 0) {
        snprintf(reason->text, sizeof reason->text,
                 "the limit of open files is %llu, and at least %llu are needed for %u workers: "
                 "raise it (ulimit -n, LimitNOFILE=)",
                 (unsigned long long)files.limit, (unsigned long long)plan.least, files.workers);
        return WEIR_ERR_FULL;
    }
    for (unsigned i = 0; i < count; i++) {
        bool admin = is_admin(&all[i]);
        all[i].place->pool.max = admin ? plan.admin.max : plan.decisions.max;
        all[i].place->pool.refusals = admin ? plan.admin.refusals : plan.decisions.refusals;
    }
    if (files.listeners > 0 && plan.decisions.max < WEIR_CONNECTIONS_FEW)
        log_few_files(daemon, &files, &plan);
    return 0;
}

/* Takes the sockets that the last run has left, if their number is right: connections that have
 * come meanwhile wait in them. */
static bool listening_take(struct listening *listening, struct weir_kept_sockets *kept)
{
    if (kept->count != listening->count)
        return false;
    listening->place->endpoint = kept->endpoint;
    memcpy(listening->fds, kept->fds, sizeof kept->fds);
    listening->bound = kept->count;
    kept->count = 0;
    return true;
}

/* Takes the sockets that a supervisor has passed for this address. Where they are fewer than the
 * workers, several workers share one; the connections of those that are too many are lost. */
static int listening_adopt(struct listening *listening, struct weir_supervisor *supervisor,
                           struct weir_reason *reason)
{
    struct weir_endpoint endpoint;
    int err = weir_endpoint_parse(&endpoint, listening->address, reason);
    if (err < 0 || endpoint.kind == WEIR_ENDPOINT_OFF)
        return err;
    unsigned taken = weir_supervisor_take(supervisor, &endpoint, listening->fds, listening->count);
    for (unsigned i = taken; taken > 0 && i < listening->count; i++) {
        listening->fds[i] = fcntl(listening->fds[i % taken], F_DUPFD_CLOEXEC, 0);
        if (listening->fds[i] < 0) {
            listening->bound = i;
            snprintf(reason->text, sizeof reason->text, "cannot take over a socket: %s",
                     strerror(errno));
            return WEIR_ERR_IO;
        }
    }
    if (taken > 0) {
        listening->place->endpoint = endpoint;
        listening->bound = listening->count;
        listening->passed = true;
    }
    return 0;
}

static int listening_bind(struct listening *listening, struct weir_reason *reason)
{
    int err = weir_endpoint_parse(&listening->place->endpoint, listening->address, reason);
    if (err < 0 || listening->place->endpoint.kind == WEIR_ENDPOINT_OFF)
        return err;
    err = weir_endpoint_bind(&listening->place->endpoint, listening->fds, listening->count, reason);
    if (err == 0)
        listening->bound = listening->count;
    return err;
}

static int listening_start(struct weir_daemon *daemon, struct listening *listening,
                           struct weir_reason *reason)
{
    const struct weir_front *front = listening->front;
    void *server = front->server ? front->server(daemon) : daemon;
    int err = 0;
    while (err == 0 && listening->bound) {
        const struct weir_listening common = {front, &listening->place->endpoint,
                                              &listening->place->pool, server};
        unsigned i = --listening->bound;
        err = weir_worker_listen(listening->workers[i], &common, listening->fds[i], reason);
    }
    return err;
}

/* Two fronts on one port would each get some of the other's connections. */
static int listenings_apart(const struct listening *all, unsigned count, struct weir_reason *reason)
{
    for (unsigned i = 0; i < count; i++) {
        for (unsigned j = 0; j < i; j++) {
            if (!weir_endpoint_overlap(&all[j].place->endpoint, &all[i].place->endpoint))
                continue;
            char text[WEIR_ENDPOINT_TEXT_MAX];
            weir_endpoint_format(&all[i].place->endpoint, text);
            snprintf(reason->text, sizeof reason->text,
                     "cannot listen on %s: another listener of this server has the port", text);
            return WEIR_ERR_IO;
        }
    }
    return 0;
}

static void kept_close(struct weir_kept_sockets *kept)
{
    while (kept->count)
        close(kept->fds[--kept->count]);
}

/* A copy of each worker's socket of this listener; none, where one cannot be made. */
static void listening_keep(const struct listening *listening, struct weir_kept_sockets *kept)
{
    kept->endpoint = listening->place->endpoint;
    for (unsigned i = 0; i < listening->count; i++) {
        const struct weir_listener *listener;
        int fd = -1;
        for (unsigned j = 0; (listener = weir_worker_listener(listening->workers[i], j)); j++)
            if (listener->front == listening->front)
                fd = fcntl(listener->fd, F_DUPFD_CLOEXEC, 0);
        if (fd < 0) {
            kept_close(kept);
            return;
        }
        kept->fds[kept->count++] = fd;
    }
}

void weir_daemon_keep_sockets(struct weir_daemon *daemon, const struct weir_rules *next)
{
    struct listening before[WEIR_FRONTS_MAX], after[WEIR_FRONTS_MAX];
    struct weir_rules *rules = daemon->rules;
    unsigned count = listenings_fill(daemon, before);
    daemon->rules = (struct weir_rules *)(uintptr_t)next; /* only read */
    (void)listenings_fill(daemon, after);
    daemon->rules = rules;
    for (unsigned i = 0; i < count; i++)
        if (before[i].place->endpoint.kind != WEIR_ENDPOINT_OFF &&
            !strcmp(before[i].address, after[i].address))
            listening_keep(&before[i], &daemon->places[i].kept);
}

static void log_unused(struct weir_daemon *daemon)
{
    unsigned unused = weir_supervisor_drop(&daemon->supervisor);
    if (unused == 0)
        return;
    struct weir_log_line line;
    weir_log_begin(&line, &daemon->log, WEIR_LOG_WARNING, "passed_sockets_unused");
    weir_log_number(&line, "count", unused);
    weir_log_text(&line, "reason",
                  "no listener of the rules has their address, or there are fewer workers");
    weir_log_end(&line);
}

/* Binds first, all of them, then listens: a port in use is found before anybody is served. */
int weir_listening_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    struct listening all[WEIR_FRONTS_MAX];
    int err = 0;
    unsigned count = listenings_fill(daemon, all);
    for (unsigned i = 0; i < count; i++)
        if (!listening_take(&all[i], &daemon->places[i].kept))
            kept_close(&daemon->places[i].kept);
    for (unsigned i = 0; i < count && err == 0; i++)
        err = all[i].bound ? 0 : listening_adopt(&all[i], &daemon->supervisor, reason);
    log_unused(daemon);
    for (unsigned i = 0; i < count && err == 0; i++)
        err = all[i].bound ? 0 : listening_bind(&all[i], reason);
    if (err == 0)
        err = listenings_apart(all, count, reason);
    bool bound = err == 0;
    for (unsigned i = 0; i < count && err == 0; i++)
        err = listening_start(daemon, &all[i], reason);
    for (unsigned i = 0; i < count && err < 0; i++) {
        if (!bound && all[i].bound && !all[i].passed)
            weir_endpoint_remove(&all[i].place->endpoint);
        while (all[i].bound)
            close(all[i].fds[--all[i].bound]);
    }
    return err;
}

void weir_listening_leave(struct weir_daemon *daemon)
{
    struct listening all[WEIR_FRONTS_MAX];
    unsigned count = listenings_fill(daemon, all);
    for (unsigned i = 0; i < count && daemon->supervisor.notify >= 0; i++) {
        const struct weir_listener *listener;
        unsigned found = 0;
        for (unsigned worker = 0; worker < all[i].count; worker++)
            for (unsigned j = 0; (listener = weir_worker_listener(all[i].workers[worker], j)); j++)
                if (listener->front == all[i].front)
                    all[i].fds[found++] = listener->fd;
        weir_supervisor_keep(&daemon->supervisor, all[i].front->name, all[i].fds, found);
    }
}

void weir_listening_log(struct weir_daemon *daemon)
{
    for (unsigned i = 0; i < daemon->fronts.count; i++)
        log_listening(daemon, daemon->fronts.list[i]->name, &daemon->places[i].endpoint);
}

int weir_listening_check(struct weir_daemon *daemon, struct weir_reason *reason)
{
    struct listening all[WEIR_FRONTS_MAX];
    int err = 0;
    unsigned count = listenings_fill(daemon, all);
    for (unsigned i = 0; i < count && err == 0; i++)
        err = weir_endpoint_parse(&all[i].place->endpoint, all[i].address, reason);
    return err < 0 ? err : listenings_apart(all, count, reason);
}

void weir_listening_drop(struct weir_daemon *daemon)
{
    for (unsigned i = 0; i < daemon->fronts.count; i++)
        kept_close(&daemon->places[i].kept);
}
