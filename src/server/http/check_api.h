/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/check and /v1/release. See docs/http-api.md. */
#ifndef WEIR_SERVER_HTTP_CHECK_API_H
#define WEIR_SERVER_HTTP_CHECK_API_H

#include "server/http/http.h"

void weir_check_handle(struct weir_http_call *call);
void weir_release_handle(struct weir_http_call *call);

/* Makes the decision that http->check asks for, not yet queued. Errors: as weir_engine_apply_rules,
 * WEIR_ERR_SYNTAX. */
int weir_check_decision(struct weir_http_call *call, struct weir_decision **out,
                        struct weir_reason *reason) __attribute__((warn_unused_result));

/* The same for what is no reservation. */
int weir_check_only_decision(struct weir_http_call *call, struct weir_decision **out,
                             struct weir_reason *reason) __attribute__((warn_unused_result));

/* Writes http->answer, made from the slot's decision, as /v1/check does: status, rate-limit fields
 * in the dialects of `rules`, body; `added`, the text of more members with a comma before each,
 * goes before the closing brace of an answer that allows. Gives the decision back. */
void weir_check_write_answer(struct weir_slot *slot, struct weir_output *output,
                             const struct weir_rules *rules, struct weir_bytes added);

#endif
