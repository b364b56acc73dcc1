/* SPDX-License-Identifier: Apache-2.0 */
/* What the background thread is to do (WEIR_WANT_... of daemon.h). The caller need not know which
 * module does it: control.c says what begins. */
#ifndef WEIR_SERVER_DAEMON_WORK_H
#define WEIR_SERVER_DAEMON_WORK_H

#include "server/daemon/daemon.h"

/* Has the background thread do something, at once or when it is free. A reload reads the rules file
 * again and hands the new rules to all workers; a file with errors is logged and changes nothing. A
 * watch reads certificates and Envoy's folder again if they have changed; errors are logged and
 * leave the old ones in use. With `wanted` 0 only what waits begins: a job calls it when it is
 * done. */
void weir_daemon_want(struct weir_daemon *daemon, unsigned wanted);

/* Once a second: logs a reload that waits long for another job (`reload_waits`), and which. */
void weir_daemon_work_tick(struct weir_daemon *daemon, uint64_t now_ns);

#endif
