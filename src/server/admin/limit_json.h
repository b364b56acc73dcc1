/* SPDX-License-Identifier: Apache-2.0 */
/* Limits as GET /v1/limits lists them. See docs/http-api.md.
 *
 * Threads: the admin worker's.
 */
#ifndef WEIR_SERVER_ADMIN_LIMIT_JSON_H
#define WEIR_SERVER_ADMIN_LIMIT_JSON_H

#include <jansson.h>

#include "server/daemon/daemon.h"

/* One limit of the rules in use, and what it has counted; NULL: memory was out. */
json_t *weir_limit_json(struct weir_daemon *daemon, uint32_t rule);

/* The classes of rules with `priority`; NULL: memory was out. */
json_t *weir_priority_json(const struct weir_rules *rules);

/* What was denied for the standing of callers, listed beside the limits; NULL: memory was out. */
json_t *weir_standing_limit_json(const struct weir_daemon *daemon);

#endif
