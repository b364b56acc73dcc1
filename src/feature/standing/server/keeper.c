/* SPDX-License-Identifier: Apache-2.0 */
/* see keeper.h */
#include "feature/standing/server/keeper.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/bytes.h"
#include "server/daemon/clock.h"

#include "feature/standing/rescue.h"
#include "feature/standing/server/json.h"
#include "server/daemon/state/state_guard.h"

/* The last moves of a value that are shown, among so many changes. */
#define MOVES_MAX 10
#define MOVES_AMONG 200

/* How long the thread waits before it tries again, or looks at the file. */
#define RETRY_NS UINT64_C(1000000000)
/* The same while a stop waits. */
#define RETRY_STOPPING_NS UINT64_C(50000000)
/* How long one try waits for another process that has the history locked. */
#define PATIENCE_MS 200
/* The disk has had so long for one piece of work: it hangs. */
#define HANGS_NS UINT64_C(1000000000)
/* How long a stop waits for the thread to notice that its time is up. */
#define LEAVE_NS UINT64_C(1000000000)

struct queue {
    struct weir_keeper_job *first, **end;
};

struct weir_keeper {
    uv_async_t finished; /* its loop closes these two */
    uv_timer_t timer;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed, ended;
    char *path;
    struct weir_history *history; /* the thread's; NULL: it is not open */
    /* Under the lock. */
    struct queue changes, reads, ready;
    struct weir_keeper_job *at_work; /* changes that the thread is writing */
    uint64_t number;
    bool ending, gone, reopen; /* gone: the thread has ended */
    uint64_t give_up_ns;       /* while it ends: when what is left is lost */
    uint64_t began_ns;         /* the work that the thread is at; 0: none */
    struct weir_keeper_state state;
    uint64_t retry_ns; /* while it is down: when to try again */
    /* The loop's. */
    bool stopped, hangs; /* hangs: the thread did not end; under the lock, too */
    unsigned jobs;
    struct weir_keeper_job *waits, **waits_end; /* that are waited for */
    struct weir_keeper_backend *backend;        /* NULL: there is a thread */
};

static struct weir_bytes copy(char *room, size_t size, struct weir_bytes text)
{
    text.size = text.size < size ? text.size : size;
    if (text.size > 0)
        memcpy(room, text.data, text.size);
    return (struct weir_bytes){room, text.size};
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

static void put_ladder(struct weir_history *history, struct weir_keeper_job *job)
{
    const struct weir_keeper_put *put = job->put;
    const struct weir_history_ladder ladder = {.penalty = weir_bytes_of(put->penalty),
                                               .kind = job->entry.kind,
                                               .value = job->entry.value,
                                               .network = job->entry.network,
                                               .id = {job->entry.id[0], job->entry.id[1]},
                                               .gone_ns = put->gone_ns,
                                               .state = put->state};
    int err = weir_history_swap_ladder(history, &ladder, NULL, &job->reason);

    job->err = err < 0 ? err : 0;
    if (job->err == 0 && put->sets)
        job->err = weir_history_set(history, job->now_ns, &job->entry, &job->was, &job->reason);
}

static void take_row(void *context, const struct weir_history_ladder *ladder)
{
    struct weir_keeper_page *page = context;
    struct weir_keeper_page_row *row = &page->rows[page->count++];

    memset(row, 0, sizeof *row);
    copy(row->kind, WEIR_STANDING_KIND_MAX, ladder->kind);
    copy(row->value, WEIR_LIST_VALUE_MAX, ladder->value);
    row->network = ladder->network;
    memcpy(row->id, ladder->id, sizeof row->id);
    row->gone_ns = ladder->gone_ns;
    copy(row->ladder.penalty, WEIR_KEEPER_PENALTY_MAX, ladder->penalty);
    row->ladder.state = ladder->state;
}

static void read_page(struct weir_history *history, struct weir_keeper_job *job)
{
    const struct weir_history_filter filter = {
        .now_ns = job->page->now_ns, .skip = job->page->skip, .count = WEIR_KEEPER_PAGE_MAX};

    job->page->count = 0;
    job->err = weir_history_ladders(history, &filter, take_row, job->page, &job->reason);
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
    case WEIR_KEEPER_PUT:
        put_ladder(history, job);
        break;
    case WEIR_KEEPER_PAGE:
        read_page(history, job);
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
    return job->op <= WEIR_KEEPER_PUT;
}

/* Runs a chain of changes as one transaction: all are made, or none. */
static int run_group(struct weir_history *history, struct weir_keeper_job *first,
                     struct weir_reason *reason)
{
    uint64_t now_ns = first->now_ns;
    struct weir_reason unwanted;
    int err = weir_history_begin(history, reason), ended;

