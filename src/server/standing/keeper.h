/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that writes and reads the history of standing: the disk never holds up the control
 * loop, nor a decision.
 *
 *   loop   weir_keeper_take, _start ─▶ queue ─▶ thread: history ─▶ loop: job->done
 *
 * Jobs are done in order. A job that changes something is done when it is on the disk. Changes that
 * wait together are committed together, WEIR_KEEPER_GROUP_MAX at most.
 *
 * Memory: WEIR_KEEPER_JOBS_MAX jobs of about 2 KiB at most; a full queue is an error of the
 * caller's.
 *
 * Threads: all functions belong to the loop's thread.
 */
#ifndef WEIR_SERVER_STANDING_KEEPER_H
#define WEIR_SERVER_STANDING_KEEPER_H

#include <jansson.h>
#include <uv.h>

#include "standing/history.h"
#include "standing/list.h"

#define WEIR_KEEPER_JOBS_MAX 4096
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

struct weir_keeper_job {
    enum weir_keeper_op op;
    uint64_t now_ns;
    struct weir_history_entry entry; /* its texts are those below */
    struct weir_history_filter filter;
    char kind[WEIR_STANDING_KIND_MAX + 1], value[WEIR_LIST_VALUE_MAX + 1];
    char by[WEIR_KEEPER_BY_ROOM + 1];
    const struct weir_keeper_swap *swap;       /* these two are the caller's, until `done` */
    struct weir_keeper_ladders *ladders;       /* ENTRIES: NULL: without */
    void (*done)(struct weir_keeper_job *job); /* on the loop; frees it: weir_keeper_free */
    void *context;

    /* What came out. */
    int err;
    struct weir_reason reason;
    bool found; /* CLEAR: something was there; then `id` of entry is the value's, where an entry was
                   in force. SWAP: it was as expected, and is changed */
    int was;    /* level before, or -1 */
    json_t *answer, *moves;

    struct weir_keeper_job *next;
};

/* Starts the thread; `history` is the keeper's until it is stopped. Errors: WEIR_ERR_MEMORY,
 * WEIR_ERR_IO. */
int weir_keeper_open(struct weir_keeper **keeper, struct weir_history *history, uv_loop_t *loop)
    __attribute__((warn_unused_result));

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

/* Finishes what is queued and ends the thread; no `done` is called any more. */
void weir_keeper_stop(struct weir_keeper *keeper);
/* Frees it, after its loop is closed. NULL is allowed. */
void weir_keeper_close(struct weir_keeper *keeper);

/* A job with its texts, or NULL: there are too many, or no memory. `value` and `by` are cut to
 * their room. */
struct weir_keeper_job *weir_keeper_take(struct weir_keeper *keeper, enum weir_keeper_op op,
                                         struct weir_bytes kind, struct weir_bytes value,
                                         struct weir_bytes by);
void weir_keeper_start(struct weir_keeper *keeper, struct weir_keeper_job *job);
void weir_keeper_free(struct weir_keeper *keeper, struct weir_keeper_job *job);

/* Jobs that are not done. */
unsigned weir_keeper_jobs(const struct weir_keeper *keeper);

/* JSON of an entry in force: "level", "origin", "since_ms", "until_ms", "reason". */
json_t *weir_standing_json(const struct weir_standing_entry *entry);

/* Appends the JSON of an entry, or of a row of the audit, to an array (`context`). */
void weir_standing_add_entry(void *context, const struct weir_history_entry *entry);
void weir_standing_add_row(void *context, const struct weir_history_row *row);

#endif
