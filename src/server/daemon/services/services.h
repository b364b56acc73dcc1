/* SPDX-License-Identifier: Apache-2.0 */
/* All services of the daemon (server/service.h), and what is done with each of them in turn.
 * list.c lists them: the one place that knows which features there are. */
#ifndef WEIR_SERVER_DAEMON_SERVICES_SERVICES_H
#define WEIR_SERVER_DAEMON_SERVICES_SERVICES_H

#include "server/daemon/daemon.h"
#include "server/service.h"

/* Collects the front ends of a list of services, in its order. */
void weir_services_fronts(const struct weir_service *const *services, struct weir_fronts *fronts);

/* Gives a new daemon the services of the list, but those that need one which it lacks, and their
 * front ends. */
void weir_services_take(struct weir_daemon *daemon);

/* Makes daemon->routes of the rows of all; they are free()d. Errors: WEIR_ERR_MEMORY;
 * WEIR_ERR_FULL: more than WEIR_HTTP_ROUTES_MAX. */
int weir_services_route(struct weir_daemon *daemon) __attribute__((warn_unused_result));

/* Opens them in their order. Errors: those of a service, with a text; the caller then stops and
 * closes what was opened. */
int weir_services_open(struct weir_daemon *daemon, struct weir_reason *reason)
    __attribute__((warn_unused_result));
int weir_services_start(struct weir_daemon *daemon, struct weir_reason *reason)
    __attribute__((warn_unused_result));
int weir_services_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                             struct weir_reason *reason) __attribute__((warn_unused_result));

void weir_services_drain(struct weir_daemon *daemon);

/* Those that are open, from the last to the first. */
void weir_services_stop(struct weir_daemon *daemon);
void weir_services_close(struct weir_daemon *daemon);

/* Has each look at the rules of a reload, on the background thread. Errors: the first refusal. */
int weir_services_check(struct weir_reload *reload) __attribute__((warn_unused_result));
/* Has each accept them, on the main thread. Errors: the first refusal. */
int weir_services_accept(struct weir_daemon *daemon, struct weir_reload *reload)
    __attribute__((warn_unused_result));
/* Has each take them over, before the workers, and after them. */
void weir_services_apply(struct weir_daemon *daemon, struct weir_reload *reload);
void weir_services_applied(struct weir_daemon *daemon);
/* Frees what they have read for a reload that is not applied. */
void weir_services_drop(struct weir_reload *reload);

void weir_services_tick(struct weir_daemon *daemon, uint64_t now_ns);
void weir_services_reopen(struct weir_daemon *daemon);
void weir_services_ready(const struct weir_daemon *daemon, char *text, size_t room);
void weir_services_metrics(struct weir_metrics *metrics);

#endif
