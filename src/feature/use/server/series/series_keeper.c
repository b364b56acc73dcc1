/* SPDX-License-Identifier: Apache-2.0 */
/* see series_keeper.h */
#include "feature/use/server/series/series_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/draft.h"
#include "base/shared_file.h"
#include "core/bytes.h"
#include "feature/use/series_file.h"
#include "feature/use/server/history.h"
#include "server/daemon/daemon.h"

#define S UINT64_C(1000000000)
#define SUFFIX ".series"
#define SAY_AGAIN_S 3600
/* Series that are copied in one second: 0.07 ms each when they are full, so all 512 take 16 s. */
#define PIECE 32

/* A text that is being made, some series a second. */
struct making {
    bool on;
    uint32_t at;         /* the next limit */
    uint64_t limits_set; /* of the service, when it began: `at` counts those limits */
    struct weir_series_text text;
};

struct weir_series_keeper {
    char *path;
    uint64_t minute, said_s; /* the main thread's: when it wrote, and when it last said an error */
    int said;                /* which; 0: none */
    int unmade;              /* likewise: errno of the last that could not be made; 0: it was */
    struct making making;    /* likewise */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more, ended;
    struct weir_series_text next; /* not ended. Under `lock`, as all below; bytes NULL: none */
    bool busy, closing, gone;
    int failed; /* errno of the last that could not be written; 0: it was */
};

/* --- The thread ------------------------------------------------------------------------------- */

/* Returns 0 or an errno; then the file is as before. */
static int replace(const struct weir_series_keeper *keeper, const struct weir_series_text *text)
{
    const struct weir_bytes bytes = {text->bytes, text->size};

    return weir_draft_replace(keeper->path, &bytes, 1) < 0 ? errno : 0;
}

static void *writer(void *context)
{
    struct weir_series_keeper *keeper = context;
    pthread_mutex_lock(&keeper->lock);
    for (;;) {
        while (!keeper->next.bytes && !keeper->closing)
            pthread_cond_wait(&keeper->more, &keeper->lock);
        struct weir_series_text text = keeper->next;
        keeper->next.bytes = NULL;
        if (!text.bytes)
            break;
        keeper->busy = true;
        pthread_mutex_unlock(&keeper->lock);
        int failed = weir_series_text_end(&text) ? replace(keeper, &text) : ENOMEM;
        free(text.bytes);
        pthread_mutex_lock(&keeper->lock);
        keeper->busy = false;
        keeper->failed = failed;
    }
    keeper->gone = true;
    pthread_cond_signal(&keeper->ended);
    pthread_mutex_unlock(&keeper->lock);
    return NULL;
}

static void free_keeper(struct weir_series_keeper *keeper)
{
    free(keeper->next.bytes);
    free(keeper->making.text.bytes);
    free(keeper->path);
    free(keeper);
}

static char *joined(const char *a, const char *b)
{
    size_t size = strlen(a) + strlen(b) + 1;
    char *text = malloc(size);
    if (text)
        snprintf(text, size, "%s%s", a, b);
    return text;
}

static struct weir_series_keeper *begin(const char *state_file)
{
    struct weir_series_keeper *keeper = calloc(1, sizeof *keeper);
    pthread_condattr_t steady;
    if (!keeper)
        return NULL;
    keeper->path = joined(state_file, SUFFIX);
    if (!keeper->path) {
        free_keeper(keeper);
        return NULL;
    }
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&keeper->lock, NULL);
    pthread_cond_init(&keeper->more, NULL);
    pthread_cond_init(&keeper->ended, &steady);
    pthread_condattr_destroy(&steady);
    if (pthread_create(&keeper->thread, NULL, writer, keeper) == 0)
        return keeper;
    pthread_cond_destroy(&keeper->ended);
    pthread_cond_destroy(&keeper->more);
    pthread_mutex_destroy(&keeper->lock);
    free_keeper(keeper);
    return NULL;
}

/* --- Reading ---------------------------------------------------------------------------------- */

