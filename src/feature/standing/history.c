/* SPDX-License-Identifier: Apache-2.0 */
/* see history.h */
#include "feature/standing/history_db.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define VERSION 1
/* "weir" in PRAGMA application_id. */
#define APPLICATION 0x77656972

/* Rows that one change removes at most: it must not take long. */
#define PRUNE_ROWS "1000"

static const char schema[] =
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE entry(kind TEXT, value TEXT, origin INTEGER, level INTEGER, since INTEGER,"
    " until INTEGER, reason TEXT, by TEXT, network INTEGER, id BLOB,"
    " PRIMARY KEY(kind, value, origin)) WITHOUT ROWID;"
    "CREATE INDEX entry_until ON entry(until) WHERE until IS NOT NULL;"
    "CREATE TABLE change(number INTEGER PRIMARY KEY, at INTEGER, kind TEXT, value TEXT,"
    " origin INTEGER, was INTEGER, level INTEGER, until INTEGER, reason TEXT, by TEXT);"
    "CREATE INDEX change_value ON change(kind, value, number);"
    "PRAGMA user_version = 1;"
    "PRAGMA application_id = 2003134834;";

/* Since version 1 was first released the file has gained this table; programs that do not know it
 * leave it alone. */
static const char schema_of_ladders[] =
    "CREATE TABLE IF NOT EXISTS ladder(kind TEXT, value TEXT, penalty TEXT, step INTEGER,"
    " until INTEGER, clean INTEGER, gone INTEGER, network INTEGER, id BLOB,"
    " PRIMARY KEY(kind, value, penalty)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS ladder_gone ON ladder(gone) WHERE gone IS NOT NULL;";

enum statement {
    GET,
    PUT,
    REMOVE,
    NOTE,
    PRUNE_ENTRIES,
    PRUNE_AGE,
    PRUNE_COUNT,
    LIST,
    ROWS,
    GET_LADDER,
    PUT_LADDER,
    REMOVE_LADDERS,
    PRUNE_LADDERS,
    LADDERS,
    STATEMENTS,
};

_Static_assert(STATEMENTS <= HISTORY_STATEMENTS, "there is room for all");

static const char *const texts[STATEMENTS] = {
    [GET] = "SELECT level, until, id FROM entry WHERE kind = ?1 AND value = ?2 AND origin = ?3",
    [PUT] = "INSERT OR REPLACE INTO entry(kind, value, origin, level, since, until, reason, by, "
            "network, id) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    [REMOVE] = "DELETE FROM entry WHERE kind = ?1 AND value = ?2 AND origin = ?3",
    [NOTE] = "INSERT INTO change(at, kind, value, origin, was, level, until, reason, by) "
             "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [PRUNE_ENTRIES] = "DELETE FROM entry WHERE (kind, value, origin) IN (SELECT kind, value, origin"
                      " FROM entry WHERE until <= ?1 LIMIT " PRUNE_ROWS ")",
    /* Numbers are in the order of time. */
    [PRUNE_AGE] = "DELETE FROM change WHERE number IN (SELECT number FROM (SELECT number, at FROM "
                  "change ORDER BY number LIMIT " PRUNE_ROWS ") WHERE at < ?1)",
    [PRUNE_COUNT] = "DELETE FROM change WHERE number IN (SELECT number FROM change WHERE number <= "
                    "(SELECT max(number) FROM change) - ?1 ORDER BY number LIMIT " PRUNE_ROWS ")",
    [LIST] = "SELECT kind, value, origin, level, since, until, reason, by, network, id FROM entry "
             "WHERE (?1 IS NULL OR kind = ?1) AND (?2 IS NULL OR value = ?2) AND (?3 < 0 OR level "
             "= ?3) AND (until IS NULL OR until > ?4) ORDER BY kind, value, origin LIMIT ?5 OFFSET "
             "?6",
    [ROWS] = "SELECT at, kind, value, origin, was, level, until, reason, by FROM change WHERE (?1 "
             "IS NULL OR kind = ?1) AND (?2 IS NULL OR value = ?2) ORDER BY number DESC LIMIT ?3 "
             "OFFSET ?4",
    [GET_LADDER] = "SELECT step, until, clean FROM ladder WHERE kind = ?1 AND value = ?2 AND "
                   "penalty = ?3",
    [PUT_LADDER] = "INSERT OR REPLACE INTO ladder(kind, value, penalty, step, until, clean, gone, "
                   "network, id) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [REMOVE_LADDERS] = "DELETE FROM ladder WHERE kind = ?1 AND value = ?2",
    [PRUNE_LADDERS] = "DELETE FROM ladder WHERE (kind, value, penalty) IN (SELECT kind, value, "
                      "penalty FROM ladder WHERE gone <= ?1 LIMIT " PRUNE_ROWS ")",
    [LADDERS] = "SELECT kind, value, penalty, step, until, clean, gone, network, id FROM ladder "
                "WHERE (?1 IS NULL OR kind = ?1) AND (?2 IS NULL OR value = ?2) AND (gone IS NULL "
                "OR gone > ?3) ORDER BY kind, value, penalty LIMIT ?4 OFFSET ?5",
};

static int code_of(int result)
{
    switch (result & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return WEIR_ERR_BUSY;
    case SQLITE_CORRUPT:
        return WEIR_ERR_DAMAGED;
    case SQLITE_NOTADB:
        return WEIR_ERR_FORMAT;
    case SQLITE_NOMEM:
        return WEIR_ERR_MEMORY;
    default:
        return WEIR_ERR_IO;
    }
}

static int fail(const char *path, sqlite3 *db, int result, struct weir_reason *reason)
{
    int err = code_of(result);
    const char *what = db ? sqlite3_errmsg(db) : sqlite3_errstr(result);
    const char *advice = err == WEIR_ERR_BUSY      ? "; end the other process that has it open"
                         : err == WEIR_ERR_DAMAGED ? "; move it away, and weir makes a new one"
                         : err == WEIR_ERR_FORMAT  ? "; name another file"
                                                   : "";

    if (reason)
        snprintf(reason->text, sizeof reason->text, "%.120s: %.80s%s", path, what, advice);
    return err;
}

static int fail_here(struct weir_history *history, int result, struct weir_reason *reason)
{
    return fail(history->path, history->db, result, reason);
}

int history_run(struct weir_history *history, const char *sql, struct weir_reason *reason)
{
    int result = sqlite3_exec(history->db, sql, NULL, NULL, NULL);

    return result == SQLITE_OK ? 0 : fail_here(history, result, reason);
}

/* The number that a query answers, or -1. */
static int64_t ask(struct weir_history *history, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int64_t number = -1;

    if (sqlite3_prepare_v2(history->db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

static int make_tables(struct weir_history *history, struct weir_reason *reason)
{
    sqlite3_stmt *statement = NULL;
    int err = history_run(history, "BEGIN IMMEDIATE", reason), result;

    if (err == 0 && ask(history, "PRAGMA user_version") == 0) {
        if (getrandom(history->secret, sizeof history->secret, 0) != sizeof history->secret)
            return WEIR_ERR_IO;
        err = history_run(history, schema, reason);
        if (err < 0)
            return err;
        result = sqlite3_prepare_v2(history->db, "INSERT INTO meta VALUES('secret', ?1)", -1,
                                    &statement, NULL);
        if (result == SQLITE_OK) {
            sqlite3_bind_blob(statement, 1, history->secret, sizeof history->secret, NULL);
            result = sqlite3_step(statement);
        }
        sqlite3_finalize(statement);
        if (result != SQLITE_DONE)
            return fail_here(history, result, reason);
    }
    return err < 0 ? err : history_run(history, "COMMIT", reason);
}

static int check_version(struct weir_history *history, struct weir_reason *reason)
{
    int64_t tables = ask(history, "SELECT count(*) FROM sqlite_schema");
    int64_t version = ask(history, "PRAGMA user_version");
    int64_t application = ask(history, "PRAGMA application_id");

    if (tables < 0 || version < 0)
        return fail_here(history, sqlite3_errcode(history->db), reason);
    if (tables == 0 && version == 0)
        return make_tables(history, reason);
    if (application != APPLICATION || version != VERSION) {
        if (reason)
            snprintf(reason->text, sizeof reason->text, "%.120s: %s", history->path,
                     application != APPLICATION
                         ? "a database of another program; name another file"
                         : "a history of another version of weir; use that one, or name another "
                           "file");
        return WEIR_ERR_FORMAT;
    }
    return 0;
}

static int read_secret(struct weir_history *history, struct weir_reason *reason)
{
    sqlite3_stmt *statement = NULL;
    int err = WEIR_ERR_DAMAGED;
    int result = sqlite3_prepare_v2(history->db, "SELECT value FROM meta WHERE name = 'secret'", -1,
                                    &statement, NULL);

    if (result == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW &&
        sqlite3_column_bytes(statement, 0) == sizeof history->secret) {
        memcpy(history->secret, sqlite3_column_blob(statement, 0), sizeof history->secret);
        err = 0;
    }
    sqlite3_finalize(statement);
    return err == 0 ? 0 : fail(history->path, NULL, SQLITE_CORRUPT, reason);
}

static int prepare(struct weir_history *history, struct weir_reason *reason)
{
    for (int i = 0; i < STATEMENTS; i++) {
        int result = sqlite3_prepare_v3(history->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                        &history->statements[i], NULL);

        if (result != SQLITE_OK)
            return fail_here(history, result, reason);
    }
    return 0;
}

/* see history_db.h; SQLite gives the files beside it the same rights. What goes wrong here goes
 * wrong again when SQLite opens it. */
void history_create_private(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
}

/* Opens the database of the options into *history, which has nothing open. */
static int open_database(struct weir_history *history, struct weir_reason *reason)
{
    const struct weir_history_options *options = &history->options;
    int result, err;

    if (!options->look)
        history_create_private(history->path);
    result = sqlite3_open_v2(
        history->path, &history->db,
        SQLITE_OPEN_NOMUTEX |
            (options->look ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE),
        NULL);
    err = result == SQLITE_OK ? 0 : fail_here(history, result, reason);
    if (err < 0)
        return err;
    sqlite3_busy_timeout(history->db,
                         options->patience_ms ? options->patience_ms : WEIR_HISTORY_PATIENCE_MS);
    err = check_version(history, reason);
    if (err == 0 && !options->look)
        err = history_run(history, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", reason);
    if (err == 0 && !options->look)
        err = history_run(history, schema_of_ladders, reason);
    if (err == 0)
        err = read_secret(history, reason);
    if (err == 0)
        err = prepare(history, reason);
    if (err == 0 && stat(history->path, &history->file) != 0)
        memset(&history->file, 0, sizeof history->file); /* gone already */
    if (err == 0)
        history_stat_log(history->path, &history->log);
    return err;
}

static void close_database(struct weir_history *history)
{
    for (int i = 0; i < STATEMENTS; i++) {
        sqlite3_finalize(history->statements[i]);
        history->statements[i] = NULL;
    }
    sqlite3_close(history->db);
    history->db = NULL;
}

int weir_history_open(struct weir_history **history, const struct weir_history_options *options,
                      struct weir_reason *reason)
{
    struct weir_history *opened = calloc(1, sizeof *opened);
    int err = WEIR_ERR_MEMORY;

    *history = NULL;
    if (!opened)
        return WEIR_ERR_MEMORY;
    opened->options = *options;
    opened->rows_max = options->rows_max ? options->rows_max : WEIR_HISTORY_ROWS_DEFAULT;
    opened->age_ns = options->age_ns ? options->age_ns : WEIR_HISTORY_AGE_DEFAULT_NS;
    opened->path = strdup(options->path);
    if (opened->path)
        err = open_database(opened, reason);
    if (err < 0)
        weir_history_close(opened);
    else
        *history = opened;
    return err;
}

void weir_history_close(struct weir_history *history)
{
    if (!history)
        return;
    close_database(history);
    free(history->path);
    free(history);
}

void weir_history_be_patient(struct weir_history *history, int patience_ms)
{
    sqlite3_busy_timeout(history->db, patience_ms);
}

void weir_history_secret(const struct weir_history *history, uint64_t secret[2])
{
    memcpy(secret, history->secret, sizeof history->secret);
}

/* --- Changes ---------------------------------------------------------------------------------- */

static void bind_text(sqlite3_stmt *statement, int at, struct weir_bytes text)
{
    if (text.data)
        sqlite3_bind_text64(statement, at, text.data, text.size, SQLITE_STATIC, SQLITE_UTF8);
    else
        sqlite3_bind_null(statement, at);
}

/* A time; without an end NULL. */
static void bind_time(sqlite3_stmt *statement, int at, uint64_t time_ns)
{
    if (time_ns <= INT64_MAX)
        sqlite3_bind_int64(statement, at, (int64_t)time_ns);
    else
        sqlite3_bind_null(statement, at);
}

static uint64_t column_time(sqlite3_stmt *statement, int at)
{
    return sqlite3_column_type(statement, at) == SQLITE_NULL
               ? WEIR_NEVER
               : (uint64_t)sqlite3_column_int64(statement, at);
}

static void bind_key(sqlite3_stmt *statement, const struct weir_history_entry *entry)
{
    bind_text(statement, 1, entry->kind);
    bind_text(statement, 2, entry->value);
    sqlite3_bind_int(statement, 3, entry->entry.origin);
}

/* Runs a statement that answers nothing. */
static int step(struct weir_history *history, enum statement which, struct weir_reason *reason)
{
    sqlite3_stmt *statement = history->statements[which];
    int result = sqlite3_step(statement);
    int err = result == SQLITE_DONE ? 0 : fail_here(history, result, reason);

    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return err;
}

/* The level in force of an entry, or -1; its id. */
static int get(struct weir_history *history, uint64_t now_ns, const struct weir_history_entry *like,
               int *was, uint64_t id[2], struct weir_reason *reason)
{
    sqlite3_stmt *statement = history->statements[GET];
    int result, err = 0;

    *was = -1;
    bind_key(statement, like);
    result = sqlite3_step(statement);
    if (result == SQLITE_ROW && column_time(statement, 1) > now_ns) {
        *was = sqlite3_column_int(statement, 0);
        if (sqlite3_column_bytes(statement, 2) == 2 * sizeof *id)
            memcpy(id, sqlite3_column_blob(statement, 2), 2 * sizeof *id);
    } else if (result != SQLITE_ROW && result != SQLITE_DONE) {
        err = fail_here(history, result, reason);
    }
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return err;
}

static int put(struct weir_history *history, const struct weir_history_entry *entry,
               struct weir_reason *reason)
{
    sqlite3_stmt *statement = history->statements[PUT];

    bind_key(statement, entry);
    sqlite3_bind_int(statement, 4, entry->entry.level);
    bind_time(statement, 5, entry->entry.since_ns);
    bind_time(statement, 6, entry->entry.until_ns);
    sqlite3_bind_text(statement, 7, entry->entry.reason, entry->entry.reason_size, SQLITE_STATIC);
    bind_text(statement, 8, entry->by);
    sqlite3_bind_int(statement, 9, entry->network);
    sqlite3_bind_blob(statement, 10, entry->id, sizeof entry->id, SQLITE_STATIC);
    return step(history, PUT, reason);
}

/* The audit's row: `level` is -1 for a removal. */
static int note(struct weir_history *history, uint64_t now_ns,
                const struct weir_history_entry *entry, int was, int level,
                struct weir_reason *reason)
{
    sqlite3_stmt *statement = history->statements[NOTE];

    bind_time(statement, 1, now_ns);
    bind_text(statement, 2, entry->kind);
    bind_text(statement, 3, entry->value);
    sqlite3_bind_int(statement, 4, entry->entry.origin);
    sqlite3_bind_int(statement, 5, was);
    sqlite3_bind_int(statement, 6, level);
    bind_time(statement, 7, level < 0 ? WEIR_NEVER : entry->entry.until_ns);
    sqlite3_bind_text(statement, 8, entry->entry.reason, entry->entry.reason_size, SQLITE_STATIC);
    bind_text(statement, 9, entry->by);
    return step(history, NOTE, reason);
}

static int prune(struct weir_history *history, uint64_t now_ns, struct weir_reason *reason)
{
    uint64_t oldest_ns = now_ns > history->age_ns ? now_ns - history->age_ns : 0;
    int err;

    bind_time(history->statements[PRUNE_ENTRIES], 1, now_ns);
    err = step(history, PRUNE_ENTRIES, reason);
    if (err < 0)
        return err;
    bind_time(history->statements[PRUNE_LADDERS], 1, now_ns);
    err = step(history, PRUNE_LADDERS, reason);
    if (err < 0)
        return err;
    bind_time(history->statements[PRUNE_AGE], 1, oldest_ns);
    err = step(history, PRUNE_AGE, reason);
    if (err < 0)
        return err;
    sqlite3_bind_int64(history->statements[PRUNE_COUNT], 1, (int64_t)history->rows_max);
    return step(history, PRUNE_COUNT, reason);
}

/* Begins a change: a transaction, unless it is one of a group. */
static int change_begin(struct weir_history *history, struct weir_reason *reason)
{
    return history->grouped ? 0 : history_run(history, "BEGIN IMMEDIATE", reason);
}

/* Ends it; on an error nothing of it, or of its group, remains. */
static int change_end(struct weir_history *history, int err, struct weir_reason *reason)
{
    if (history->grouped) {
        history->failed |= err < 0;
        return err;
    }
    if (err == 0)
        err = history_run(history, "COMMIT", reason);
    if (err < 0)
        history_run(history, "ROLLBACK", NULL);
    return err;
}

int weir_history_begin(struct weir_history *history, struct weir_reason *reason)
{
    int err = history_run(history, "BEGIN IMMEDIATE", reason);

    history->grouped = err == 0;
    history->failed = false;
    return err;
}

int weir_history_end(struct weir_history *history, struct weir_reason *reason)
{
    history->grouped = false;
    if (history->failed) {
        history_run(history, "ROLLBACK", NULL);
        return WEIR_ERR_IO;
    }
    return change_end(history, 0, reason);
}

int weir_history_set(struct weir_history *history, uint64_t now_ns,
                     const struct weir_history_entry *entry, int *was, struct weir_reason *reason)
{
    uint64_t id[2];
    int err = change_begin(history, reason);

    *was = -1;
    if (err < 0)
        return err;
    err = get(history, now_ns, entry, was, id, reason);
    if (err == 0)
        err = put(history, entry, reason);
    if (err == 0)
        err = note(history, now_ns, entry, *was, entry->entry.level, reason);
    return change_end(history, err, reason);
}

/* Removes all ladders of a value. Returns 1 when there were some, 0 when not. */
static int remove_ladders(struct weir_history *history, const struct weir_history_entry *like,
                          struct weir_reason *reason)
{
    int err;

    bind_text(history->statements[REMOVE_LADDERS], 1, like->kind);
    bind_text(history->statements[REMOVE_LADDERS], 2, like->value);
    err = step(history, REMOVE_LADDERS, reason);
    return err < 0 ? err : sqlite3_changes(history->db) > 0;
}

int weir_history_clear(struct weir_history *history, uint64_t now_ns,
                       struct weir_history_entry *like, int *was, struct weir_reason *reason)
{
    int err = change_begin(history, reason), forgiven = 0;

    *was = -1;
    if (err < 0)
        return err;
    err = get(history, now_ns, like, was, like->id, reason);
    if (err == 0 && *was >= 0) {
        bind_key(history->statements[REMOVE], like);
        err = step(history, REMOVE, reason);
    }
    if (err == 0 && like->entry.origin == WEIR_STANDING_BY_PENALTY) {
        forgiven = remove_ladders(history, like, reason);
        err = forgiven < 0 ? forgiven : 0;
    }
    if (err == 0 && (*was >= 0 || forgiven > 0))
        err = note(history, now_ns, like, *was, -1, reason);
    err = change_end(history, err, reason);
    return err < 0 ? err : *was >= 0 || forgiven > 0;
}

/* --- Ladders ---------------------------------------------------------------------------------- */

static void bind_ladder(sqlite3_stmt *statement, const struct weir_history_ladder *ladder)
{
    bind_text(statement, 1, ladder->kind);
    bind_text(statement, 2, ladder->value);
    bind_text(statement, 3, ladder->penalty);
}

/* The state of a ladder; all zero: there is none. */
static int get_ladder(struct weir_history *history, const struct weir_history_ladder *like,
                      struct weir_ladder_state *state, struct weir_reason *reason)
{
    sqlite3_stmt *statement = history->statements[GET_LADDER];
    int result, err = 0;

    *state = (struct weir_ladder_state){.step = 0};
    bind_ladder(statement, like);
    result = sqlite3_step(statement);
    if (result == SQLITE_ROW) {
        state->step = (uint8_t)sqlite3_column_int(statement, 0);
        state->until_ns = column_time(statement, 1);
        state->clean_ns = column_time(statement, 2);
    } else if (result != SQLITE_DONE) {
        err = fail_here(history, result, reason);
    }
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return err;
}

static int put_ladder(struct weir_history *history, const struct weir_history_ladder *ladder,
                      struct weir_reason *reason)
{
    sqlite3_stmt *statement = history->statements[PUT_LADDER];

    bind_ladder(statement, ladder);
    sqlite3_bind_int(statement, 4, ladder->state.step);
    bind_time(statement, 5, ladder->state.until_ns);
    bind_time(statement, 6, ladder->state.clean_ns);
    bind_time(statement, 7, ladder->gone_ns);
    sqlite3_bind_int(statement, 8, ladder->network);
    sqlite3_bind_blob(statement, 9, ladder->id, sizeof ladder->id, SQLITE_STATIC);
    return step(history, PUT_LADDER, reason);
}

static bool is_state(const struct weir_ladder_state *one, const struct weir_ladder_state *other)
{
    return one->step == other->step && one->until_ns == other->until_ns &&
           one->clean_ns == other->clean_ns;
}

int weir_history_swap_ladder(struct weir_history *history, const struct weir_history_ladder *ladder,
                             const struct weir_ladder_state *expected, struct weir_reason *reason)
{
    struct weir_ladder_state found;
    int err = change_begin(history, reason);
    bool swapped = false;

    if (err < 0)
        return err;
    err = get_ladder(history, ladder, &found, reason);
    if (err == 0 && (!expected || is_state(&found, expected))) {
        swapped = true;
        err = put_ladder(history, ladder, reason);
    }
    err = change_end(history, err, reason);
    return err < 0 ? err : swapped;
}

int weir_history_prune(struct weir_history *history, uint64_t now_ns, struct weir_reason *reason)
{
    int err = change_begin(history, reason);

    return err < 0 ? err : change_end(history, prune(history, now_ns, reason), reason);
}

/* --- Reading ---------------------------------------------------------------------------------- */

static struct weir_bytes column_text(sqlite3_stmt *statement, int at)
{
    const char *text = (const char *)sqlite3_column_text(statement, at);

    return (struct weir_bytes){text ? text : "", (size_t)sqlite3_column_bytes(statement, at)};
}

static void column_reason(sqlite3_stmt *statement, int at, struct weir_standing_entry *entry)
{
    struct weir_bytes text = column_text(statement, at);

    entry->reason_size =
        (uint8_t)(text.size < WEIR_STANDING_REASON_MAX ? text.size : WEIR_STANDING_REASON_MAX);
    memcpy(entry->reason, text.data, entry->reason_size);
}

static void read_entry(sqlite3_stmt *statement, struct weir_history_entry *entry)
{
    *entry = (struct weir_history_entry){
        .kind = column_text(statement, 0),
        .value = column_text(statement, 1),
        .entry.origin = (uint8_t)sqlite3_column_int(statement, 2),
        .entry.level = (uint8_t)sqlite3_column_int(statement, 3),
        .entry.since_ns = column_time(statement, 4),
        .entry.until_ns = column_time(statement, 5),
        .by = column_text(statement, 7),
        .network = sqlite3_column_int(statement, 8) != 0,
    };
    column_reason(statement, 6, &entry->entry);
    if (sqlite3_column_bytes(statement, 9) == sizeof entry->id)
        memcpy(entry->id, sqlite3_column_blob(statement, 9), sizeof entry->id);
}

static void read_row(sqlite3_stmt *statement, struct weir_history_row *row)
{
    *row = (struct weir_history_row){
        .at_ns = column_time(statement, 0),
        .was = sqlite3_column_int(statement, 4),
        .level = sqlite3_column_int(statement, 5),
        .to.kind = column_text(statement, 1),
        .to.value = column_text(statement, 2),
        .to.entry.origin = (uint8_t)sqlite3_column_int(statement, 3),
        .to.entry.level = (uint8_t)sqlite3_column_int(statement, 5),
        .to.entry.since_ns = column_time(statement, 0),
        .to.entry.until_ns = column_time(statement, 6),
        .to.by = column_text(statement, 8),
    };
    column_reason(statement, 7, &row->to.entry);
}

static int64_t limited(uint64_t number)
{
    return number < INT64_MAX ? (int64_t)number : INT64_MAX;
}

int weir_history_entries(struct weir_history *history, const struct weir_history_filter *filter,
                         void (*take)(void *context, const struct weir_history_entry *entry),
                         void *context, struct weir_reason *reason)
{
    sqlite3_stmt *statement = history->statements[LIST];
    struct weir_history_entry entry;
    int result, err;

    bind_text(statement, 1, filter->kind);
    bind_text(statement, 2, filter->value);
    sqlite3_bind_int(statement, 3, filter->level);
    sqlite3_bind_int64(statement, 4, limited(filter->now_ns));
    sqlite3_bind_int64(statement, 5, limited(filter->count));
    sqlite3_bind_int64(statement, 6, limited(filter->skip));
    while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
        read_entry(statement, &entry);
        take(context, &entry);
    }
    err = result == SQLITE_DONE ? 0 : fail_here(history, result, reason);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return err;
}

static void read_ladder(sqlite3_stmt *statement, struct weir_history_ladder *ladder)
{
    *ladder = (struct weir_history_ladder){
        .kind = column_text(statement, 0),
        .value = column_text(statement, 1),
        .penalty = column_text(statement, 2),
        .state.step = (uint8_t)sqlite3_column_int(statement, 3),
        .state.until_ns = column_time(statement, 4),
        .state.clean_ns = column_time(statement, 5),
        .gone_ns = column_time(statement, 6),
        .network = sqlite3_column_int(statement, 7) != 0,
    };
    if (sqlite3_column_bytes(statement, 8) == sizeof ladder->id)
        memcpy(ladder->id, sqlite3_column_blob(statement, 8), sizeof ladder->id);
}

int weir_history_ladders(struct weir_history *history, const struct weir_history_filter *filter,
                         void (*take)(void *context, const struct weir_history_ladder *ladder),
                         void *context, struct weir_reason *reason)
{
    sqlite3_stmt *statement = history->statements[LADDERS];
    struct weir_history_ladder ladder;
    int result, err;

    bind_text(statement, 1, filter->kind);
    bind_text(statement, 2, filter->value);
    sqlite3_bind_int64(statement, 3, limited(filter->now_ns));
    sqlite3_bind_int64(statement, 4, limited(filter->count));
    sqlite3_bind_int64(statement, 5, limited(filter->skip));
    while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
        read_ladder(statement, &ladder);
        take(context, &ladder);
    }
    err = result == SQLITE_DONE ? 0 : fail_here(history, result, reason);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return err;
}

int weir_history_rows(struct weir_history *history, const struct weir_history_filter *filter,
                      void (*take)(void *context, const struct weir_history_row *row),
                      void *context, struct weir_reason *reason)
{
    sqlite3_stmt *statement = history->statements[ROWS];
    struct weir_history_row row;
    int result, err;

    bind_text(statement, 1, filter->kind);
    bind_text(statement, 2, filter->value);
    sqlite3_bind_int64(statement, 3, limited(filter->count));
    sqlite3_bind_int64(statement, 4, limited(filter->skip));
    while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
        read_row(statement, &row);
        take(context, &row);
    }
    err = result == SQLITE_DONE ? 0 : fail_here(history, result, reason);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return err;
}
