/* SPDX-License-Identifier: Apache-2.0 */
/* see restart.h */
#include "server/daemon/services/restart.h"

#include "server/daemon/daemon.h"

void weir_restart_note(struct weir_daemon *daemon, bool differs, const char *setting)
{
    if (differs)
        weir_log_event(&daemon->log, WEIR_LOG_WARNING, "restart_needed", "setting", setting);
}
