/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C while a trace is read: the reading ends where it is, and the report says so. A second one
 * ends the program at once.
 *
 * State of the process: signals have one handler. Threads: the main thread only.
 */
#ifndef WEIR_CLI_REPLAY_STOP_H
#define WEIR_CLI_REPLAY_STOP_H

#include <stdbool.h>

/* From now on SIGINT and SIGTERM end the reading. */
void replay_stop_watch(void);

/* Whether one of them came. */
bool replay_stop_asked(void);

/* The exit status then: 128 and the signal's number, as shells have it. */
int replay_stop_status(void);

#endif