    if (err < 0)
        return err;
    for (struct weir_keeper_job *job = first; job && err == 0; job = job->next) {
        job->err = 0;
        job->found = false;
        run(history, job);
        err = job->err;
        if (err < 0)
            *reason = job->reason;
    }
    ended = weir_history_end(history, err < 0 ? &unwanted : reason);
    err = err < 0 ? err : ended;
    /* What is not removed now is removed later. */
    if (err == 0 && weir_history_prune(history, now_ns, &unwanted) < 0)
        return 0;
    return err;
}

static int open_history(struct weir_keeper *keeper, struct weir_reason *reason)
{
    const struct weir_history_options options = {.path = keeper->path, .patience_ms = PATIENCE_MS};
    struct weir_history *opened;
    int err = weir_history_open(&opened, &options, reason);

    if (err < 0)
        return err;
    weir_history_close(keeper->history);
    keeper->history = opened;
    return 0;
}

/* Sees to it that what is open is what has the path. */
static int follow_file(struct weir_keeper *keeper, bool reopen, struct weir_reason *reason)
{
    enum weir_history_place place =
        keeper->history ? weir_history_place(keeper->history) : WEIR_HISTORY_OTHER;
    int err = place == WEIR_HISTORY_GONE ? weir_history_rescue(keeper->history, reason) : 0;

    if (err < 0 || (place == WEIR_HISTORY_THERE && !reopen))
        return err;
    if (place != WEIR_HISTORY_THERE) {
        weir_history_abandon(keeper->history);
        keeper->history = NULL;
    }
    err = open_history(keeper, reason);
    if (err == 0 && place != WEIR_HISTORY_THERE) {
        pthread_mutex_lock(&keeper->lock);
        keeper->state.reopened += keeper->state.opened;
        keeper->state.opened = true;
        pthread_mutex_unlock(&keeper->lock);
    }
    return err;
}

/* --- The queues, under the lock --------------------------------------------------------------- */

static void put_last(struct queue *queue, struct weir_keeper_job *first)
{
    *queue->end = first;
    while (*queue->end)
        queue->end = &(*queue->end)->next;
}

/* Takes `most` jobs at most off a queue; NULL: it is empty. */
static struct weir_keeper_job *take_first(struct queue *queue, int most)
{
    struct weir_keeper_job *first = queue->first, *last = first;

    if (!first)
        return NULL;
    for (int i = 1; i < most && last->next; i++)
        last = last->next;
    queue->first = last->next;
    if (!queue->first)
        queue->end = &queue->first;
    last->next = NULL;
    return first;
}

/* The jobs that are next: one that reads, or some that change. Reading waits for the changes before
 * it, unless those cannot be made now. */
static struct weir_keeper_job *take_jobs(struct weir_keeper *keeper, uint64_t now_ns)
{
    const struct weir_keeper_job *change = keeper->changes.first, *read = keeper->reads.first;
    bool due = change && (!keeper->state.down || now_ns >= keeper->retry_ns);

    if (read && (!change || keeper->state.down || read->number < change->number))
        return take_first(&keeper->reads, 1);
    return due ? take_first(&keeper->changes, WEIR_KEEPER_GROUP_MAX) : NULL;
}

static void hand_back(struct weir_keeper *keeper, struct weir_keeper_job *first)
{
    put_last(&keeper->ready, first);
    if (!keeper->hangs) /* else the loop has gone */
        uv_async_send(&keeper->finished);
}

/* Keeps changes that could not be made, in their place. */
static void put_back(struct weir_keeper *keeper, struct weir_keeper_job *first)
{
    struct weir_keeper_job *last = first;

    while (last->next)
        last = last->next;
    last->next = keeper->changes.first;
    if (!keeper->changes.first)
        keeper->changes.end = &last->next;
    keeper->changes.first = first;
}

static void note_result(struct weir_keeper *keeper, int err, const struct weir_reason *reason)
{
    keeper->state.down = err < 0;
    keeper->retry_ns = weir_clock_boot_ns() + (keeper->ending ? RETRY_STOPPING_NS : RETRY_NS);
    if (err < 0)
        keeper->state.reason = *reason;
}

/* --- The thread ------------------------------------------------------------------------------- */

/* Without the lock. */
static int work_on(struct weir_keeper *keeper, struct weir_keeper_job *jobs, bool reopen,
                   struct weir_reason *reason)
{
    int err = !jobs || changes(jobs) ? follow_file(keeper, reopen, reason) : 0;

