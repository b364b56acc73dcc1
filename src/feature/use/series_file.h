/* SPDX-License-Identifier: Apache-2.0 */
/* The minutes of series as bytes, so that a day outlasts a restart: made and read as a whole.
 *
 *   | magic, version, fields, size, SipHash of the rest | series | series | ...
 *   series: | size of the name | name | points | minute, numbers | minute, numbers | ...
 *
 * The first series is the whole, with an empty name; the others are limits by name. Points of which
 * all numbers are zero are left out. Bytes are in the order of the machine, and a file of another
 * version, of other fields or with other bytes than were written is refused: it holds figures to
 * look at, and nothing depends on them.
 *
 * Memory: at most WEIR_SERIES_FILE_MAX bytes. Threads: plain data.
 */
#ifndef WEIR_FEATURE_USE_SERIES_FILE_H
#define WEIR_FEATURE_USE_SERIES_FILE_H

#include <stddef.h>

#include <weir/bytes.h>

#include "feature/use/series.h"

#define WEIR_SERIES_FILE_NAME_MAX 255
/* 513 series of 1,440 minutes with the most fields. */
#define WEIR_SERIES_FILE_MAX (UINT64_C(100) << 20)

/* --- Making ----------------------------------------------------------------------------------- */

struct weir_series_text {
    char *bytes; /* owned; NULL: memory was missing, or it is full */
    size_t size, room;
    bool full; /* it would be above WEIR_SERIES_FILE_MAX */
};

/* Begins: fields of the whole and of a limit. */
void weir_series_text_begin(struct weir_series_text *text, unsigned whole, unsigned limit);
/* Adds a series of that many fields; of a limit by its name, of at most WEIR_SERIES_FILE_NAME_MAX
 * bytes. */
void weir_series_text_add(struct weir_series_text *text, struct weir_bytes name,
                          const struct weir_series *series, unsigned fields);
/* Ends. False: memory was missing, or it is full; nothing is owned. */
bool weir_series_text_end(struct weir_series_text *text);

/* --- Reading ---------------------------------------------------------------------------------- */

struct weir_series_reading {
    unsigned whole, limit; /* fields that are expected */
    uint64_t until;        /* the last minute that may be: later ones are left out */
    /* The series of a name that points are put into; NULL: none. */
    struct weir_series *(*find)(void *context, struct weir_bytes name);
    void *context;
    uint64_t later; /* counted: points after `until` */
};

/* Reads all of it, or nothing. Errors: WEIR_ERR_FORMAT (of another version or other fields),
 * WEIR_ERR_DAMAGED. */
int weir_series_file_read(const char *bytes, size_t size, struct weir_series_reading *reading)
    __attribute__((warn_unused_result));

#endif
