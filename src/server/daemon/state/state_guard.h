/* SPDX-License-Identifier: Apache-2.0 */
/* What happens when the state file is cut short or overwritten while it is mapped: one line, and
 * the end. The map of standing is repaired instead: it has a copy in memory
 * (feature/standing/mirror.h).
 *
 * The kernel answers a touch of a page that the file no longer has with SIGBUS. What is read from a
 * file that was overwritten may lead anywhere, to SIGSEGV or SIGFPE. Nothing can be
 * decided without the file, and a handler can return to nothing sensible. So it writes one line of
 * the log and ends the process with WEIR_STATE_EXIT. A signal that has nothing to do with the files
 * ends the process as before: SIGBUS outside the region and the map; the others while the header of
 * the region is what it was.
 *
 * Only programs install this; libweir never does. There is one guard a process, since a process has
 * one handler of a signal. The handler compares memory, and calls clock_gettime, write, pause and
 * _exit, which are async-signal-safe.
 *
 * Threads: set and clear are the main thread's, while no other thread uses the region.
 */
#ifndef WEIR_SERVER_DAEMON_STATE_STATE_GUARD_H
#define WEIR_SERVER_DAEMON_STATE_STATE_GUARD_H

#include <signal.h>

#include "feature/standing/standing.h"
#include "server/daemon/log.h"
#include "table/file/state_file.h"

/* The exit status of a server whose files were cut short or overwritten while it ran. */
#define WEIR_STATE_EXIT 3

/* Guards the region of this table, `path` being its file's; a table in private memory needs none.
 */
void weir_state_guard_set(const struct weir_table *table, const char *path,
                          const struct weir_log *log);
void weir_state_guard_clear(void);

/* Repairs the map of standing where its file is cut short; and ends that, before the map is closed.
 */
void weir_state_guard_standing(struct weir_standing *map, const struct weir_log *log);
void weir_state_guard_forget_standing(void);

/* All signals but those that must reach the handler: what threads other than the main one block. */
void weir_state_guard_fill(sigset_t *blocked);

/* Writes the line of WEIR_TABLE_FILE_CUT or _OVERWRITTEN that the handler writes. */
void weir_state_guard_tell(enum weir_table_file state);

#endif
