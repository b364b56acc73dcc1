/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls of the admin listener have in common: JSON answers, and the key that a call names.
 */
#ifndef WEIR_SERVER_ADMIN_CALL_H
#define WEIR_SERVER_ADMIN_CALL_H

#include "server/http/http.h"

/* Reads ?key=…&plan=…, and &units=… where `units` is not NULL, into a decision on that key.
 * Errors: as weir_engine_apply_key, WEIR_ERR_SYNTAX. */
int weir_admin_read_key(struct weir_http_call *call, uint32_t rule, struct weir_decision *decision,
                        struct weir_bytes *units, struct weir_reason *reason)
    __attribute__((warn_unused_result));

struct json_t;

/* Answers with a JSON value, which it consumes; NULL: memory was out. */
void weir_admin_reply_json(struct weir_http_call *call, struct json_t *value);

#endif
