/* SPDX-License-Identifier: Apache-2.0 */
/* see queue.h */
#include "client/queue.h"

#include <stdlib.h>
#include <string.h>

#include "client/instant.h"
#include "client/retry.h"

#define JOB_OF(item, member)                                                                       \
    ((struct weir_client_job *)(void *)((char *)(item)-offsetof(struct weir_client_job, member)))

static bool goes_first(const struct weir_heap_item *a, const struct weir_heap_item *b)
{
    const struct weir_client_job *one = JOB_OF(a, queue), *other = JOB_OF(b, queue);

    if (one->request.priority != other->request.priority)
        return one->request.priority > other->request.priority;
    return one->id < other->id;
}

static bool is_earlier(const struct weir_heap_item *a, const struct weir_heap_item *b)
{
    return JOB_OF(a, queue)->not_before_ns < JOB_OF(b, queue)->not_before_ns;
}

static bool ends_earlier(const struct weir_heap_item *a, const struct weir_heap_item *b)
{
    return JOB_OF(a, deadline)->deadline_ns < JOB_OF(b, deadline)->deadline_ns;
}

void weir_queue_init(struct weir_queue *queue, struct weir_knowledge *knowledge,
                     const struct weir_own_rates *rates)
{
    *queue = (struct weir_queue){
        .knowledge = knowledge, .rates = rates, .deadlines.before = ends_earlier};
}

void weir_queue_free(struct weir_queue *queue)
{
    for (size_t i = 0; i < queue->count; i++) {
        weir_heap_free(&queue->lanes[i]->ready);
        weir_heap_free(&queue->lanes[i]->later);
        free(queue->lanes[i]);
    }
    free(queue->lanes);
    weir_heap_free(&queue->deadlines);
}

static bool is_idle(const struct weir_client_lane *lane)
{
    return lane->ready.count == 0 && lane->later.count == 0 && lane->lane.in_flight == 0 &&
           lane->lane.streams == 0;
}

static struct weir_client_lane *new_lane(struct weir_queue *queue)
{
    if (queue->count == queue->room) {
        size_t room = queue->room > 0 ? queue->room * 2 : 16;
        struct weir_client_lane **lanes = realloc(queue->lanes, room * sizeof(void *));
        if (!lanes)
            return NULL;
        queue->lanes = lanes;
        queue->room = room;
    }
    struct weir_client_lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return NULL;
    lane->ready.before = goes_first;
    lane->later.before = is_earlier;
    queue->lanes[queue->count++] = lane;
    return lane;
}

static struct weir_client_lane *lane_of(struct weir_queue *queue, const struct weir_client_job *job)
{
    const char *name = job->host;
    struct weir_client_lane *idle = NULL;

    for (size_t i = 0; i < queue->count; i++) {
        if (!strcmp(queue->lanes[i]->name, name))
            return queue->lanes[i];
        if (is_idle(queue->lanes[i]))
            idle = queue->lanes[i];
    }
    if (!idle || queue->count < WEIR_QUEUE_LANES)
        idle = new_lane(queue);
    if (idle) {
        memcpy(idle->name, name, sizeof idle->name);
        idle->own = weir_own_of(queue->rates, job->origin);
        weir_lane_init(&idle->lane, queue->host_most, queue->adaptive);
    }
    return idle;
}

static bool enqueue(struct weir_client_job *job, bool ready)
{
    struct weir_client_lane *lane = job->lane;

    job->is_ready = ready;
    return weir_heap_add(ready ? &lane->ready : &lane->later, &job->queue);
}

bool weir_queue_add(struct weir_queue *queue, struct weir_client_job *job, uint64_t now_ns)
{
    job->lane = lane_of(queue, job);
    job->queued_ns = now_ns;
    if (!job->lane || !enqueue(job, job->not_before_ns <= now_ns))
        return false;
    if (job->deadline_ns != UINT64_MAX && job->deadline.place == 0 &&
        !weir_heap_add(&queue->deadlines, &job->deadline)) {
        weir_queue_remove(queue, job);
        return false;
    }
    return true;
}

void weir_queue_remove(struct weir_queue *queue, struct weir_client_job *job)
{
    if (job->lane)
        weir_heap_remove(job->is_ready ? &job->lane->ready : &job->lane->later, &job->queue);
    weir_heap_remove(&queue->deadlines, &job->deadline);
}

/* Jobs whose wait is over are ready. */
static void ripen(struct weir_client_lane *lane, uint64_t now_ns, uint64_t *wake_ns)
{
    while (lane->later.count > 0) {
        struct weir_client_job *job = JOB_OF(weir_heap_first(&lane->later), queue);
        if (job->not_before_ns > now_ns) {
            *wake_ns = job->not_before_ns < *wake_ns ? job->not_before_ns : *wake_ns;
            return;
        }
        weir_heap_remove(&lane->later, &job->queue);
        if (!enqueue(job, true)) {
            /* No memory: there is room where it was, for another look. */
            job->not_before_ns = now_ns + 1000000000;
            (void)!enqueue(job, false);
            return;
        }
    }
}

