/* SPDX-License-Identifier: Apache-2.0 */
/* see keeper.h */
#include "server/standing/keeper.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/daemon/state_guard.h"

/* The last moves of a value that are shown, among so many changes. */
#define MOVES_MAX 10
#define MOVES_AMONG 200

struct weir_keeper {
    uv_async_t finished; /* its loop closes it */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct weir_history *history;
    struct weir_keeper_job *queue, **queue_end; /* under the lock */
    struct weir_keeper_job *ready, **ready_end; /* likewise */
    bool ending, stopped;
    unsigned jobs;                       /* the loop's */
    struct weir_keeper_backend *backend; /* NULL: there is a thread */
};

static struct weir_bytes copy(char *room, size_t size, struct weir_bytes text)
{
    text.size = text.size < size ? text.size : size;
    if (text.size > 0)
        memcpy(room, text.data, text.size);
    return (struct weir_bytes){room, text.size};
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_t *time_json(uint64_t time_ns)
{
    return time_ns == WEIR_NEVER ? json_null() : json_integer((json_int_t)(time_ns / 1000000));
}

static json_t *text_json(struct weir_bytes text)
{
    json_t *json = json_stringn(text.data, text.size);

    return json ? json : json_string("(not UTF-8)");
}

json_t *weir_standing_json(const struct weir_standing_entry *entry)
{
    struct weir_bytes reason = {entry->reason, entry->reason_size};

    return json_pack("{s:s, s:s, s:o, s:o, s:o}", "level", weir_standing_level_name(entry->level),
                     "origin", weir_standing_origin_name(entry->origin), "since_ms",
                     time_json(entry->since_ns), "until_ms", time_json(entry->until_ns), "reason",
                     text_json(reason));
}

void weir_standing_add_entry(void *context, const struct weir_history_entry *entry)
{
    json_t *object =
        json_pack("{s:o, s:o}", "kind", text_json(entry->kind), "value", text_json(entry->value));
    json_t *rest = weir_standing_json(&entry->entry);

    json_object_update(object, rest);
    json_decref(rest);
    json_object_set_new(object, "by", text_json(entry->by));
    json_array_append_new(context, object);
}

static json_t *level_json(int level)
{
    const char *name = level < 0 ? NULL : weir_standing_level_name((uint8_t)level);

    return name ? json_string(name) : json_null();
}

void weir_standing_add_row(void *context, const struct weir_history_row *row)
{
    const struct weir_standing_entry *to = &row->to.entry;
    struct weir_bytes reason = {to->reason, to->reason_size};

    json_array_append_new(
        context,
        json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "at_ms", time_json(row->at_ns),
                  "kind", text_json(row->to.kind), "value", text_json(row->to.value), "origin",
                  weir_standing_origin_name(to->origin), "was", level_json(row->was), "level",
                  level_json(row->level), "until_ms", time_json(to->until_ns), "reason",
                  text_json(reason), "by", text_json(row->to.by)));
}

static void take_move(void *context, const struct weir_history_row *row)
{
    if (row->to.entry.origin == WEIR_STANDING_BY_PENALTY && json_array_size(context) < MOVES_MAX)
        weir_standing_add_row(context, row);
}

/* --- The thread ------------------------------------------------------------------------------- */

static void clear_value(struct weir_history *history, struct weir_keeper_job *job)
{
    static const uint8_t origins[] = {WEIR_STANDING_BY_PENALTY, WEIR_STANDING_BY_OPERATOR};

    job->was = -1;
    for (size_t i = 0; i < sizeof origins && job->err == 0; i++) {
        int was, found;

        job->entry.entry.origin = origins[i];
        found = weir_history_clear(history, job->now_ns, &job->entry, &was, &job->reason);
        job->err = found < 0 ? found : 0;
        job->found |= found > 0;
        job->was = found > 0 ? was : job->was;
    }
}

static void take_ladder(void *context, const struct weir_history_ladder *ladder)
{
    struct weir_keeper_ladders *ladders = context;
    struct weir_keeper_ladder *taken = &ladders->ladders[ladders->count++];

    copy(taken->penalty, WEIR_KEEPER_PENALTY_MAX, ladder->penalty);
    taken->state = ladder->state;
}

/* With those that are forgiven whole and not removed yet: a swap expects them. */
static void read_ladders(struct weir_history *history, struct weir_keeper_job *job)
{
    const struct weir_history_filter filter = {
        .kind = job->entry.kind, .value = job->entry.value, .count = WEIR_KEEPER_LADDERS_MAX};

    memset(job->ladders, 0, sizeof *job->ladders);
    job->err = weir_history_ladders(history, &filter, take_ladder, job->ladders, &job->reason);
}

