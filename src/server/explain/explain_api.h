/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/explain of the admin listener: what the rules in force make of a request, which is given
 * as for /v1/check. Nothing is charged, and nothing is counted as a request.
 *
 *   worker   peek ─▶ match ─▶ peek with candidates ─▶ text ─▶ reply
 *                                                       └▶ thread: steps of penalties (a file) ─┘
 *
 * Who may read may explain. The answer has all limits that apply, and of the others the first
 * WEIR_EXPLAIN_OTHERS_MAX. With 100,000 limits the match takes the admin listener's thread some
 * milliseconds; requests have other threads.
 */
#ifndef WEIR_SERVER_EXPLAIN_EXPLAIN_API_H
#define WEIR_SERVER_EXPLAIN_EXPLAIN_API_H

#include "server/http/route.h"

/* More than a request has: 128 names and values. */
#define WEIR_EXPLAIN_BODY_MAX 65536

/* Limits that do not apply: as many as a page shows; the answer stays below 600 KiB. */
#define WEIR_EXPLAIN_OTHERS_MAX 1000

extern const struct weir_http_route weir_explain_routes[];

#endif
