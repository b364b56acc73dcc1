/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that writes and reads the history of standing: the disk never holds up the control
 * loop, nor a decision.
 *
 *   loop   weir_keeper_take, _start ─▶ queue ─▶ thread: history ─▶ loop: job->done
 *                                        └─ not done after LATE_MS ─▶ loop: job->late
 *
 * Jobs are done in order. A job that changes something is done when it is on the disk. Changes that
 * wait together are committed together, WEIR_KEEPER_GROUP_MAX at most.
 *
 * A history that does not take changes (locked, on a full disk, on one that hangs) has them wait:
 * they are tried again every second, and at once when the keeper stops. Reading continues
 * meanwhile, where the history can be read. A stop waits STOP_MS; what is not written then is lost,
 * and weir_keeper_each_lost names it.
 *
 * A file that is gone from its path is written there again, from what is open; another file that
 * has the path is opened. The thread looks for that every second, and weir_keeper_reopen asks for
 * it.
 *
 * Memory: WEIR_KEEPER_JOBS_MAX jobs of about 900 bytes at most; a full queue is an error of the
 * caller's.
 *
 * Threads: all functions belong to the loop's thread.
 */
#ifndef WEIR_FEATURE_STANDING_SERVER_KEEPER_H
#define WEIR_FEATURE_STANDING_SERVER_KEEPER_H

#include <jansson.h>
#include <uv.h>

#include "feature/standing/history.h"
#include "feature/standing/list.h"

#define WEIR_KEEPER_JOBS_MAX 65536
#define WEIR_KEEPER_BACKEND_MAX 4096 /* of a backend: Redis bounds its answers by time */
/* How long a caller waits for its job, and a stop for what is queued. */
#define WEIR_KEEPER_LATE_MS 1000
#define WEIR_KEEPER_STOP_MS 5000
#define WEIR_KEEPER_GROUP_MAX 256
#define WEIR_KEEPER_BY_MAX 64  /* of an operator */
#define WEIR_KEEPER_BY_ROOM 80 /* "penalty " and a name */
/* Penalties of one value that are looked at: those of the rules, and some that are no longer. */
#define WEIR_KEEPER_LADDERS_MAX 32
#define WEIR_KEEPER_PENALTY_MAX 64

struct weir_keeper;

enum weir_keeper_op {
    WEIR_KEEPER_SET,     /* entry.entry of its origin */
    WEIR_KEEPER_CLEAR,   /* the entries of operators and penalties of a value, and its ladders */
    WEIR_KEEPER_LADDERS, /* reads the ladders of a value into `ladders` */
    WEIR_KEEPER_SWAP,    /* does `swap` */
    WEIR_KEEPER_PUT,     /* does `put` */
    WEIR_KEEPER_PAGE,    /* some ladders of all, into `page` */
    WEIR_KEEPER_ENTRIES, /* the entries that `filter` wants, as JSON; `ladders` likewise, and the
                            last moves among the changes as `moves` */
    WEIR_KEEPER_ROWS,    /* the changes, likewise */
};

/* The steps that a value has reached. */
struct weir_keeper_ladders {
    uint32_t count;
    struct weir_keeper_ladder {
        char penalty[WEIR_KEEPER_PENALTY_MAX + 1];
        struct weir_ladder_state state;
    } ladders[WEIR_KEEPER_LADDERS_MAX];
};

/* A compare-and-set of one ladder, and with it, where `sets`, of the entry of the job. */
struct weir_keeper_swap {
    struct weir_bytes penalty;
    struct weir_ladder_state expected, next;
    uint64_t gone_ns; /* when `next` is forgiven whole */
    bool sets;
};

/* A ladder as it is now, whatever the history has. */
struct weir_keeper_put {
    char penalty[WEIR_KEEPER_PENALTY_MAX + 1];
    struct weir_ladder_state state;
    uint64_t gone_ns;
    bool sets; /* the entry of the job, too */
};

/* Ladders of all values, in order of kind and value. */
#define WEIR_KEEPER_PAGE_MAX 256
struct weir_keeper_page {
    uint64_t skip, now_ns; /* in: how many were read before */
    uint32_t count;
    struct weir_keeper_page_row {
        char kind[WEIR_STANDING_KIND_MAX + 1], value[WEIR_LIST_VALUE_MAX + 1];
        bool network;
        uint64_t id[2];
        uint64_t gone_ns;
        struct weir_keeper_ladder ladder;
    } rows[WEIR_KEEPER_PAGE_MAX];
};

