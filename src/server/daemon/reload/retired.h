/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that were replaced, while workers have them: kept until the last worker has let go of them,
 * and freed where no request waits. */
#ifndef WEIR_SERVER_DAEMON_RELOAD_RETIRED_H
#define WEIR_SERVER_DAEMON_RELOAD_RETIRED_H

#include "server/daemon/daemon.h"

/* Takes over the reference to rules that were just replaced. */
void weir_daemon_retire(struct weir_daemon *daemon, struct weir_rules *rules);

/* Frees rules that no worker has any more: on the background thread, whose the list is while a job
 * runs. With 100,000 limits or a million keys that takes tens of milliseconds, for which no request
 * is to wait. */
void weir_daemon_forget_rules(struct weir_daemon *daemon);
void weir_daemon_free_retired(struct weir_daemon *daemon); /* of a table that is closed */

/* Gives back the places of limits in the table: nobody decides by these rules any more, or yet. */
void weir_daemon_unpin_rules(struct weir_daemon *daemon, struct weir_rules *rules);

#endif
