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

/* Answers with a JSON value, which it consumes; NULL: memory was out. */
void weir_admin_reply_json(struct weir_http_call *call, struct json_t *value);

#endif
