/* SPDX-License-Identifier: Apache-2.0 */
/* What the dashboard shows of one second, as one server-sent event. It has parts, of which a view
 * asks for those that it shows; what is needed by all views is in each event: the second, the node,
 * reloads, and what is wrong.
 *
 *   whole      the newest point of the series of the whole
 *   limits     the busiest limits of that second
 *   keys       top keys of the last minute
 *   callers    who asked most in the last minute
 *   denied     the keys that were denied most in the last minute
 *   denials    the denials since the snapshot before
 *   table, store
 *
 * Its size does not depend on how many limits or keys there are: see the bounds in snapshot.c. It
 * reads counters and summaries of the main thread, and the states of the keys it names.
 *
 * Threads: the main thread's.
 */
#ifndef WEIR_FEATURE_DASHBOARD_SERVER_SNAPSHOT_H
#define WEIR_FEATURE_DASHBOARD_SERVER_SNAPSHOT_H

#include <stdbool.h>

#include <weir/bytes.h>

struct json_t;
struct weir_dashboard;

#define WEIR_SNAPSHOT_ALL 0xffu /* a bit for each part */

/* Reads "whole,limits" into bits. False: a part is not known. */
bool weir_snapshot_parts_read(struct weir_bytes text, unsigned *parts);

/* The snapshot of this second with some parts, once for all clients; NULL: no memory. The caller
 * drops it. */
struct json_t *weir_snapshot_make(struct weir_dashboard *dashboard, unsigned parts);

/* The text of the event with some of its parts, which the caller frees; NULL: no memory. */
char *weir_snapshot_text(const struct json_t *snapshot, unsigned parts);

#endif
