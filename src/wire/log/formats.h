/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of traces that weir reads: one table, by which a line is parsed, a format is found by
 * the first lines of a file, and `--format` and the documentation know their names.
 *
 * To find the format, every row parses each of the first lines. A row has two points for a line
 * that is exactly of its format and one for a line that it reads all the same (a combined line is
 * read as common, its fields left out); the row with most points wins, of equals the first.
 */
#ifndef WEIR_WIRE_LOG_FORMATS_H
#define WEIR_WIRE_LOG_FORMATS_H

#include "wire/log/record.h"

/* Rows of the table, in its order. */
enum weir_log_format {
    WEIR_LOG_JSONL,
    WEIR_LOG_COMBINED,
    WEIR_LOG_COMMON,
    WEIR_LOG_VHOST_COMBINED,
    WEIR_LOG_NGINX_MAIN,
    WEIR_LOG_INGRESS_NGINX,
    WEIR_LOG_TRAEFIK_CLF,
    WEIR_LOG_TRAEFIK_JSON,
    WEIR_LOG_CADDY_JSON,
    WEIR_LOG_HAPROXY,
    WEIR_LOG_FORMATS,
};

struct weir_log_row {
    const char *name;  /* "combined" */
    const char *what;  /* "Apache's combined log, nginx's default" */
    const char *wrong; /* of a line that is not of it: "not of the combined log format" */
    /* Parses a line in place. Returns 0, WEIR_LOG_OTHER or a negative error; `reason` (not NULL) is
     * filled or left alone, where `wrong` says enough. */
    int (*parse)(struct weir_log_record *record, char *text, size_t size,
                 struct weir_log_room *room, struct weir_reason *reason);
    int tail; /* of lines that are exactly of it: enum weir_log_tail; -1: any that it reads */
};

const struct weir_log_row *weir_log_row(enum weir_log_format format);

/* Parses a line in place; white space at its ends is skipped. Returns 0 with a record,
 * WEIR_LOG_OTHER, or WEIR_ERR_SYNTAX, WEIR_ERR_RANGE or WEIR_ERR_TOO_LARGE with `reason` (not
 * NULL). */
int weir_log_parse(enum weir_log_format format, struct weir_log_record *record, char *text,
                   size_t size, struct weir_log_room *room, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* How well a line fits, as above; changes it. Parse another copy. */
unsigned weir_log_fits(enum weir_log_format format, char *text, size_t size,
                       struct weir_log_room *room);

/* The row with most points; -1: none has any. */
int weir_log_best(const unsigned points[WEIR_LOG_FORMATS]);

#endif
