/* SPDX-License-Identifier: Apache-2.0 */
/* What the sources of the history share; see history.h. */
#ifndef WEIR_FEATURE_STANDING_HISTORY_DB_H
#define WEIR_FEATURE_STANDING_HISTORY_DB_H

#include <sqlite3.h>
#include <sys/stat.h>

#include "feature/standing/history.h"

#define HISTORY_STATEMENTS 16

struct weir_history {
    sqlite3 *db;
    char *path;
    struct weir_history_options options; /* its path is not valid: that is the one above */
    struct stat file, log;               /* as they were opened; log: SQLite's, beside it */
    uint64_t rows_max, age_ns;
    uint64_t secret[2];
    bool grouped; /* between begin and end */
    bool failed;  /* a change of the group */
    sqlite3_stmt *statements[HISTORY_STATEMENTS];
};

/* Errors: as weir_history_set; `reason` may be NULL. */
int history_run(struct weir_history *history, const char *sql, struct weir_reason *reason);

/* Fills *status of the log beside a database; all zero: there is none. */
void history_stat_log(const char *path, struct stat *status);

/* Makes an empty file that only its owner may read and write, where there is none. */
void history_create_private(const char *path);

#endif
