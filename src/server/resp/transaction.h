/* SPDX-License-Identifier: Apache-2.0 */
/* MULTI, EXEC and DISCARD: refused, with every command between them. See resp.h. */
#ifndef WEIR_SERVER_RESP_TRANSACTION_H
#define WEIR_SERVER_RESP_TRANSACTION_H

#include "server/resp/commands.h"

/* Answers what belongs to a transaction, which is always refused: MULTI, EXEC, DISCARD, and what
 * comes between them. `command` is what the call names; NULL: none of the table. Returns whether
 * it answered; else the call is as any other. */
bool weir_resp_transaction(struct weir_resp_call *call, const struct weir_resp_command *command);

#endif