static void swap_ladder(struct weir_history *history, struct weir_keeper_job *job)
{
    const struct weir_keeper_swap *swap = job->swap;
    const struct weir_history_ladder ladder = {.penalty = swap->penalty,
                                               .kind = job->entry.kind,
                                               .value = job->entry.value,
                                               .network = job->entry.network,
                                               .id = {job->entry.id[0], job->entry.id[1]},
                                               .gone_ns = swap->gone_ns,
                                               .state = swap->next};
    int swapped = weir_history_swap_ladder(history, &ladder, &swap->expected, &job->reason);

    job->err = swapped < 0 ? swapped : 0;
    job->found = swapped > 0;
    if (job->found && swap->sets)
        job->err = weir_history_set(history, job->now_ns, &job->entry, &job->was, &job->reason);
}

/* The steps and the last moves of the value whose entries are read. */
static void read_moves(struct weir_history *history, struct weir_keeper_job *job)
{
    struct weir_history_filter filter = job->filter;

    read_ladders(history, job);
    job->moves = json_array();
    filter.count = MOVES_AMONG;
    filter.skip = 0;
    if (job->err == 0)
        job->err = weir_history_rows(history, &filter, take_move, job->moves, &job->reason);
}

static void run(struct weir_history *history, struct weir_keeper_job *job)
{
    switch (job->op) {
    case WEIR_KEEPER_SET:
        job->err = weir_history_set(history, job->now_ns, &job->entry, &job->was, &job->reason);
        break;
    case WEIR_KEEPER_CLEAR:
        clear_value(history, job);
        break;
    case WEIR_KEEPER_LADDERS:
        read_ladders(history, job);
        break;
    case WEIR_KEEPER_SWAP:
        swap_ladder(history, job);
        break;
    case WEIR_KEEPER_ENTRIES:
        job->answer = json_array();
        job->err = weir_history_entries(history, &job->filter, weir_standing_add_entry, job->answer,
                                        &job->reason);
        if (job->err == 0 && job->ladders)
            read_moves(history, job);
        break;
    case WEIR_KEEPER_ROWS:
        job->answer = json_array();
        job->err = weir_history_rows(history, &job->filter, weir_standing_add_row, job->answer,
                                     &job->reason);
        break;
    }
}

/* Jobs that share a transaction. The reading of ladders is one, or it would part the changes. */
static bool changes(const struct weir_keeper_job *job)
{
    return job->op <= WEIR_KEEPER_SWAP;
}

/* In a transaction of its own: a swap is two changes. */
static void run_alone(struct weir_history *history, struct weir_keeper_job *job)
{
    int err = weir_history_begin(history, &job->reason);

    job->err = err;
    job->found = false;
    if (err < 0)
        return;
    run(history, job);
    err = weir_history_end(history, &job->reason);
    job->err = job->err < 0 ? job->err : err;
}

/* Runs a chain of changes as one transaction. When that fails, each is tried alone, so that an
 * error concerns only the change that has it. */
static void run_group(struct weir_history *history, struct weir_keeper_job *first)
{
    uint64_t now_ns = first->now_ns;
    struct weir_reason reason;
    int err = weir_history_begin(history, &reason);

    if (err == 0) {
        for (struct weir_keeper_job *job = first; job; job = job->next)
            run(history, job);
        err = weir_history_end(history, &reason);
    }
    for (struct weir_keeper_job *job = first; job && err < 0; job = job->next)
        run_alone(history, job);
    /* What is not removed now is removed later. */
    if (weir_history_prune(history, now_ns, &reason) < 0)
        return;
}

/* Takes jobs off the queue: one that reads, or some that change. Under the lock. */
static struct weir_keeper_job *take_jobs(struct weir_keeper *keeper)
{
    struct weir_keeper_job *first = keeper->queue, *last = first;

    if (!first)
        return NULL;
    for (int i = 1; changes(first) && i < WEIR_KEEPER_GROUP_MAX && last->next; i++) {
        if (!changes(last->next))
            break;
        last = last->next;
    }
    keeper->queue = last->next;
    if (!keeper->queue)
        keeper->queue_end = &keeper->queue;
    last->next = NULL;
    return first;
}

static void hand_back(struct weir_keeper *keeper, struct weir_keeper_job *first)
{
    *keeper->ready_end = first;
    while (*keeper->ready_end)
        keeper->ready_end = &(*keeper->ready_end)->next;
    uv_async_send(&keeper->finished);
}

static void *thread_main(void *context)
{
    struct weir_keeper *keeper = context;
    struct weir_keeper_job *jobs;

    pthread_mutex_lock(&keeper->lock);
    for (;;) {
        jobs = take_jobs(keeper);
        if (!jobs && keeper->ending)
            break;
        if (!jobs) {
            pthread_cond_wait(&keeper->changed, &keeper->lock);
            continue;
        }
        pthread_mutex_unlock(&keeper->lock);
        if (changes(jobs))
            run_group(keeper->history, jobs);
        else
            run(keeper->history, jobs);
        pthread_mutex_lock(&keeper->lock);
        hand_back(keeper, jobs);
    }
    pthread_mutex_unlock(&keeper->lock);
    return NULL;
}