    if (jobs && !changes(jobs) && keeper->history) {
        run(keeper->history, jobs);
    } else if (jobs && !changes(jobs)) {
        jobs->err = WEIR_ERR_IO;
        snprintf(jobs->reason.text, sizeof jobs->reason.text, "the history cannot be opened");
    } else if (jobs && err == 0) {
        err = run_group(keeper->history, jobs, reason);
    }
    return err;
}

/* With the lock, which it leaves meanwhile. `jobs` NULL: looks at the file alone. */
static void work(struct weir_keeper *keeper, struct weir_keeper_job *jobs)
{
    bool writes = jobs && changes(jobs), reopen = keeper->reopen;
    struct weir_reason reason = {""};
    int err;

    keeper->at_work = writes ? jobs : NULL;
    keeper->began_ns = weir_clock_boot_ns();
    if (!jobs || writes)
        keeper->reopen = false;
    pthread_mutex_unlock(&keeper->lock);
    err = work_on(keeper, jobs, reopen, &reason);
    pthread_mutex_lock(&keeper->lock);
    keeper->at_work = NULL;
    keeper->began_ns = 0;
    if (!jobs || writes)
        note_result(keeper, err, &reason);
    if (writes && err < 0)
        put_back(keeper, jobs);
    else if (jobs)
        hand_back(keeper, jobs);
}

static void wait_until(struct weir_keeper *keeper, uint64_t then_ns)
{
    const struct timespec then = {.tv_sec = (time_t)(then_ns / UINT64_C(1000000000)),
                                  .tv_nsec = (long)(then_ns % UINT64_C(1000000000))};

    pthread_cond_timedwait(&keeper->changed, &keeper->lock, &then);
}

/* The condition's clock. */
static uint64_t steady_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void *thread_main(void *context)
{
    struct weir_keeper *keeper = context;
    uint64_t look_ns = weir_clock_boot_ns() + RETRY_NS;

    pthread_mutex_lock(&keeper->lock);
    for (;;) {
        uint64_t now_ns = weir_clock_boot_ns();
        struct weir_keeper_job *jobs = take_jobs(keeper, now_ns);
        bool looks = !jobs && !keeper->changes.first && !keeper->ending &&
                     (now_ns >= look_ns || keeper->reopen);

        if (keeper->ending && !jobs && (!keeper->changes.first || now_ns >= keeper->give_up_ns))
            break;
        if (looks)
            look_ns = now_ns + RETRY_NS;
        if (jobs || looks)
            work(keeper, jobs);
        else
            wait_until(keeper, steady_ns() + (keeper->ending ? RETRY_STOPPING_NS : RETRY_NS / 4));
    }
    keeper->gone = true;
    pthread_cond_signal(&keeper->ended);
    pthread_mutex_unlock(&keeper->lock);
    return NULL;
}

/* --- The loop --------------------------------------------------------------------------------- */

static void wait_no_more(struct weir_keeper *keeper, struct weir_keeper_job *job)
{
    if (!job->waited)
        return;
    *job->waited = job->waits;
    if (job->waits)
        job->waits->waited = job->waited;
    else
        keeper->waits_end = job->waited;
    job->waited = NULL;
}

static struct weir_keeper_job *take_ready(struct weir_keeper *keeper)
{
    struct weir_keeper_job *jobs;

    pthread_mutex_lock(&keeper->lock);
    jobs = take_first(&keeper->ready, INT_MAX);
    pthread_mutex_unlock(&keeper->lock);
    return jobs;
}

static void on_finished(uv_async_t *handle)
{
    struct weir_keeper *keeper = handle->data;
    struct weir_keeper_job *next, *job = take_ready(keeper);

    for (; job; job = next) {
        next = job->next;
        wait_no_more(keeper, job);
        job->done(job);
    }
}

/* All wait as long, so they are late in the order of their start. */
static void on_timer(uv_timer_t *timer)
{
    struct weir_keeper *keeper = timer->data;
    uint64_t now_ns = weir_clock_boot_ns();

    while (keeper->waits && keeper->waits->late_ns <= now_ns) {
        struct weir_keeper_job *job = keeper->waits;

        wait_no_more(keeper, job);
        job->late(job);
    }
    if (keeper->waits)
        uv_timer_start(timer, on_timer, (keeper->waits->late_ns - now_ns) / UINT64_C(1000000) + 1,
                       0);
}

static void wait_for(struct weir_keeper *keeper, struct weir_keeper_job *job)
{
    bool first = !keeper->waits;

    job->late_ns = weir_clock_boot_ns() + WEIR_KEEPER_LATE_MS * UINT64_C(1000000);
    job->waits = NULL;
    job->waited = keeper->waits_end;
    *keeper->waits_end = job;
    keeper->waits_end = &job->waits;
    if (first)
        uv_timer_start(&keeper->timer, on_timer, WEIR_KEEPER_LATE_MS, 0);
}

static void empty(struct queue *queue)
{
    queue->first = NULL;
    queue->end = &queue->first;
}

static struct weir_keeper *keeper_new(void)
{
    struct weir_keeper *keeper = calloc(1, sizeof *keeper);
    pthread_condattr_t steady;

