/* SPDX-License-Identifier: Apache-2.0 */
/* The history of standing: what is in force, every change with who, when and why, and the steps of
 * penalties that values have reached.
 *
 * An SQLite database (https://sqlite.org) with a write-ahead log; each change is one transaction
 * that is on the disk when the call returns, so it survives kill -9 and loss of power.
 * What the writer of the map sets is read back from here at start.
 *
 *   entry    kind, value, origin: level, since, until, reason, by, id     what is in force
 *   change   number: at, kind, value, origin, was, level, until, …        the audit
 *   ladder   kind, value, penalty: step, until, clean, gone, id           see ladder.h
 *   meta     version; the secret of the map, by which ids are made
 *
 * A value of a secret kind (headers, API keys) is never in the file: the caller gives its SHA-256
 * as the text of the value, and the id that the map has it by.
 *
 * Bounds: entries that have ended, ladders that are forgiven whole, and audit rows beyond a number
 * or an age, are removed by weir_history_prune, a thousand at a time. An entry takes about 200
 * bytes on disk, an audit row about 150.
 *
 * Processes: one writer; others may look (weir_history_options).
 *
 * A file that is deleted or replaced while it is open, a disk that hangs: rescue.h.
 *
 * Threads: one owner. Calls wait for the disk, and options.patience_ms for another process that has
 * the database locked.
 */
#ifndef WEIR_FEATURE_STANDING_HISTORY_H
#define WEIR_FEATURE_STANDING_HISTORY_H

#include "feature/standing/ladder.h"
#include "feature/standing/standing.h"

#define WEIR_HISTORY_PATIENCE_MS 2000
#define WEIR_HISTORY_ROWS_DEFAULT 1000000
#define WEIR_HISTORY_AGE_DEFAULT_NS (UINT64_C(400) * 24 * 3600 * 1000000000)

struct weir_history;

struct weir_history_options {
    const char *path;
    uint64_t rows_max; /* of the audit; 0: ROWS_DEFAULT */
    uint64_t age_ns;   /* of its oldest row; 0: AGE_DEFAULT_NS (400 days) */
    bool look;         /* only to read what another process may be writing: nothing is made */
    int patience_ms;   /* 0: PATIENCE_MS */
};

/* A value and an entry for it: of the history, or about to be. */
struct weir_history_entry {
    struct weir_bytes kind;  /* "user", "client.ip" */
    struct weir_bytes value; /* as it is shown: "ada", "192.0.2.0/24", "sha256:…" */
    bool network;            /* the value is one; else `id` counts */
    uint64_t id[2];
    struct weir_bytes by; /* who made it: "operator ada", "penalty brute-force" */
    struct weir_standing_entry entry;
};

/* One row of the audit. */
struct weir_history_row {
    uint64_t at_ns;
    int was, level;               /* enum weir_standing_level; -1: there was, or is, no entry */
    struct weir_history_entry to; /* of a removal: level, reason and end are empty */
};

/* Opens or creates. Errors, which *reason explains with the path: WEIR_ERR_IO (no such folder, no
 * permission, the disk is full; to look: no such file), WEIR_ERR_BUSY (another process has it
 * locked), WEIR_ERR_DAMAGED, WEIR_ERR_FORMAT (a database of another program, or of a newer weir),
 * WEIR_ERR_MEMORY. */
int weir_history_open(struct weir_history **history, const struct weir_history_options *options,
                      struct weir_reason *reason) __attribute__((warn_unused_result));
void weir_history_close(struct weir_history *history);

/* How long calls wait from now on for another process that has it locked. */
void weir_history_be_patient(struct weir_history *history, int patience_ms);

/* The secret by which the map makes ids; made when the database was. */
void weir_history_secret(const struct weir_history *history, uint64_t secret[2]);

/* Begins and ends a transaction around several changes: all are kept, or none. Errors: as
 * weir_history_set. */
int weir_history_begin(struct weir_history *history, struct weir_reason *reason)
    __attribute__((warn_unused_result));
int weir_history_end(struct weir_history *history, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Sets an entry, and notes the change. *was: the level before, or -1. Errors: WEIR_ERR_IO,
 * WEIR_ERR_BUSY, WEIR_ERR_DAMAGED, with *reason; then nothing is changed, also by the other changes
 * of a transaction around it. */
int weir_history_set(struct weir_history *history, uint64_t now_ns,
                     const struct weir_history_entry *entry, int *was, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Removes the entry of a value and origin, with that of penalties also its ladders; `like` has
 * these, `by` and the reason of the removal. Returns 1 when an entry was in force or a step had
 * been reached, 0 when not; fills id and *was. Errors: as above. */
int weir_history_clear(struct weir_history *history, uint64_t now_ns,
                       struct weir_history_entry *like, int *was, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* The ladder of one penalty for one value. */
struct weir_history_ladder {
    struct weir_bytes penalty, kind, value;
    bool network;
    uint64_t id[2];   /* of an exact value */
    uint64_t gone_ns; /* when all of it is forgiven: then it may be removed */
    struct weir_ladder_state state;
};

/* Puts a ladder's state in the place of another one: all zero, where there is none yet; NULL: of
 * whatever is there. Returns 1; 0: another state is there, and nothing is changed. Errors: as
 * weir_history_set. */
int weir_history_swap_ladder(struct weir_history *history, const struct weir_history_ladder *ladder,
                             const struct weir_ladder_state *expected, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Removes entries that have ended, ladders that are gone, and rows that are too old or too many, up
 * to 1,000 of each. Errors: as above. */
int weir_history_prune(struct weir_history *history, uint64_t now_ns, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Which entries, ladders or rows; what is absent does not matter. */
struct weir_history_filter {
    struct weir_bytes kind, value;
    int level;       /* of entries: -1: any */
    uint64_t now_ns; /* of entries: only those in force then; of ladders: that are not gone */
    uint64_t skip, count;
};

/* Calls `take` for each entry or ladder, by kind and value, or for each row of the audit, the
 * newest first.
 * What it is given lives during the call. Errors: as above. */
int weir_history_entries(struct weir_history *history, const struct weir_history_filter *filter,
                         void (*take)(void *context, const struct weir_history_entry *entry),
                         void *context, struct weir_reason *reason)
    __attribute__((warn_unused_result));
int weir_history_ladders(struct weir_history *history, const struct weir_history_filter *filter,
                         void (*take)(void *context, const struct weir_history_ladder *ladder),
                         void *context, struct weir_reason *reason)
    __attribute__((warn_unused_result));
int weir_history_rows(struct weir_history *history, const struct weir_history_filter *filter,
                      void (*take)(void *context, const struct weir_history_row *row),
                      void *context, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
