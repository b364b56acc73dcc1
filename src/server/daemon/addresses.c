/* SPDX-License-Identifier: Apache-2.0 */
/* see addresses.h */
#include "server/daemon/addresses.h"

/* What the command line says; NULL: nothing. */
static const char *option_of(const struct weir_daemon *daemon, const struct weir_front *front)
{
    const char *start = (const char *)&daemon->options;
    return front->option ? *(const char *const *)(const void *)(start + front->option) : NULL;
}

const char *weir_daemon_address(const struct weir_daemon *daemon, const struct weir_front *front,
                                const struct weir_settings *settings)
{
    if (front->address)
        return front->address(daemon, settings);
    const char *given = option_of(daemon, front);
    return given ? given : weir_front_address(front, settings);
}

bool weir_daemon_listens(const struct weir_daemon *daemon, const struct weir_front *front)
{
    for (unsigned i = 0; i < daemon->fronts.count; i++)
        if (daemon->fronts.list[i] == front)
            return daemon->places[i].endpoint.kind != WEIR_ENDPOINT_OFF;
    return false;
}

void weir_daemon_remove_sockets(const struct weir_daemon *daemon)
{
    for (unsigned i = 0; i < daemon->fronts.count && !daemon->supervisor.holds; i++)
        weir_endpoint_remove(&daemon->places[i].endpoint);
}

uint64_t weir_daemon_connections_max(const struct weir_daemon *daemon)
{
    const struct weir_listener *listener;
    uint64_t max = 0;
    for (unsigned i = 0; (listener = weir_worker_listener(daemon->workers[0], i)); i++)
        max += listener->pool->max;
    return max;
}
