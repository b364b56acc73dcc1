/* SPDX-License-Identifier: Apache-2.0 */
/* The rules as they were loaded, and loading them again:
 *
 *   GET  /v1/rules          file, when it was loaded, reloads, the errors of the last one
 *   POST /v1/rules/reload {"by": "…"}   reads the file again, like SIGHUP; GET says how it went.
 * Who has asked is in the log and in GET; the body may be missing
 *
 * Threads: the admin worker's, except the first function.
 */
#ifndef WEIR_FEATURE_DASHBOARD_SERVER_RULES_API_H
#define WEIR_FEATURE_DASHBOARD_SERVER_RULES_API_H

#include "rules/rules.h"
#include "server/http/route.h"

/* The most that is kept of the errors of one reload. */
#define WEIR_RULES_PROBLEMS_MAX 100

/* The problems of a rules file as a text, one a line: "file:line:column: message". The caller frees
 * it. NULL: none, or no memory. Any thread. */
char *weir_rules_problems_text(const struct weir_problems *problems);

extern const struct weir_http_route weir_rules_routes[];

#endif
