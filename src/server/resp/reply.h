/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of the Redis protocol: those that are ready at once, and those of a decision that failed.
 * Replies that follow each other share a slot and its buffer. See resp.h. */
#ifndef WEIR_SERVER_RESP_REPLY_H
#define WEIR_SERVER_RESP_REPLY_H

#include "server/resp/resp.h"

/* Room for `room` bytes of the call's reply; NULL: no memory, and the connection is closed. */
char *weir_resp_begin(struct weir_resp_call *call, size_t room);
/* The reply ends here. */
void weir_resp_end(struct weir_resp_call *call, const char *end);

void weir_resp_text(struct weir_resp_call *call, const char *simple);
void weir_resp_integer(struct weir_resp_call *call, int64_t value);
void weir_resp_bulk(struct weir_resp_call *call, struct weir_bytes bytes);

/* "-" and what printf makes, cut at WEIR_RESP_ERROR_MAX; the error's code is its first word. */
#define WEIR_RESP_ERROR_MAX 512
void weir_resp_error(struct weir_resp_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* From within a slot's write: answers a decision that was refused late (weir_engine_refusal), as it
 * would have been at once. Returns whether it was; it is then given back. */
bool weir_resp_write_refusal(struct weir_slot *slot, struct weir_output *output);

/* Likewise: a number, or, where the store has failed, that. */
void weir_resp_write_count(struct weir_slot *slot, struct weir_output *output, int64_t count,
                           int error);

/* For %.*s in errors: an argument's first bytes. */
#define WEIR_RESP_SHOWN(arg) ((int)((arg).size < 128 ? (arg).size : 128)), (arg).data
void weir_resp_wrong_arity(struct weir_resp_call *call);
void weir_resp_syntax_error(struct weir_resp_call *call);

/* Times in replies: rounded up, so that a client that waits for them waits long enough; -1 for
 * never. */
int64_t weir_resp_seconds(uint64_t ns);
int64_t weir_resp_milliseconds(uint64_t ns);

#endif
