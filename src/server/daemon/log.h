/* SPDX-License-Identifier: Apache-2.0 */
/* The server's log: one line an event, to standard error.
 *
 *   time=2026-11-20T10:00:00.123Z level=info event=listening front=http address=127.0.0.1:8080
 *   {"time":"2026-11-20T10:00:00.123Z","level":"info","event":"listening","front":"http",…}
 *
 * A line is built on the stack and leaves in one write(2), so that lines of several threads never
 * mix. Values are quoted and escaped where they hold anything but plain characters: what a peer
 * sent can neither end a line nor start another, nor hide what is beside it. Names of all scripts
 * are as they are, in UTF-8.
 *
 * Rate: at most WEIR_LOG_LINES_PER_SECOND lines a second, errors of a flood included (a disk that
 * an attacker fills is worse than a line that is missing); the first line after a pause in a flood
 * carries how many were dropped. Nothing on the path of an allowed request logs.
 *
 * Threads: any; the rate counter is an atomic. Format and level are set once before threads start.
 */
#ifndef WEIR_SERVER_DAEMON_LOG_H
#define WEIR_SERVER_DAEMON_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/daemon/limits.h"

enum weir_log_format { WEIR_LOG_TEXT, WEIR_LOG_JSON };
enum weir_log_level { WEIR_LOG_INFO, WEIR_LOG_WARNING, WEIR_LOG_ERROR };

struct weir_log {
    enum weir_log_format format;
    enum weir_log_level least; /* lines below it are not written */
    int fd;
    _Atomic uint64_t second_lines; /* second of the wall clock << 24 | lines in it */
    _Atomic uint64_t dropped;      /* since the last line */
    _Atomic uint64_t dropped_total;
};

void weir_log_init(struct weir_log *log, int fd, enum weir_log_format format);

/* A line being built: begin, any number of fields, end. */
struct weir_log_line {
    struct weir_log *log;
    bool wanted; /* false: the rate is reached; the calls below do nothing */
    size_t used;
    char text[WEIR_LOG_LINE_MAX];
};

/* `event` and field names are words of [a-z_]. */
void weir_log_begin(struct weir_log_line *line, struct weir_log *log, enum weir_log_level level,
                    const char *event);
/* The same for what traffic may cause many of: only while this second has had fewer than `most`
 * lines, so that there is room for others. */
void weir_log_begin_below(struct weir_log_line *line, struct weir_log *log,
                          enum weir_log_level level, const char *event, uint64_t most);
void weir_log_text(struct weir_log_line *line, const char *name, const char *value);
void weir_log_bytes(struct weir_log_line *line, const char *name, const char *value, size_t size);
void weir_log_number(struct weir_log_line *line, const char *name, int64_t value);
void weir_log_end(struct weir_log_line *line);

/* A line with one text field (`name` NULL: none). */
void weir_log_event(struct weir_log *log, enum weir_log_level level, const char *event,
                    const char *name, const char *value);

#endif
