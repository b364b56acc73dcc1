/* SPDX-License-Identifier: Apache-2.0 */
/* see services.h */
#include "server/daemon/services/services.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/admin/exposition.h"
#include "server/daemon/services/list.h"
#include "server/http/route.h"

/* Calls a function of each service that has it. */
#define CALL_EACH(daemon, function, ...)                                                           \
    do {                                                                                           \
        for (const struct weir_service *const *each = (daemon)->services; *each; each++)           \
            if ((*each)->function)                                                                 \
                (*each)->function(__VA_ARGS__);                                                    \
    } while (0)

/* An error of a service, in words. */
static int services_fail(const struct weir_service *service, int err, struct weir_reason *reason)
{
    if (!reason->text[0])
        snprintf(reason->text, sizeof reason->text, "%s: %s", service->name, weir_error_text(err));
    return err;
}

/* Copies the rows of a table behind those that are there. */
static uint32_t routes_add(struct weir_http_route *all, uint32_t count,
                           const struct weir_http_route *rows)
{
    for (uint32_t i = 0; rows[i].path; i++, count++)
        if (all)
            all[count] = rows[i];
    return count;
}

/* The rows of all services, one after the other, into `all`, or only counts them (NULL). */
static uint32_t routes_collect(const struct weir_daemon *daemon, struct weir_http_route *all)
{
    uint32_t count = 0;
    for (size_t i = 0; daemon->services[i]; i++)
        for (size_t j = 0; daemon->services[i]->routes && daemon->services[i]->routes[j]; j++)
            count = routes_add(all, count, daemon->services[i]->routes[j]);
    return count;
}

void weir_services_fronts(const struct weir_service *const *services, struct weir_fronts *fronts)
{
    fronts->count = 0;
    for (size_t i = 0; services[i]; i++)
        for (size_t j = 0; services[i]->fronts && services[i]->fronts[j]; j++)
            if (fronts->count < WEIR_FRONTS_MAX)
                fronts->list[fronts->count++] = services[i]->fronts[j];
}

void weir_services_take(struct weir_daemon *daemon)
{
    size_t count = 0;
    for (size_t i = 0; weir_services[i]; i++)
        if (weir_services_have(weir_services[i]->name))
            daemon->services[count++] = weir_services[i];
    daemon->services[count] = NULL;
    weir_services_fronts(daemon->services, &daemon->fronts);
}

int weir_services_route(struct weir_daemon *daemon)
{
    uint32_t count = routes_collect(daemon, NULL);
    if (count > WEIR_HTTP_ROUTES_MAX)
        return WEIR_ERR_FULL;
    daemon->routes = calloc(count + 1, sizeof *daemon->routes);
    if (!daemon->routes)
        return WEIR_ERR_MEMORY;
    routes_collect(daemon, daemon->routes);
    return 0;
}

int weir_services_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    int err = weir_services_route(daemon);
    if (err < 0)
        snprintf(reason->text, sizeof reason->text, "routes: %s", weir_error_text(err));
    while (err == 0 && daemon->services[daemon->services_open]) {
        const struct weir_service *service = daemon->services[daemon->services_open++];
        err = service->open ? service->open(daemon, reason) : 0;
        if (err < 0)
            return services_fail(service, err, reason);
    }
    return err;
}

int weir_services_start(struct weir_daemon *daemon, struct weir_reason *reason)
{
    for (size_t i = 0; daemon->services[i]; i++) {
        const struct weir_service *service = daemon->services[i];
        int err = service->start ? service->start(daemon, reason) : 0;
        if (err < 0)
            return services_fail(service, err, reason);
    }
    return 0;
}

int weir_services_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                             struct weir_reason *reason)
{
    for (size_t i = 0; daemon->services[i]; i++) {
        const struct weir_service *service = daemon->services[i];
        int err = service->for_worker ? service->for_worker(daemon, options, reason) : 0;
        if (err < 0)
            return services_fail(service, err, reason);
    }
    return 0;
}

void weir_services_drain(struct weir_daemon *daemon)
{
    CALL_EACH(daemon, drain, daemon);
}

void weir_services_stop(struct weir_daemon *daemon)
{
    for (size_t i = daemon->services_open; i-- > 0;)
        if (daemon->services[i]->stop)
            daemon->services[i]->stop(daemon);
}

void weir_services_close(struct weir_daemon *daemon)
{
    while (daemon->services_open > 0) {
        const struct weir_service *service = daemon->services[--daemon->services_open];
        if (service->close)
            service->close(daemon);
    }
    free(daemon->routes);
    daemon->routes = NULL;
}

int weir_services_check(struct weir_reload *reload)
{
    const struct weir_service *const *services = reload->daemon->services;
    for (size_t i = 0; services[i]; i++) {
        int err = services[i]->check ? services[i]->check(reload->daemon, reload->rules,
                                                          &reload->read[i], &reload->reason)
                                     : 0;
        if (err < 0)
            return services_fail(services[i], err, &reload->reason);
    }
    return 0;
}

int weir_services_accept(struct weir_daemon *daemon, struct weir_reload *reload)
{
    for (size_t i = 0; daemon->services[i]; i++) {
        const struct weir_service *service = daemon->services[i];
        int err = service->accept ? service->accept(daemon, reload->rules) : 0;
        if (err < 0)
            return services_fail(service, err, &reload->reason);
    }
    return 0;
}

void weir_services_apply(struct weir_daemon *daemon, struct weir_reload *reload)
{
    for (size_t i = 0; daemon->services[i]; i++) {
        void *read = reload->read[i];
        reload->read[i] = NULL;
        if (daemon->services[i]->apply)
            daemon->services[i]->apply(daemon, reload->rules, read);
    }
}

void weir_services_applied(struct weir_daemon *daemon)
{
    CALL_EACH(daemon, applied, daemon);
}

void weir_services_drop(struct weir_reload *reload)
{
    for (size_t i = 0; reload->daemon && reload->daemon->services[i]; i++) {
        if (reload->read[i])
            reload->daemon->services[i]->drop(reload->read[i]);
        reload->read[i] = NULL;
    }
}

void weir_services_tick(struct weir_daemon *daemon, uint64_t now_ns)
{
    CALL_EACH(daemon, tick, daemon, now_ns);
}

void weir_services_reopen(struct weir_daemon *daemon)
{
    CALL_EACH(daemon, reopen, daemon);
}

void weir_services_ready(const struct weir_daemon *daemon, char *text, size_t room)
{
    CALL_EACH(daemon, ready, daemon, text, room);
}

void weir_services_metrics(struct weir_metrics *metrics)
{
    CALL_EACH(metrics->daemon, scrape, metrics->daemon);
    for (size_t i = 0; metrics->daemon->services[i]; i++) {
        const struct weir_service *service = metrics->daemon->services[i];
        for (size_t j = 0; service->metrics && service->metrics[j].rows; j++)
            weir_metrics_table(metrics, &service->metrics[j]);
        if (service->metrics_text)
            service->metrics_text(metrics);
    }
}
