/* SPDX-License-Identifier: Apache-2.0 */
/* What a reload cannot change. */
#ifndef WEIR_SERVER_DAEMON_SERVICES_RESTART_H
#define WEIR_SERVER_DAEMON_SERVICES_RESTART_H

#include <stdbool.h>

struct weir_daemon;

/* Logs, where a setting differs, that it counts from the next start. */
void weir_restart_note(struct weir_daemon *daemon, bool differs, const char *setting);

#endif
