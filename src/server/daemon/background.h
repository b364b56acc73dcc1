/* SPDX-License-Identifier: Apache-2.0 */
/* One thread beside a loop, for work that may take long or hang in the kernel: reading files.
 *
 *   loop   weir_background_start ─▶ thread: job->run ─▶ loop: job->done
 *
 * One job at a time. The caller remembers what else to do and starts it from `done`,
 * so that requests which come meanwhile become one job. Jobs that are queued begin after that, in
 * their order.
 *
 * A call that hangs in the kernel cannot be ended from outside. So weir_background_close waits for
 * a bounded time; a thread that is still busy then is left as it is, with all that its job uses,
 * and the process ends by _exit.
 *
 * Threads: start, wait, close and `done` belong to the thread that opened it, the loop's.
 */
#ifndef WEIR_SERVER_DAEMON_BACKGROUND_H
#define WEIR_SERVER_DAEMON_BACKGROUND_H

#include <stdbool.h>
#include <uv.h>

/* Jobs that may be queued: a page's readers do not pile up behind a disk that hangs. */
#define WEIR_BACKGROUND_QUEUE_MAX 32

struct weir_background;

/* Embedded in what the job works on, which is the thread's from start until done. */
struct weir_job {
    const char *what;                   /* it does, for the log: "a look at certificates" */
    void (*run)(struct weir_job *job);  /* on the thread */
    void (*done)(struct weir_job *job); /* on the loop */
    void (*drop)(struct weir_job *job); /* at a close, in place of `done`; NULL: none */
    struct weir_job *next;              /* of the queue */
};

/* Starts the thread, which blocks signals (state_guard.h). Errors: WEIR_ERR_MEMORY. */
int weir_background_open(struct weir_background **background) __attribute__((warn_unused_result));

/* Whether a job is started and not done. */
bool weir_background_busy(const struct weir_background *background);

/* What the job that is busy does; "" where none is. */
const char *weir_background_what(const struct weir_background *background);

/* Starts a job; not while one is busy. */
void weir_background_start(struct weir_background *background, struct weir_job *job);

/* Whether another job may be queued. */
bool weir_background_has_room(const struct weir_background *background);

/* Starts a job, at once or when those before it are done; only while there is room. */
void weir_background_queue(struct weir_background *background, struct weir_job *job);

/* Before there is a loop: waits until the job has run, and calls its `done`. */
void weir_background_wait(struct weir_background *background);

/* From now on, `done` is called on this loop. Errors: WEIR_ERR_IO. */
int weir_background_join_loop(struct weir_background *background, uv_loop_t *loop)
    __attribute__((warn_unused_result));

/* Ends the thread, and waits so long at most for a job, whose `done` is not called any more: a job
 * that has ended, or never began, is dropped, and so are those that are queued. A loop that it has
 * joined has either closed all its handles before, or must run once more: it holds the memory until
 * then. False: the job hangs, and nothing is freed. NULL is allowed. */
bool weir_background_close(struct weir_background *background, unsigned patience_ms)
    __attribute__((warn_unused_result));

#endif
