/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/check with an array: up to 1,000 checks, each decided by itself, one answer.
 *
 *   read ──▶ look ──▶ queue ──▶ decided ──▶ answer ──▶ written
 *
 * All checks are read before any is queued, and the callers of all are known (look): an error
 * anywhere charges nothing. A body of more than WEIR_BATCH_SMALL bytes is copied, and the batch is
 * read, queued and answered in pieces of WEIR_PIECE_MAX checks (net/pieces.h), so that other
 * connections have their turn between; a shorter one is done at once.
 */
#ifndef WEIR_SERVER_HTTP_BATCH_H
#define WEIR_SERVER_HTTP_BATCH_H

#include "server/http/http.h"
#include "wire/json/check.h"

/* `cursor`: over the body, which is an array; nothing of it is read yet. */
void weir_check_batch_handle(struct weir_http_call *call, struct weir_check_cursor *cursor);

#endif
