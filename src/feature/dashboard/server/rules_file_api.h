/* SPDX-License-Identifier: Apache-2.0 */
/* The text of the rules, as it may be shown (shown_rules.h): as it was loaded, and as the file is
 * now, so that people see what a reload would change before they ask for one.
 *
 *   GET /v1/rules/text   {"text": "…", "file": "…"}          as loaded; null: it cannot be shown
 *   GET /v1/rules/file   {"text": "…", "same": false, "errors": "…"}   as the file is now
 *
 * The background thread reads the file, because that may hang in the kernel; while it is busy the
 * answer is 503.
 *
 * Threads: the admin worker's.
 */
#ifndef WEIR_FEATURE_DASHBOARD_SERVER_RULES_FILE_API_H
#define WEIR_FEATURE_DASHBOARD_SERVER_RULES_FILE_API_H

#include "server/http/route.h"

extern const struct weir_http_route weir_rules_file_routes[];

#endif
