/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs that wait, by host: which one goes next, and when.
 *
 * Each host has a lane: its jobs that are ready, by priority and order of submission, its jobs that
 * wait for another try, by time, and its bound of requests in flight (lane.h). Lanes take turns.
 *
 * Bounds: the client's queue_most jobs. A lane without jobs is used again for another host, once
 * there are WEIR_QUEUE_LANES of them. Threads: one owner.
 */
#ifndef WEIR_CLIENT_QUEUE_H
#define WEIR_CLIENT_QUEUE_H

#include "client/job.h"
#include "client/knowledge.h"
#include "client/lane.h"
#include "client/pace/own.h"

#define WEIR_QUEUE_LANES 256

struct weir_client_lane {
    char name[WEIR_HOST_NAME_MAX];
    struct weir_host_lane lane;
    struct weir_own_rate own; /* the caller's rate for the host */
    struct weir_heap ready, later;
};

struct weir_queue {
    struct weir_knowledge *knowledge;
    const struct weir_own_rates *rates;
    struct weir_client_lane **lanes;
    size_t count, room, turn;
    struct weir_heap deadlines;
    uint32_t in_flight, in_flight_most, host_most;
    bool adaptive;
};

/* Borrows both until weir_queue_free. */
void weir_queue_init(struct weir_queue *queue, struct weir_knowledge *knowledge,
                     const struct weir_own_rates *rates);
void weir_queue_free(struct weir_queue *queue);

/* Adds a job, which waits until its not_before_ns. False: no memory. */
bool weir_queue_add(struct weir_queue *queue, struct weir_client_job *job, uint64_t now_ns)
    __attribute__((warn_unused_result));

/* Takes a job out, wherever it is. One that is in flight is ended for its lane by
 * weir_queue_end. */
void weir_queue_remove(struct weir_queue *queue, struct weir_client_job *job);

/* From when on a queued job may be sent, by its host and by the caller's rate. As weir_host_when.
 */
uint64_t weir_queue_when(const struct weir_client_job *job, struct weir_host *host,
                         uint64_t expected, uint64_t waiting, uint64_t now_ns);

/* The next job to send now: it is in flight, counted by its host, and has its number. NULL: none,
 * until *wake_ns (UINT64_MAX: until something ends). Where the host allows the next job only after
 * that job's deadline, the job is returned with *late: it is not in flight, and not queued. */
struct weir_client_job *weir_queue_next(struct weir_queue *queue, uint64_t expected,
                                        uint64_t now_ns, uint64_t *wake_ns, bool *late);

/* The answer of a job has begun, and continues as a stream. */
void weir_queue_answer(struct weir_queue *queue, struct weir_client_job *job, int status,
                       uint64_t now_ns);

/* A try has ended. `status` 0: without an answer. */
void weir_queue_end(struct weir_queue *queue, struct weir_client_job *job, int status,
                    uint64_t now_ns);

/* Which bound of the options a waiting job waits for, by its name; NULL: none. */
const char *weir_queue_full(const struct weir_queue *queue, const struct weir_client_job *job);

/* The first job whose deadline has passed, or NULL. */
struct weir_client_job *weir_queue_overdue(struct weir_queue *queue, uint64_t now_ns);

/* When the next deadline is; UINT64_MAX: there is none. */
uint64_t weir_queue_deadline(const struct weir_queue *queue);

#endif
