/* SPDX-License-Identifier: Apache-2.0 */
/* A state file that cannot be opened: a state that does not answer.
 *
 * Limits are then decided by their on_store_error, on a stand-in: private memory of the same size,
 * in which `local` ones count. A thread tries once a second to open the file. When it can, it
 * brings the lanes there one by one, so that no request waits for a file; what the stand-in counted
 * ends with it. The rules that the file will be decided by are read at the same time as those of
 * the stand-in, because a limit has its number in one table only, and because the rules file of a
 * program may be gone when the state is there.
 *
 *   weir_open:    open the file ── fails ──▶ stand-in, thread
 *   thread, 1/s:  open the file ── fails ──▶ say why, once a minute
 *                      └── the rules' limits, lanes one by one ──▶ say it, end
 *
 * Memory: the stand-in, as far as it is used; the rules once more. Threads: internally locked; the
 * thread takes no signals, and says what there is to say while it holds no lock.
 */
#ifndef WEIR_LIBRARY_ABSENCE_H
#define WEIR_LIBRARY_ABSENCE_H

#include <pthread.h>
#include <stdbool.h>

#include <weir/weir.h>

#include "rules/rules.h"
#include "table/table.h"

struct weir_absence {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ending;            /* under `lock` */
    int err;                /* under `lock`: why there is no state; 0: there is one */
    struct weir_reason why; /* under `lock` */
    bool watched;           /* there is, or was, a thread to join */
    pthread_t thread;
    struct weir_table *stand_in;    /* NULL: the state could be opened at once */
    struct weir_rules *rules;       /* of the file, when it is there; under weir->reloading */
    struct weir_table_options file; /* how it is opened; the texts are owned */
    char *texts[3];
};

/* None is absent. */
void weir_absence_init(struct weir_absence *absence);

/* Whether weir_open continues after this error of opening the state file `path` (NULL: private
 * memory). */
bool weir_absence_follows(const struct weir_options *options, const char *path, int err);

/* Opens the stand-in and prepares the rules for it; `err` and `why`: what the file failed by.
 * Errors: as weir_open without a file. */
int weir_absence_begin(struct weir *weir, struct weir_rules *rules,
                       const struct weir_options *options, int err, const struct weir_reason *why,
                       struct weir_reason *reason) __attribute__((warn_unused_result));

/* Says so, and starts the thread; the last step of weir_open. Errors: WEIR_ERR_MEMORY. */
int weir_absence_watch(struct weir *weir) __attribute__((warn_unused_result));

/* Under weir->reloading, where the state is absent: the file's rules are these from now on, read
 * once more; NULL: they are not to be read again. */
void weir_absence_set_rules(struct weir_absence *absence, struct weir_rules *rules);

/* Why there is no state, or 0. */
int weir_absence_why(struct weir_absence *absence, struct weir_reason *reason);

/* Ends the thread, which may be in the middle of opening a file. */
void weir_absence_end(struct weir_absence *absence);

/* Frees what is left, when no lane is on the stand-in any more. */
void weir_absence_close(struct weir_absence *absence);

#endif