/* The bytes of the file; NULL: there is none, and `why` is set where that is no first start. */
static char *read_file(const char *path, size_t *size, const char **why)
{
    struct stat stat;
    size_t used = 0;
    char *bytes = NULL;
    *why = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        *why = errno == ENOENT ? NULL : strerror(errno);
        return NULL;
    }
    if (fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode))
        *why = "it is no file";
    else if ((uint64_t)stat.st_size > WEIR_SERIES_FILE_MAX)
        *why = "it is too large";
    else if (!(bytes = malloc((size_t)stat.st_size + 1)))
        *why = weir_error_text(WEIR_ERR_MEMORY);
    for (ssize_t n = 1; bytes && n > 0 && used < (size_t)stat.st_size; used += (size_t)n) {
        n = read(fd, bytes + used, (size_t)stat.st_size - used);
        if (n < 0) {
            *why = strerror(errno);
            n = 0;
        }
    }
    close(fd);
    *size = used;
    return bytes;
}

static struct weir_series *find_series(void *context, struct weir_bytes name)
{
    struct weir_use_service *use = context;
    struct weir_use_limit *limit = name.size > 0 ? weir_use_find(use, name) : NULL;
    if (name.size == 0)
        return use->whole;
    return limit ? weir_use_series_of(use, limit) : NULL;
}

static void log_series(const struct weir_use_service *use, const char *event, const char *why)
{
    struct weir_log_line line;
    weir_log_begin(&line, &use->daemon->log, WEIR_LOG_WARNING, event);
    weir_log_text(&line, "file", use->keeper->path);
    weir_log_text(&line, "reason", why);
    weir_log_end(&line);
}

static void say_failed(struct weir_use_service *use, int failed)
{
    char text[64] = "";
    log_series(use, "series_not_kept",
               failed == EBUSY ? "its disk hangs" : strerror_r(failed, text, sizeof text));
}

static void read_series(struct weir_use_service *use)
{
    struct weir_series_reading reading = {
        .whole = WEIR_USE_WHOLE_FIELDS,
        .limit = WEIR_USE_FIELDS,
        .until = (weir_worker_time(use->daemon->admin) / S + 1) / 60, /* see the end of a run */
        .find = find_series,
        .context = use,
    };
    size_t size;
    const char *why;
    char *bytes = read_file(use->keeper->path, &size, &why);
    int err = bytes && !why ? weir_series_file_read(bytes, size, &reading) : 0;
    free(bytes);
    if (err == WEIR_ERR_FORMAT)
        why = "another version of weir has written it";
    else if (err < 0)
        why = "it is damaged";
    if (why)
        log_series(use, "series_not_read", why);
    else if (reading.later > 0)
        log_series(use, "series_later",
                   "minutes that lie in the future are left out: was the clock set?");
}

/* --- For the service -------------------------------------------------------------------------- */

void weir_series_keeper_start(struct weir_use_service *use)
{
    const char *state_file = weir_rules_settings(use->daemon->rules)->state_file;
    if (!state_file)
        return;
    use->keeper = begin(state_file);
    if (!use->keeper) {
        weir_log_event(&use->daemon->log, WEIR_LOG_WARNING, "series_not_kept", "reason",
                       weir_error_text(WEIR_ERR_MEMORY));
        return;
    }
    use->keeper->minute = weir_worker_time(use->daemon->admin) / S / 60;
    read_series(use);
}

static void make_begin(const struct weir_use_service *use, struct making *making)
{
    free(making->text.bytes);
    *making = (struct making){.on = true, .limits_set = use->limits_set};
    weir_series_text_begin(&making->text, WEIR_USE_WHOLE_FIELDS, WEIR_USE_FIELDS);
    weir_series_text_add(&making->text, (struct weir_bytes){NULL, 0}, use->whole,
                         WEIR_USE_WHOLE_FIELDS);
}