struct weir_keeper_job {
    enum weir_keeper_op op;
    uint64_t now_ns;
    struct weir_history_entry entry; /* its texts are in `texts` */
    struct weir_history_filter filter;
    const struct weir_keeper_swap *swap; /* these two are the caller's, until `done` */
    struct weir_keeper_ladders *ladders; /* ENTRIES: NULL: without */
    struct weir_keeper_put *put;         /* these two are freed with the job */
    struct weir_keeper_page *page;
    void (*done)(struct weir_keeper_job *job); /* on the loop; frees it: weir_keeper_free */
    void (*late)(struct weir_keeper_job *job); /* on the loop, once, before `done`; NULL: nobody
                                                  waits */
    void (*drop)(struct weir_keeper_job *job); /* in place of `done` of a keeper that is closed;
                                                  NULL: weir_keeper_free */
    void *context;

    /* What came out. */
    int err;
    struct weir_reason reason;
    bool found; /* CLEAR: something was there; then `id` of entry is the value's, where an entry was
                   in force. SWAP: it was as expected, and is changed */
    int was;    /* level before, or -1 */
    json_t *answer, *moves;

    struct weir_keeper_job *next;
    uint64_t number;                         /* the keeper's: in the order of their start */
    struct weir_keeper_job *waits, **waited; /* in the list of those that are waited for */
    uint64_t late_ns;
    char texts[]; /* kind, value, by: each with a NUL */
};

/* Starts the thread. `history` is the keeper's from now on, also where this fails; NULL: it could
 * not be opened, and the thread keeps trying. `path` is copied. Errors: WEIR_ERR_MEMORY,
 * WEIR_ERR_IO. */
int weir_keeper_open(struct weir_keeper **keeper, struct weir_history *history, const char *path,
                     uv_loop_t *loop) __attribute__((warn_unused_result));

/* What does jobs instead of a thread and a history: standing that nodes share (redis/shared.h). It
 * calls `done` on the loop, later than `start`. */
struct weir_keeper_backend {
    void (*start)(struct weir_keeper_backend *backend, struct weir_keeper_job *job);
    struct weir_keeper *keeper; /* whose jobs they are: weir_keeper_open_on sets it */
};

/* A keeper without a thread. The backend ends before the keeper is closed, and frees the jobs that
 * it has then. Errors: WEIR_ERR_MEMORY. */
int weir_keeper_open_on(struct weir_keeper **keeper, struct weir_keeper_backend *backend)
    __attribute__((warn_unused_result));

/* Writes what is queued, for STOP_MS at most, and ends the thread; no `done` is called any more. */
void weir_keeper_stop(struct weir_keeper *keeper);
/* Of one that is stopped: calls `take` for each change that was not written. */
void weir_keeper_each_lost(struct weir_keeper *keeper,
                           void (*take)(void *context, const struct weir_keeper_job *job),
                           void *context);
/* Frees it, after its loop is closed; not what a thread has that hangs in the disk. NULL is
 * allowed. */
void weir_keeper_close(struct weir_keeper *keeper);

/* Has the thread look at the file now, and open it again. */
void weir_keeper_reopen(struct weir_keeper *keeper);

struct weir_keeper_state {
    bool opened;               /* the history has been opened */
    bool down;                 /* it takes no changes now */
    struct weir_reason reason; /* why not */
    uint64_t reopened;         /* times that a file was opened in place of another */
    uint64_t lost;             /* changes that a stop has not written */
};
void weir_keeper_state(struct weir_keeper *keeper, struct weir_keeper_state *state);

/* Whether weir_keeper_take will have room. */
bool weir_keeper_has_room(const struct weir_keeper *keeper);

/* A job with its texts, or NULL: there are too many, or no memory. `value` and `by` are cut to
 * WEIR_LIST_VALUE_MAX and WEIR_KEEPER_BY_ROOM bytes. */
struct weir_keeper_job *weir_keeper_take(struct weir_keeper *keeper, enum weir_keeper_op op,
                                         struct weir_bytes kind, struct weir_bytes value,
                                         struct weir_bytes by);
void weir_keeper_start(struct weir_keeper *keeper, struct weir_keeper_job *job);
void weir_keeper_free(struct weir_keeper *keeper, struct weir_keeper_job *job);

/* Jobs that are not done. */
unsigned weir_keeper_jobs(const struct weir_keeper *keeper);

#endif
