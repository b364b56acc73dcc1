/* SPDX-License-Identifier: Apache-2.0 */
/* What the dashboard shows of one second, as one server-sent event: the newest point of the series
 * of the whole, the busiest limits of that second, top consumers and top denied of the last minute,
 * the denials since the snapshot before, table, store, and reloads.
 *
 * Its size does not depend on how many limits or keys there are: see the bounds in snapshot.c. It
 * reads counters and summaries of the main thread, and the states of the keys it names.
 *
 * Threads: the main thread's.
 */
#ifndef WEIR_FEATURE_DASHBOARD_SERVER_SNAPSHOT_H
#define WEIR_FEATURE_DASHBOARD_SERVER_SNAPSHOT_H

struct weir_dashboard;

/* The text of the event, which the caller frees; NULL: no memory. */
char *weir_snapshot_text(struct weir_dashboard *dashboard);

#endif