/* Adds up to `count` series. Whether that was all. */
static bool make_on(const struct weir_use_service *use, struct making *making, uint32_t count)
{
    for (; making->at < use->limit_count && count > 0; making->at++) {
        const struct weir_use_limit *limit = &use->limits[making->at];
        if (!limit->series)
            continue;
        weir_series_text_add(&making->text, weir_bytes_of(limit->name), limit->series,
                             WEIR_USE_FIELDS);
        count--;
    }
    return making->at >= use->limit_count;
}

/* Gives the series to the thread. */
static void hand_over(struct weir_series_keeper *keeper)
{
    struct making *making = &keeper->making;
    making->on = false;
    keeper->unmade = making->text.bytes ? 0 : making->text.full ? EFBIG : ENOMEM;
    if (keeper->unmade != 0)
        return;
    pthread_mutex_lock(&keeper->lock);
    keeper->next = making->text;
    pthread_cond_signal(&keeper->more);
    pthread_mutex_unlock(&keeper->lock);
    making->text.bytes = NULL;
}

/* Whether the thread is at nothing; the last series wait also while it is writing. */
static bool may_begin(struct weir_series_keeper *keeper, bool last)
{
    pthread_mutex_lock(&keeper->lock);
    bool idle = (last || !keeper->busy) && !keeper->next.bytes;
    pthread_mutex_unlock(&keeper->lock);
    return idle;
}

/* What is to be said of the minute that has ended. */
static void say(struct weir_use_service *use, uint64_t now_s)
{
    struct weir_series_keeper *keeper = use->keeper;
    pthread_mutex_lock(&keeper->lock);
    int failed = keeper->unmade ? keeper->unmade : keeper->busy ? EBUSY : keeper->failed;
    pthread_mutex_unlock(&keeper->lock);
    if (failed != 0 && (failed != keeper->said || now_s - keeper->said_s >= SAY_AGAIN_S)) {
        say_failed(use, failed);
        keeper->said_s = now_s;
    }
    keeper->said = failed;
}

void weir_series_keeper_tick(struct weir_use_service *use, uint64_t now_s)
{
    struct weir_series_keeper *keeper = use->keeper;
    if (!keeper)
        return;
    if (now_s / 60 != keeper->minute) {
        keeper->minute = now_s / 60;
        say(use, now_s);
        if (!keeper->making.on && may_begin(keeper, false))
            make_begin(use, &keeper->making);
    }
    if (keeper->making.on && keeper->making.limits_set != use->limits_set)
        make_begin(use, &keeper->making); /* a reload has moved the limits */
    if (keeper->making.on && make_on(use, &keeper->making, PIECE))
        hand_over(keeper);
}

void weir_series_keeper_stop(struct weir_use_service *use)
{
    struct weir_series_keeper *keeper = use->keeper;
    struct timespec then;
    int err = 0;
    if (!keeper)
        return;
    if (may_begin(keeper, true)) {
        make_begin(use, &keeper->making);
        (void)make_on(use, &keeper->making, UINT32_MAX);
        hand_over(keeper);
    }
    clock_gettime(CLOCK_MONOTONIC, &then);
    then.tv_sec += WEIR_SERIES_STOP_MS / 1000;
    pthread_mutex_lock(&keeper->lock);
    keeper->closing = true;
    pthread_cond_signal(&keeper->more);
    while (!keeper->gone && err == 0)
        err = pthread_cond_timedwait(&keeper->ended, &keeper->lock, &then);
    bool gone = keeper->gone;
    int failed = !gone ? EBUSY : keeper->unmade ? keeper->unmade : keeper->failed;
    pthread_mutex_unlock(&keeper->lock);
    if (failed != 0)
        say_failed(use, failed);
    use->keeper = NULL;
    if (!gone) {
        pthread_detach(keeper->thread); /* with all that it uses */
        return;
    }
    pthread_join(keeper->thread, NULL);
    pthread_cond_destroy(&keeper->ended);
    pthread_cond_destroy(&keeper->more);
    pthread_mutex_destroy(&keeper->lock);
    free_keeper(keeper);
}
