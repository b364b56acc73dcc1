/* SPDX-License-Identifier: Apache-2.0 */
/* The page of the dashboard: / and /dashboard/NAME. The files are the same for everybody and say
 * nothing about this server, so that the routes are public; what the page shows it asks the API
 * for.
 *
 * Threads: pure.
 */
#ifndef WEIR_FEATURE_DASHBOARD_SERVER_DASHBOARD_PAGE_H
#define WEIR_FEATURE_DASHBOARD_SERVER_DASHBOARD_PAGE_H

#include "server/admin/page_files.h"
#include "server/http/route.h"

extern const struct weir_page_files weir_dashboard_page_files;

/* Where there is Envoy's service, / is its list of paths for clients that do not accept HTML. */
extern const struct weir_http_route weir_dashboard_page_routes[];

#endif