uint64_t weir_queue_when(const struct weir_client_job *job, struct weir_host *host,
                         uint64_t expected, uint64_t waiting, uint64_t now_ns)
{
    uint64_t when = weir_host_when(host, expected, waiting, now_ns);
    uint64_t own = job->lane ? weir_own_when(&job->lane->own, host->own_ns) : 0;
    return own > when ? own : when;
}

/* The first ready job of a lane, if it may go now. */
static struct weir_client_job *take(struct weir_queue *queue, struct weir_client_lane *lane,
                                    uint64_t expected, uint64_t now_ns, uint64_t *wake_ns,
                                    bool *late)
{
    struct weir_client_job *job = JOB_OF(weir_heap_first(&lane->ready), queue);
    struct weir_host *host = weir_knowledge_lock(queue->knowledge, lane->name, now_ns);
    uint64_t waiting = lane->ready.count + lane->later.count;
    uint64_t when = weir_queue_when(job, host, expected, waiting, now_ns);
    bool open = weir_lane_open(&lane->lane, host->in_flight_most, weir_host_probing(host));

    if (open && when <= now_ns) {
        job->number = weir_host_send(host, now_ns);
        host->own_ns = weir_own_send(&lane->own, host->own_ns, now_ns);
    }
    weir_knowledge_unlock(queue->knowledge);
    /* A wait at the horizon is longer than anything: no request has the time. */
    *late = when > now_ns && (when >= job->deadline_ns || when - now_ns >= WEIR_INSTANT_HORIZON_NS);
    if (*late) {
        weir_queue_remove(queue, job);
        job->wait_ns = when - now_ns;
        return job;
    }
    if (!open)
        return NULL;
    if (when > now_ns) {
        *wake_ns = when < *wake_ns ? when : *wake_ns;
        return NULL;
    }
    weir_queue_remove(queue, job); /* a transfer has a timeout of its own */
    weir_lane_send(&lane->lane);
    queue->in_flight++;
    job->in_flight = true;
    job->sent_ns = now_ns;
    job->waited_ns = now_ns - job->queued_ns;
    return job;
}

struct weir_client_job *weir_queue_next(struct weir_queue *queue, uint64_t expected,
                                        uint64_t now_ns, uint64_t *wake_ns, bool *late)
{
    *wake_ns = UINT64_MAX;
    *late = false;
    if (queue->in_flight >= queue->in_flight_most)
        return NULL;
    for (size_t i = 0; i < queue->count; i++) {
        struct weir_client_lane *lane = queue->lanes[(queue->turn + i) % queue->count];
        ripen(lane, now_ns, wake_ns);
        if (lane->ready.count == 0)
            continue;
        struct weir_client_job *job = take(queue, lane, expected, now_ns, wake_ns, late);
        if (job) {
            queue->turn = (queue->turn + i + 1) % queue->count;
            return job;
        }
    }
    return NULL;
}

static bool is_good(const struct weir_client_job *job, int status)
{
    return status != 0 && status != 503 && !weir_retry_limited(status, &job->advice);
}

void weir_queue_answer(struct weir_queue *queue, struct weir_client_job *job, int status,
                       uint64_t now_ns)
{
    weir_lane_answer(&job->lane->lane, is_good(job, status), now_ns - job->sent_ns, now_ns);
}

void weir_queue_end(struct weir_queue *queue, struct weir_client_job *job, int status,
                    uint64_t now_ns)
{
    if (job->stream.open)
        weir_lane_end_stream(&job->lane->lane);
    else
        weir_lane_end(&job->lane->lane, is_good(job, status), now_ns - job->sent_ns, now_ns);
    queue->in_flight--;
    job->in_flight = false;
}

const char *weir_queue_full(const struct weir_queue *queue, const struct weir_client_job *job)
{
    if (queue->in_flight >= queue->in_flight_most)
        return "concurrency";
    return job->lane && weir_lane_full(&job->lane->lane) ? "host_concurrency" : NULL;
}

struct weir_client_job *weir_queue_overdue(struct weir_queue *queue, uint64_t now_ns)
{
    struct weir_heap_item *first = weir_heap_first(&queue->deadlines);

    return first && JOB_OF(first, deadline)->deadline_ns <= now_ns ? JOB_OF(first, deadline) : NULL;
}

uint64_t weir_queue_deadline(const struct weir_queue *queue)
{
    struct weir_heap_item *first = weir_heap_first(&queue->deadlines);
    return first ? JOB_OF(first, deadline)->deadline_ns : UINT64_MAX;
}
