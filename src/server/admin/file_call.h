/* SPDX-License-Identifier: Apache-2.0 */
/* A call of the admin listener whose answer takes files: they are read on the background thread,
 * and the call is answered when that is done.
 *
 *   handler ─weir_file_call_start─▶ thread: read ─▶ loop: answer, release
 *
 * One at a time: while a reload or another call reads, calls wait; behind
 * WEIR_BACKGROUND_QUEUE_MAX that wait, callers get 503 and try again. When the connection ends, or
 * the server stops, before the answer, only `release` is called.
 *
 * Threads: `read` is called on the background thread, all else on the loop.
 */
#ifndef WEIR_SERVER_ADMIN_FILE_CALL_H
#define WEIR_SERVER_ADMIN_FILE_CALL_H

#include <weir/error.h>

#include "server/daemon/background.h"
#include "server/http/http.h"

struct json_t;
struct weir_daemon;

/* Embedded as the first member in what the call works on. */
struct weir_file_call {
    struct weir_job job; /* first */
    struct weir_daemon *daemon;
    struct weir_slot *slot; /* NULL: its connection is gone */
    bool reading;           /* or waiting for it */
    const char *what;       /* it reads, for the log (struct weir_job) */
    void (*read)(struct weir_file_call *call);
    /* The JSON of the answer; NULL: it is 503, and *reason says why (without a text: memory was
     * out). */
    struct json_t *(*answer)(struct weir_file_call *call, struct weir_reason *reason);
    void (*release)(struct weir_file_call *call); /* frees it */
};

/* What callers read where it has no room. */
#define WEIR_FILE_CALL_FULL "files are being read; try again"

/* Whether a call may read now, or wait for it. */
bool weir_file_call_has_room(const struct weir_daemon *daemon);

/* The same; if not, the call is answered with 503. */
bool weir_file_call_may_start(struct weir_http_call *http);

/* Has `call` (with `what` and its three functions) read and answered, and released in the end,
 * whatever comes. Only after weir_file_call_may_start. */
void weir_file_call_start(struct weir_http_call *http, struct weir_file_call *call);

/* For a call with a slot of its own kind: has `call` (with all but `job`, `reading`, `answer`)
 * read; its slot waits for that as for a decision. Only with room. */
void weir_file_call_read(struct weir_file_call *call);

/* What such a slot's `drop` calls: releases it, now or when it has read. */
void weir_file_call_leave(struct weir_file_call *call);

#endif
