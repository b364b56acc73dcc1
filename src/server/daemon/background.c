/* SPDX-License-Identifier: Apache-2.0 */
/* see background.h */
#include "server/daemon/background.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include <weir/error.h>

#include "server/daemon/state/state_guard.h"

struct weir_background {
    pthread_t thread;
    pthread_mutex_t lock;    /* guards what follows */
    pthread_cond_t changed;  /* any of it */
    struct weir_job *wanted; /* for the thread to take */
    bool running, ending, ended;
    bool looped;

    struct weir_job *started; /* the opener's: NULL once it is done */
    struct weir_job *queue;   /* the opener's, as the next two */
    struct weir_job **queue_end;
    unsigned queued;
    uv_async_t finished; /* on the loop, when `looped` */
};

static void *thread_main(void *context)
{
    struct weir_background *background = context;
    pthread_mutex_lock(&background->lock);
    for (;;) {
        while (!background->wanted && !background->ending)
            pthread_cond_wait(&background->changed, &background->lock);
        struct weir_job *job = background->wanted;
        if (background->ending || !job)
            break;
        background->wanted = NULL;
        background->running = true;
        pthread_mutex_unlock(&background->lock);
        job->run(job);
        pthread_mutex_lock(&background->lock);
        background->running = false;
        pthread_cond_broadcast(&background->changed);
        if (background->looped && !background->ending)
            uv_async_send(&background->finished);
    }
    background->ended = true;
    pthread_cond_broadcast(&background->changed);
    pthread_mutex_unlock(&background->lock);
    return NULL;
}

int weir_background_open(struct weir_background **out)
{
    struct weir_background *background = calloc(1, sizeof *background);
    if (!background)
        return WEIR_ERR_MEMORY;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&background->lock, NULL);
    pthread_cond_init(&background->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigset_t all, old;
    weir_state_guard_fill(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    int err = pthread_create(&background->thread, NULL, thread_main, background);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (err != 0) {
        pthread_cond_destroy(&background->changed);
        pthread_mutex_destroy(&background->lock);
        free(background);
        return WEIR_ERR_MEMORY;
    }
    background->queue_end = &background->queue;
    *out = background;
    return 0;
}

bool weir_background_busy(const struct weir_background *background)
{
    return background->started;
}

const char *weir_background_what(const struct weir_background *background)
{
    return background->started && background->started->what ? background->started->what : "";
}

void weir_background_start(struct weir_background *background, struct weir_job *job)
{
    background->started = job;
    pthread_mutex_lock(&background->lock);
    background->wanted = job;
    pthread_cond_broadcast(&background->changed);
    pthread_mutex_unlock(&background->lock);
}

bool weir_background_has_room(const struct weir_background *background)
{
    return background->queued < WEIR_BACKGROUND_QUEUE_MAX;
}

static struct weir_job *take_queued(struct weir_background *background)
{
    struct weir_job *job = background->queue;
    if (!job)
        return NULL;
    background->queue = job->next;
    if (!job->next)
        background->queue_end = &background->queue;
    background->queued--;
    return job;
}

static void start_queued(struct weir_background *background)
{
    struct weir_job *job = background->started ? NULL : take_queued(background);
    if (job)
        weir_background_start(background, job);
}

void weir_background_queue(struct weir_background *background, struct weir_job *job)
{
    job->next = NULL;
    *background->queue_end = job;
    background->queue_end = &job->next;
    background->queued++;
    start_queued(background);
}

static void finish(struct weir_background *background)
{
    struct weir_job *job = background->started;
    background->started = NULL;
    job->done(job);
    start_queued(background);
}

static void drop(struct weir_job *job)
{
    if (job && job->drop)
        job->drop(job);
}

void weir_background_wait(struct weir_background *background)
{
    pthread_mutex_lock(&background->lock);
    while (background->wanted || background->running)
        pthread_cond_wait(&background->changed, &background->lock);
    pthread_mutex_unlock(&background->lock);
    finish(background);
}

/* A wake may come twice, or late, for a job that has been waited for. */
static void on_finished(uv_async_t *handle)
{
    struct weir_background *background = handle->data;
    pthread_mutex_lock(&background->lock);
    bool idle = !background->wanted && !background->running;
    pthread_mutex_unlock(&background->lock);
    if (idle && background->started)
        finish(background);
}

int weir_background_join_loop(struct weir_background *background, uv_loop_t *loop)
{
    if (uv_async_init(loop, &background->finished, on_finished) < 0)
        return WEIR_ERR_IO;
    background->finished.data = background;
    pthread_mutex_lock(&background->lock);
    background->looped = true;
    pthread_mutex_unlock(&background->lock);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

bool weir_background_close(struct weir_background *background, unsigned patience_ms)
{
    if (!background)
        return true;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += patience_ms / 1000;
    until.tv_nsec += (long)(patience_ms % 1000) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&background->lock);
    bool looped = background->looped;
    background->ending = true;
    pthread_cond_broadcast(&background->changed);
    int err = 0;
    while (!background->ended && err != ETIMEDOUT)
        err = pthread_cond_timedwait(&background->changed, &background->lock, &until);
    bool ended = background->ended;
    pthread_mutex_unlock(&background->lock);
    if (!ended)
        return false;
    pthread_join(background->thread, NULL);
    pthread_cond_destroy(&background->changed);
    pthread_mutex_destroy(&background->lock);
    drop(background->started);
    while (background->queue)
        drop(take_queued(background));
    uv_handle_t *handle = (uv_handle_t *)&background->finished;
    if (looped && !uv_is_closing(handle))
        uv_close(handle, on_closed);
    else
        free(background);
    return true;
}
