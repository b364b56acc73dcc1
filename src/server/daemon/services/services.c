/* SPDX-License-Identifier: Apache-2.0 */
/* see services.h */
#include "server/daemon/services/services.h"

#include <stdio.h>

#include "server/adaptive/daemon.h"
#include "server/adhoc/daemon.h"
#include "server/admin/exposition.h"
#include "server/daemon/state/state.h"
#include "server/dashboard/daemon.h"
#include "server/envoy/daemon.h"
#include "server/identity/daemon.h"
#include "server/kernel/daemon.h"
#include "server/net/daemon.h"
#include "server/penalties/daemon.h"
#include "server/pressure/daemon.h"
#include "server/region/daemon.h"
#include "server/reserve/daemon.h"
#include "server/standing/daemon.h"
#include "server/sticky/daemon.h"
#include "server/stores/daemon.h"
#include "server/use/daemon.h"
#include "server/webhook/daemon.h"

/* Each after those that it needs: the table needs none, penalties need standing and the webhook,
 * the kernel standing, the dashboard use, Envoy's service the limits of requests. */
static const struct weir_service *const services[] = {
    &weir_service_stores,    &weir_service_regions,    &weir_service_sticky,
    &weir_service_state,     &weir_service_identities, &weir_service_webhook,
    &weir_service_standing,  &weir_service_kernel,     &weir_service_penalties,
    &weir_service_net,       &weir_service_adaptive,   &weir_service_use,
    &weir_service_dashboard, &weir_service_pressure,   &weir_service_reservations,
    &weir_service_adhoc,     &weir_service_envoy,
};
#define COUNT (sizeof services / sizeof *services)
_Static_assert(COUNT <= WEIR_SERVICES_MAX, "grow WEIR_SERVICES_MAX");

/* Calls a function of each service that has it. */
#define CALL_EACH(function, ...)                                                                   \
    do {                                                                                           \
        for (size_t i = 0; i < COUNT; i++)                                                         \
            if (services[i]->function)                                                             \
                services[i]->function(__VA_ARGS__);                                                \
    } while (0)

/* An error of service `i`, in words. */
static int services_fail(size_t i, int err, struct weir_reason *reason)
{
    if (!reason->text[0])
        snprintf(reason->text, sizeof reason->text, "%s: %s", services[i]->name,
                 weir_error_text(err));
    return err;
}

int weir_services_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    while (daemon->services < COUNT) {
        size_t i = daemon->services++;
        int err = services[i]->open ? services[i]->open(daemon, reason) : 0;
        if (err < 0)
            return services_fail(i, err, reason);
    }
    return 0;
}

int weir_services_start(struct weir_daemon *daemon, struct weir_reason *reason)
{
    for (size_t i = 0; i < COUNT; i++) {
        int err = services[i]->start ? services[i]->start(daemon, reason) : 0;
        if (err < 0)
            return services_fail(i, err, reason);
    }
    return 0;
}

int weir_services_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                             struct weir_reason *reason)
{
    for (size_t i = 0; i < COUNT; i++) {
        int err = services[i]->for_worker ? services[i]->for_worker(daemon, options, reason) : 0;
        if (err < 0)
            return services_fail(i, err, reason);
    }
    return 0;
}

void weir_services_stop(struct weir_daemon *daemon)
{
    for (size_t i = daemon->services; i-- > 0;)
        if (services[i]->stop)
            services[i]->stop(daemon);
}

void weir_services_close(struct weir_daemon *daemon)
{
    while (daemon->services > 0)
        if (services[--daemon->services]->close)
            services[daemon->services]->close(daemon);
}

int weir_services_check(struct weir_reload *reload)
{
    for (size_t i = 0; i < COUNT; i++) {
        int err = services[i]->check ? services[i]->check(reload->daemon, reload->rules,
                                                          &reload->read[i], &reload->reason)
                                     : 0;
        if (err < 0)
            return services_fail(i, err, &reload->reason);
    }
    return 0;
}

int weir_services_accept(struct weir_daemon *daemon, struct weir_reload *reload)
{
    for (size_t i = 0; i < COUNT; i++) {
        int err = services[i]->accept ? services[i]->accept(daemon, reload->rules) : 0;
        if (err < 0)
            return services_fail(i, err, &reload->reason);
    }
    return 0;
}

void weir_services_apply(struct weir_daemon *daemon, struct weir_reload *reload)
{
    for (size_t i = 0; i < COUNT; i++) {
        void *read = reload->read[i];
        reload->read[i] = NULL;
        if (services[i]->apply)
            services[i]->apply(daemon, reload->rules, read);
    }
}

void weir_services_applied(struct weir_daemon *daemon)
{
    CALL_EACH(applied, daemon);
}

void weir_services_drop(struct weir_reload *reload)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (reload->read[i])
            services[i]->drop(reload->read[i]);
        reload->read[i] = NULL;
    }
}

void weir_services_tick(struct weir_daemon *daemon, uint64_t now_ns)
{
    CALL_EACH(tick, daemon, now_ns);
}

void weir_services_reopen(struct weir_daemon *daemon)
{
    CALL_EACH(reopen, daemon);
}

void weir_services_ready(const struct weir_daemon *daemon, char *text, size_t room)
{
    CALL_EACH(ready, daemon, text, room);
}

void weir_services_metrics(struct weir_metrics *metrics)
{
    CALL_EACH(metrics, metrics);
}
