/* What happens when somebody cuts the state file short while it is mapped: one line, and the end.
 *
 * The kernel answers a touch of a page that the file no longer has with SIGBUS. Nothing can be
 * decided without that page, and the handler can return to nothing sensible. So it writes one line
 * of the log and ends the process with WEIR_STATE_EXIT. A SIGBUS from anywhere else ends it as
 * before.
 *
 * Only programs install this; libweir never does. There is one guard a process, since a process has
 * one handler of a signal. The handler calls clock_gettime, write and _exit, which are
 * async-signal-safe.
 *
 * Threads: set and clear are the main thread's, while no other thread uses the region.
 */
#ifndef WEIR_SERVER_STATE_GUARD_H
#define WEIR_SERVER_STATE_GUARD_H

#include "server/log.h"
#include "table/state_file.h"

/* The exit status of a server whose state file was cut short or overwritten while it ran. */
#define WEIR_STATE_EXIT 3

/* Guards the region of this table, `path` being its file's; a table in private memory needs none.
 */
void weir_state_guard_set(const struct weir_table *table, const char *path,
                          const struct weir_log *log);
void weir_state_guard_clear(void);

/* Writes the line that the handler writes. */
void weir_state_guard_tell(void);

#endif