    if (!keeper)
        return NULL;
    empty(&keeper->changes);
    empty(&keeper->reads);
    empty(&keeper->ready);
    keeper->waits_end = &keeper->waits;
    pthread_mutex_init(&keeper->lock, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&keeper->changed, &steady);
    pthread_cond_init(&keeper->ended, &steady);
    pthread_condattr_destroy(&steady);
    return keeper;
}

static int start_thread(struct weir_keeper *keeper)
{
    sigset_t all, old;
    int err;

    weir_state_guard_fill(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    err = pthread_create(&keeper->thread, NULL, thread_main, keeper);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    keeper->stopped = err != 0;
    return err == 0 ? 0 : WEIR_ERR_MEMORY;
}

int weir_keeper_open(struct weir_keeper **out, struct weir_history *history, const char *path,
                     uv_loop_t *loop)
{
    struct weir_keeper *keeper = keeper_new();

    *out = NULL;
    if (keeper)
        keeper->path = strdup(path);
    if (!keeper || !keeper->path || uv_async_init(loop, &keeper->finished, on_finished) < 0) {
        weir_history_close(history);
        free(keeper);
        return WEIR_ERR_MEMORY;
    }
    if (history)
        weir_history_be_patient(history, PATIENCE_MS);
    keeper->history = history;
    keeper->state.opened = history;
    keeper->state.down = !history;
    if (!history)
        snprintf(keeper->state.reason.text, sizeof keeper->state.reason.text,
                 "%.120s: cannot be opened", path);
    keeper->finished.data = keeper->timer.data = keeper;
    uv_timer_init(loop, &keeper->timer); /* cannot fail */
    keeper->timer.data = keeper;
    *out = keeper; /* its loop knows it */
    return start_thread(keeper);
}

int weir_keeper_open_on(struct weir_keeper **out, struct weir_keeper_backend *backend)
{
    struct weir_keeper *keeper = keeper_new();

    *out = keeper;
    if (!keeper)
        return WEIR_ERR_MEMORY;
    keeper->backend = backend;
    backend->keeper = keeper;
    keeper->stopped = true;
    keeper->state.opened = true;
    return 0;
}

/* Waits until the thread has ended; false: it hangs. */
static bool wait_for_end(struct weir_keeper *keeper)
{
    uint64_t then_ns = steady_ns() + WEIR_KEEPER_STOP_MS * UINT64_C(1000000) + LEAVE_NS;
    const struct timespec then = {.tv_sec = (time_t)(then_ns / UINT64_C(1000000000)),
                                  .tv_nsec = (long)(then_ns % UINT64_C(1000000000))};
    int err = 0;

    while (!keeper->gone && err == 0)
        err = pthread_cond_timedwait(&keeper->ended, &keeper->lock, &then);
    return keeper->gone;
}

static uint64_t count_jobs(const struct weir_keeper_job *job)
{
    uint64_t count = 0;

    for (; job; job = job->next)
        count += job->op != WEIR_KEEPER_LADDERS;
    return count;
}

void weir_keeper_stop(struct weir_keeper *keeper)
{
    if (!keeper || keeper->stopped)
        return;
    pthread_mutex_lock(&keeper->lock);
    keeper->ending = true;
    keeper->give_up_ns = weir_clock_boot_ns() + WEIR_KEEPER_STOP_MS * UINT64_C(1000000);
    keeper->retry_ns = 0;
    pthread_cond_signal(&keeper->changed);
    keeper->hangs = !wait_for_end(keeper);
    keeper->state.lost = count_jobs(keeper->at_work) + count_jobs(keeper->changes.first);
    pthread_mutex_unlock(&keeper->lock);
    if (keeper->hangs)
        pthread_detach(keeper->thread);
    else
        pthread_join(keeper->thread, NULL);
    keeper->stopped = true;
}

void weir_keeper_each_lost(struct weir_keeper *keeper,
                           void (*take)(void *context, const struct weir_keeper_job *job),
                           void *context)
{
    const struct weir_keeper_job *lists[2], *job;

    pthread_mutex_lock(&keeper->lock);
    lists[0] = keeper->at_work;
    lists[1] = keeper->changes.first;
    for (int i = 0; i < 2; i++)
        for (job = lists[i]; job; job = job->next)
            if (job->op != WEIR_KEEPER_LADDERS)
                take(context, job);
    pthread_mutex_unlock(&keeper->lock);
}

static void drop_all(struct weir_keeper *keeper, struct queue *queue)
{
    struct weir_keeper_job *next, *job = take_first(queue, INT_MAX);

    for (; job; job = next) {
        next = job->next;
        if (job->drop)
            job->drop(job);
        else
            weir_keeper_free(keeper, job);
    }
}

void weir_keeper_close(struct weir_keeper *keeper)
{
    if (!keeper)
        return;
    weir_keeper_stop(keeper);
    if (keeper->hangs)
        return; /* the thread has it */
    drop_all(keeper, &keeper->ready);
    drop_all(keeper, &keeper->changes);
    drop_all(keeper, &keeper->reads);
    weir_history_close(keeper->history);
    pthread_cond_destroy(&keeper->changed);
    pthread_cond_destroy(&keeper->ended);
    pthread_mutex_destroy(&keeper->lock);
    free(keeper->path);
    free(keeper);
}

void weir_keeper_reopen(struct weir_keeper *keeper)
{
    if (!keeper || keeper->backend)
        return;
    pthread_mutex_lock(&keeper->lock);
    keeper->reopen = true;
    keeper->retry_ns = 0;
    pthread_cond_signal(&keeper->changed);
    pthread_mutex_unlock(&keeper->lock);
}

void weir_keeper_state(struct weir_keeper *keeper, struct weir_keeper_state *state)
{
    uint64_t now_ns = weir_clock_boot_ns();

    pthread_mutex_lock(&keeper->lock);
    *state = keeper->state;
    if (keeper->began_ns != 0 && now_ns - keeper->began_ns > HANGS_NS) {
        state->down = true;
        if (!state->reason.text[0])
            snprintf(state->reason.text, sizeof state->reason.text,
                     "%.120s: the disk does not answer", keeper->path);
    }
    pthread_mutex_unlock(&keeper->lock);
}

bool weir_keeper_has_room(const struct weir_keeper *keeper)
{
    return keeper->jobs < (keeper->backend ? WEIR_KEEPER_BACKEND_MAX : WEIR_KEEPER_JOBS_MAX);
}

/* Copies a text with a NUL to *at, which continues behind it. */
static struct weir_bytes keep(char **at, size_t size_max, struct weir_bytes text)
{
    struct weir_bytes kept = copy(*at, size_max, text);

    *at += kept.size + 1;
    return kept;
}

static size_t room_of(size_t size_max, struct weir_bytes text)
{
    return (text.size < size_max ? text.size : size_max) + 1;
}

struct weir_keeper_job *weir_keeper_take(struct weir_keeper *keeper, enum weir_keeper_op op,
                                         struct weir_bytes kind, struct weir_bytes value,
                                         struct weir_bytes by)
{
    size_t room = room_of(WEIR_STANDING_KIND_MAX, kind) + room_of(WEIR_LIST_VALUE_MAX, value) +
                  room_of(WEIR_KEEPER_BY_ROOM, by);
    struct weir_keeper_job *job =
        weir_keeper_has_room(keeper) ? calloc(1, sizeof *job + room) : NULL;
    char *at;

    if (!job)
        return NULL;
    keeper->jobs++;
    job->op = op;
    at = job->texts;
    job->entry.kind = keep(&at, WEIR_STANDING_KIND_MAX, kind);
    job->entry.value = keep(&at, WEIR_LIST_VALUE_MAX, value);
    job->entry.by = keep(&at, WEIR_KEEPER_BY_ROOM, by);
    return job;
}

void weir_keeper_start(struct weir_keeper *keeper, struct weir_keeper_job *job)
{
    job->next = NULL;
    if (keeper->backend) {
        keeper->backend->start(keeper->backend, job);
        return;
    }
    if (job->late)
        wait_for(keeper, job);
    pthread_mutex_lock(&keeper->lock);
    job->number = ++keeper->number;
    put_last(changes(job) ? &keeper->changes : &keeper->reads, job);
    pthread_cond_signal(&keeper->changed);
    pthread_mutex_unlock(&keeper->lock);
}

void weir_keeper_free(struct weir_keeper *keeper, struct weir_keeper_job *job)
{
    json_decref(job->answer);
    json_decref(job->moves);
    free(job->put);
    free(job->page);
    free(job);
    keeper->jobs--;
}

unsigned weir_keeper_jobs(const struct weir_keeper *keeper)
{
    return keeper->jobs;
}
