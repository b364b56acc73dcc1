/* SPDX-License-Identifier: Apache-2.0 */
/* How the rules file says which Redis it means, made into what a client of it takes.
 *
 * Pure functions; nothing is allocated.
 */
#ifndef WEIR_SERVER_DAEMON_REDIS_ACCESS_H
#define WEIR_SERVER_DAEMON_REDIS_ACCESS_H

#include "rules/rules.h"
#include "store/redis/client/url.h"

/* Fills `url` from settings with a URL, and from what they say beside it; names of files are
 * borrowed. `name` is the setting's, for `reason`. Errors: WEIR_ERR_RULES (the URL). */
int weir_redis_access_url(struct redis_url *url, const struct weir_redis_access *access,
                          const char *name, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Whether two texts of settings, either of them perhaps absent, differ. */
bool weir_setting_differs(const char *a, const char *b);

bool weir_redis_access_differs(const struct weir_redis_access *a,
                               const struct weir_redis_access *b);

#endif