/* --- The loop --------------------------------------------------------------------------------- */

static struct weir_keeper_job *take_ready(struct weir_keeper *keeper)
{
    struct weir_keeper_job *jobs;

    pthread_mutex_lock(&keeper->lock);
    jobs = keeper->ready;
    keeper->ready = NULL;
    keeper->ready_end = &keeper->ready;
    pthread_mutex_unlock(&keeper->lock);
    return jobs;
}

static void on_finished(uv_async_t *handle)
{
    struct weir_keeper_job *next, *job = take_ready(handle->data);

    for (; job; job = next) {
        next = job->next;
        job->done(job);
    }
}

int weir_keeper_open(struct weir_keeper **out, struct weir_history *history, uv_loop_t *loop)
{
    struct weir_keeper *keeper = calloc(1, sizeof *keeper);
    sigset_t all, old;
    int err;

    *out = NULL;
    if (!keeper)
        return WEIR_ERR_MEMORY;
    keeper->history = history;
    keeper->queue_end = &keeper->queue;
    keeper->ready_end = &keeper->ready;
    pthread_mutex_init(&keeper->lock, NULL);
    pthread_cond_init(&keeper->changed, NULL);
    if (uv_async_init(loop, &keeper->finished, on_finished) < 0) {
        free(keeper);
        return WEIR_ERR_IO;
    }
    keeper->finished.data = keeper;
    weir_state_guard_fill(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    err = pthread_create(&keeper->thread, NULL, thread_main, keeper);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    keeper->stopped = err != 0;
    *out = keeper; /* its loop knows it */
    return err == 0 ? 0 : WEIR_ERR_MEMORY;
}

int weir_keeper_open_on(struct weir_keeper **out, struct weir_keeper_backend *backend)
{
    struct weir_keeper *keeper = calloc(1, sizeof *keeper);

    *out = keeper;
    if (!keeper)
        return WEIR_ERR_MEMORY;
    keeper->backend = backend;
    backend->keeper = keeper;
    keeper->stopped = true;
    keeper->ready_end = &keeper->ready;
    pthread_mutex_init(&keeper->lock, NULL);
    pthread_cond_init(&keeper->changed, NULL);
    return 0;
}

void weir_keeper_stop(struct weir_keeper *keeper)
{
    if (!keeper || keeper->stopped)
        return;
    pthread_mutex_lock(&keeper->lock);
    keeper->ending = true;
    pthread_cond_signal(&keeper->changed);
    pthread_mutex_unlock(&keeper->lock);
    pthread_join(keeper->thread, NULL);
    keeper->stopped = true;
}

void weir_keeper_close(struct weir_keeper *keeper)
{
    struct weir_keeper_job *next, *job;

    if (!keeper)
        return;
    weir_keeper_stop(keeper);
    for (job = take_ready(keeper); job; job = next) {
        next = job->next;
        weir_keeper_free(keeper, job);
    }
    pthread_cond_destroy(&keeper->changed);
    pthread_mutex_destroy(&keeper->lock);
    free(keeper);
}

struct weir_keeper_job *weir_keeper_take(struct weir_keeper *keeper, enum weir_keeper_op op,
                                         struct weir_bytes kind, struct weir_bytes value,
                                         struct weir_bytes by)
{
    struct weir_keeper_job *job =
        keeper->jobs < WEIR_KEEPER_JOBS_MAX ? calloc(1, sizeof *job) : NULL;

    if (!job)
        return NULL;
    keeper->jobs++;
    job->op = op;
    job->entry.kind = copy(job->kind, WEIR_STANDING_KIND_MAX, kind);
    job->entry.value = copy(job->value, WEIR_LIST_VALUE_MAX, value);
    job->entry.by = copy(job->by, WEIR_KEEPER_BY_ROOM, by);
    return job;
}

void weir_keeper_start(struct weir_keeper *keeper, struct weir_keeper_job *job)
{
    job->next = NULL;
    if (keeper->backend) {
        keeper->backend->start(keeper->backend, job);
        return;
    }
    pthread_mutex_lock(&keeper->lock);
    *keeper->queue_end = job;
    keeper->queue_end = &job->next;
    pthread_cond_signal(&keeper->changed);
    pthread_mutex_unlock(&keeper->lock);
}

void weir_keeper_free(struct weir_keeper *keeper, struct weir_keeper_job *job)
{
    json_decref(job->answer);
    json_decref(job->moves);
    free(job);
    keeper->jobs--;
}

unsigned weir_keeper_jobs(const struct weir_keeper *keeper)
{
    return keeper->jobs;
}
