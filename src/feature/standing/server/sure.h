/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a refusal over the admin API continues, or needs a yes first: whom it would hit
 * (radius.h) against what the body of the request says.
 *
 * Threads: the main thread's.
 */
#ifndef WEIR_FEATURE_STANDING_SERVER_SURE_H
#define WEIR_FEATURE_STANDING_SERVER_SURE_H

#include <jansson.h>

#include "feature/standing/server/radius.h"
#include "server/http/http.h"

/* Whom refusing a value would hit; `text` is the value as it was given. False: nothing is known of
 * use. */
bool weir_standing_radius(const struct weir_http_call *call,
                          const struct weir_standing_value *value, struct weir_bytes text,
                          struct weir_radius *radius);

/* Whether a value may get a level. False: it is refused with 409, why, and whom it would hit. So
 * are suspended and revoked without "yes": true in the body, if what they refuse is wide
 * (WEIR_RADIUS_WIDE); with "ask": true, if it may be a slip in any way. */
bool weir_standing_is_sure(struct weir_http_call *call, const struct weir_standing_value *value,
                           struct weir_bytes text, uint8_t level, const json_t *body);

#endif
