/* SPDX-License-Identifier: Apache-2.0 */
/* see rescue.h */
#include "feature/standing/rescue.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/draft.h"
#include "feature/standing/history_db.h"

/* --- A disk that hangs ------------------------------------------------------------------------ */

/* One opening, shared by the thread that opens and the one that waits. The last of them frees it.
 */
struct opening {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char *path;
    struct weir_history_options options;
    bool done, left; /* left: nobody waits any more */
    int err;
    struct weir_history *history;
    struct weir_reason reason;
};

static void opening_free(struct opening *opening)
{
    pthread_mutex_destroy(&opening->lock);
    pthread_cond_destroy(&opening->changed);
    free(opening->path);
    free(opening);
}

static void *open_thread(void *context)
{
    struct opening *opening = context;
    bool left;

    opening->err = weir_history_open(&opening->history, &opening->options, &opening->reason);
    pthread_mutex_lock(&opening->lock);
    opening->done = true;
    left = opening->left;
    pthread_cond_signal(&opening->changed);
    pthread_mutex_unlock(&opening->lock);
    if (left) {
        weir_history_close(opening->history);
        opening_free(opening);
    }
    return NULL;
}

static struct opening *opening_new(const struct weir_history_options *options)
{
    struct opening *opening = calloc(1, sizeof *opening);
    pthread_condattr_t steady;

    if (!opening)
        return NULL;
    pthread_mutex_init(&opening->lock, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&opening->changed, &steady);
    pthread_condattr_destroy(&steady);
    opening->options = *options;
    opening->options.path = opening->path = strdup(options->path);
    if (opening->path)
        return opening;
    opening_free(opening);
    return NULL;
}

/* Whether it is done in time. */
static bool wait_for(struct opening *opening, unsigned wait_ms)
{
    struct timespec then;
    int err = 0;

    clock_gettime(CLOCK_MONOTONIC, &then);
    then.tv_sec += wait_ms / 1000;
    pthread_mutex_lock(&opening->lock);
    while (!opening->done && err == 0)
        err = pthread_cond_timedwait(&opening->changed, &opening->lock, &then);
    opening->left = !opening->done;
    pthread_mutex_unlock(&opening->lock);
    return !opening->left;
}

static int start_thread(pthread_t *thread, struct opening *opening)
{
    sigset_t all, old;
    int err;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    err = pthread_create(thread, NULL, open_thread, opening);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return err == 0 ? 0 : WEIR_ERR_MEMORY;
}

int weir_history_open_within(struct weir_history **history,
                             const struct weir_history_options *options, unsigned wait_ms,
                             struct weir_reason *reason)
{
    struct opening *opening = opening_new(options);
    pthread_t thread;
    int err;

    *history = NULL;
    if (!opening)
        return WEIR_ERR_MEMORY;
    if (start_thread(&thread, opening) < 0) {
        opening_free(opening);
        return WEIR_ERR_MEMORY;
    }
    if (!wait_for(opening, wait_ms)) {
        pthread_detach(thread);
        snprintf(reason->text, sizeof reason->text, "%.120s: the disk does not answer",
                 options->path);
        return WEIR_ERR_BUSY;
    }
    pthread_join(thread, NULL);
    *history = opening->history;
    err = opening->err;
    *reason = opening->reason;
    opening_free(opening);
    return err;
}

/* --- A file that goes ------------------------------------------------------------------------- */

enum weir_history_place weir_history_place(const struct weir_history *history)
{
    struct stat now;

    if (stat(history->path, &now) != 0)
        return errno == ENOENT ? WEIR_HISTORY_GONE : WEIR_HISTORY_THERE;
    return now.st_dev == history->file.st_dev && now.st_ino == history->file.st_ino
               ? WEIR_HISTORY_THERE
               : WEIR_HISTORY_OTHER;
}

void history_stat_log(const char *path, struct stat *status)
{
    char name[PATH_MAX];

    if ((size_t)snprintf(name, sizeof name, "%s-wal", path) >= sizeof name ||
        stat(name, status) != 0)
        memset(status, 0, sizeof *status);
}

static int write_copy(struct weir_history *history, const char *path, struct weir_reason *reason)
{
    char *sql = sqlite3_mprintf("VACUUM INTO %Q", path);
    int err = WEIR_ERR_MEMORY;

    if (sql) {
        unlink(path);
        history_create_private(path);
        err = history_run(history, sql, reason);
    }
    sqlite3_free(sql);
    return err;
}

/* What is beside a database belongs to the one that is gone: the new one would take a log of other
 * changes for its own. */
static void remove_beside(const char *path)
{
    static const char *const ends[] = {"-wal", "-shm"};
    char name[PATH_MAX];

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if ((size_t)snprintf(name, sizeof name, "%s%s", path, ends[i]) < sizeof name)
            unlink(name);
}

int weir_history_rescue(struct weir_history *history, struct weir_reason *reason)
{
    char copy[PATH_MAX];
    int err;

    if (!weir_draft_name(copy, history->path))
        return WEIR_ERR_TOO_LARGE;
    err = write_copy(history, copy, reason);
    if (err == 0) {
        remove_beside(history->path);
        if (rename(copy, history->path) == 0)
            return 0;
        err = WEIR_ERR_IO;
        if (reason)
            snprintf(reason->text, sizeof reason->text, "%.120s: %.80s", history->path,
                     strerror(errno));
    }
    unlink(copy);
    return err;
}

void weir_history_abandon(struct weir_history *history)
{
    struct stat log;

    if (!history)
        return;
    /* SQLite would remove what has the name of its log, which may be another file's by now. */
    sqlite3_db_config(history->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    history_stat_log(history->path, &log);
    if (log.st_ino == history->log.st_ino && log.st_dev == history->log.st_dev)
        remove_beside(history->path);
    weir_history_close(history);
}
