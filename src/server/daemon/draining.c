/* SPDX-License-Identifier: Apache-2.0 */
/* see draining.h */
#include "server/daemon/draining.h"

#include "server/daemon/services/services.h"

void weir_daemon_stop_all(struct weir_daemon *daemon)
{
    for (unsigned i = 0; i < daemon->worker_count; i++)
        weir_worker_stop(daemon->workers[i]);
    weir_worker_stop(daemon->admin);
}

static void on_grace(uv_timer_t *timer)
{
    struct weir_daemon *daemon = timer->data;
    weir_log_event(&daemon->log, WEIR_LOG_WARNING, "stopping_hard", "reason",
                   "requests are still open after 10 s");
    weir_daemon_stop_all(daemon);
}

void weir_daemon_drain(struct weir_daemon *daemon)
{
    daemon->stopping = true;
    if (!daemon->next.wanted)
        weir_supervisor_send(&daemon->supervisor, "STOPPING=1\nSTATUS=finishing requests");
    weir_services_drain(daemon);
    uv_timer_start(&daemon->control.grace, on_grace, WEIR_SHUTDOWN_MS, 0);
    for (unsigned i = 0; i < daemon->worker_count; i++)
        weir_worker_drain(daemon->workers[i]);
}
