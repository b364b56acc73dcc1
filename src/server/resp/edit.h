/* SPDX-License-Identifier: Apache-2.0 */
/* Building an edit (core/check.h): a decision on counters, and the buffer that holds what it does
 * and what it finds. See resp.h.
 *
 * Counters share the states of windows (INCREX): a key is one or the other. */
#ifndef WEIR_SERVER_RESP_EDIT_H
#define WEIR_SERVER_RESP_EDIT_H

#include "server/resp/resp.h"

struct weir_resp_build {
    struct weir_resp_call *call;
    struct weir_decision *decision;
    struct weir_buffer *buffer;      /* begins with a struct weir_edit */
    const struct weir_limit *narrow; /* of counters */
};

/* Whether counters are kept here. False: it was answered, because nodes share the store. */
bool weir_resp_has_counters(struct weir_resp_call *call);

/* Begins an edit whose data, of `size` bytes and zeroed, begin with a struct weir_edit. Returns the
 * data; NULL: it was answered. */
void *weir_resp_build_begin(struct weir_resp_build *build, struct weir_resp_call *call, size_t size,
                            void (*run)(struct weir_edit *, struct weir_edit_state *, uint32_t,
                                        uint64_t));

/* The number of a counter among the states of the edit, which has each key once; -1:
 * WEIR_CHECKS_MAX others are there. */
int weir_resp_build_key(struct weir_resp_build *build, struct weir_bytes key);
/* The same for the state of a bucket or a window of this limit, which is a cell. */
int weir_resp_build_state(struct weir_resp_build *build, enum weir_resp_kind kind,
                          struct weir_bytes key, const struct weir_limit *limit);

/* Queues it; `write` is called when it is decided, ends with weir_resp_edit_finish, and finds the
 * data by weir_resp_edit_data. */
void weir_resp_build_wait(struct weir_resp_build *build,
                          void (*write)(struct weir_slot *, struct weir_output *));
/* Gives all back, undecided. */
void weir_resp_build_drop(struct weir_resp_build *build);

static inline void *weir_resp_edit_data(const struct weir_slot *slot)
{
    return slot->buffer->data;
}

/* From within a slot's write: the error line of an edit that was not made, because the store failed
 * or has no room; NULL: it was made. The result is static or in `text`. */
const char *weir_resp_edit_failure(const struct weir_slot *slot, char text[WEIR_RESP_PROBLEM_MAX]);
void weir_resp_edit_finish(struct weir_slot *slot);

#endif
