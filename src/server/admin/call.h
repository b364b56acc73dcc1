/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls of the admin listener have in common: JSON answers, and the key that a call names.
 */
#ifndef WEIR_SERVER_ADMIN_CALL_H
#define WEIR_SERVER_ADMIN_CALL_H

#include "server/http/http.h"

/* What a request about one key's state says besides the key. */
struct weir_admin_ask {
    bool grants;                      /* in: `units` and `expires` are parameters, too */
    bool above;                       /* `above=true`: about what was bought above the limit */
    struct weir_bytes units, expires; /* data == NULL: not given */
};

/* Reads ?key=…&plan=…&user=…&above=… into a decision on that key, or on what was bought above its
 * limit. Errors: as weir_engine_apply_key, WEIR_ERR_SYNTAX. */
int weir_admin_read_key(struct weir_http_call *call, uint32_t rule, struct weir_decision *decision,
                        struct weir_admin_ask *ask, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Answers with what is left of the units that were bought above a limit, and gives the decision
 * back. `begin` is what the JSON begins with: "{" or more. */
void weir_admin_write_bought(struct weir_slot *slot, struct weir_output *output, const char *begin);

struct json_t;
struct weir_rules;

/* The name of a limit that a name may be a mistyping of; NULL: none. Of many limits the first
 * WEIR_ADMIN_NEAR_MAX are looked at. */
#define WEIR_ADMIN_NEAR_MAX 4096
const char *weir_admin_nearest_limit(const struct weir_rules *rules, struct weir_bytes name);

/* Answers that no limit has that name, with the nearest. */
void weir_admin_refuse_limit(struct weir_http_call *call, struct weir_bytes name);

/* Answers with a JSON value, which it consumes; NULL: memory was out. */
void weir_admin_reply_json(struct weir_http_call *call, struct json_t *value);

/* The same for a slot that waited, from within its write: `slot->detail` is the route. */
void weir_admin_write_json(struct weir_slot *slot, struct weir_output *output,
                           enum weir_http_status status, struct json_t *value);

#endif
