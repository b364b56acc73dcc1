/* SPDX-License-Identifier: Apache-2.0 */
/* A time series: one second for ten minutes, one minute for a day.
 *
 *   seconds[600]  rings by time; each point has `fields` numbers
 *   minutes[1440] sums of its seconds; of a field that is a level, the greatest of them
 *
 * Numbers are floats: seven digits. A second that nothing was put for is zero, like one before the
 * first.
 *
 * Memory: 2,040 points of 4 bytes a field; WEIR_SERIES_BYTES(6) is 48 KiB.
 * Threads: one owner.
 */
#ifndef WEIR_FEATURE_USE_SERIES_H
#define WEIR_FEATURE_USE_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/error.h>

#define WEIR_SERIES_SECONDS 600
#define WEIR_SERIES_MINUTES 1440
#define WEIR_SERIES_FIELDS_MAX 32
#define WEIR_SERIES_BYTES(fields) ((WEIR_SERIES_SECONDS + WEIR_SERIES_MINUTES) * 4 * (fields))

struct weir_series;

/* `levels`: a bit for each field that is a level, not a count. 1..WEIR_SERIES_FIELDS_MAX fields.
 * Errors: WEIR_ERR_MEMORY. */
int weir_series_open(struct weir_series **series, unsigned fields, uint32_t levels)
    __attribute__((warn_unused_result));
void weir_series_close(struct weir_series *series);

/* Puts the numbers of a second since the epoch; seconds come in ascending order, and of equal or
 * earlier ones all but the first are dropped. */
void weir_series_put(struct weir_series *series, uint64_t second, const float *values);
/* Sets one field of the minute that a second is in. */
void weir_series_set_minute(struct weir_series *series, uint64_t second, unsigned field,
                            float value);

/* The number at a time: a second or, with `minutes`, a minute since the epoch (second / 60). 0
 * where nothing is kept. */
float weir_series_get(const struct weir_series *series, bool minutes, uint64_t at, unsigned field);

/* The newest second that was put; 0: none. */
uint64_t weir_series_last(const struct weir_series *series);

/* The newest minute since the epoch that something is kept of; 0: none. */
uint64_t weir_series_last_minute(const struct weir_series *series);

/* Puts the numbers of a minute that an earlier run has counted, in ascending order; one that is not
 * later than all others is dropped. What is put for its seconds adds to it. */
void weir_series_restore(struct weir_series *series, uint64_t minute, const float *values);

#endif
