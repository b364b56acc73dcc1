/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a server now, for the first line of the dashboard: the rules that were not
 * taken, a store or a state file that is away, a table without room, limits that are scaled down, a
 * clock that was set, bans and penalties in force. Most urgent first.
 *
 * Threads: the main thread's.
 */
#ifndef WEIR_FEATURE_DASHBOARD_SERVER_TROUBLE_H
#define WEIR_FEATURE_DASHBOARD_SERVER_TROUBLE_H

#include <jansson.h>

struct weir_daemon;

/* [{"text": "…", "link": "rules", "bad": true}]; `link` is the view that says more. */
json_t *weir_trouble_json(struct weir_daemon *daemon);

#endif
