/* SPDX-License-Identifier: Apache-2.0 */
/* A scale by a table of health: "from 80 % of CPU on, half of the limit".
 *
 * Each signal (CPU, memory, p99 latency, errors, length of a queue) counts by the row with the
 * smallest scale among those that its reading has reached; the scales of all signals are
 * multiplied, and the product is never below the floor. A signal without a reading, or whose
 * reading has expired, does not count: a signal that has stopped says nothing.
 *
 * The scale falls at once. It rises once the table has asked for more during the whole time of
 * hysteresis, and then to the least that the table asked for in that time. So it cannot swing
 * faster than that, however the signals do.
 *
 * Integers only; time is an argument. Threads: one owner.
 */
#ifndef WEIR_FEATURE_ADAPTIVE_HEALTH_H
#define WEIR_FEATURE_ADAPTIVE_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

enum weir_signal {
    WEIR_SIGNAL_CPU,
    WEIR_SIGNAL_MEMORY,
    WEIR_SIGNAL_P99,
    WEIR_SIGNAL_ERRORS,
    WEIR_SIGNAL_QUEUE,
    WEIR_SIGNALS
};

/* Their names in rules files and in POST /v1/health. */
extern const char *const weir_signal_names[WEIR_SIGNALS];

/* The value of a reading: CPU, memory and errors in hundredths of a percent (0 to 10,000), p99 in
 * nanoseconds, the queue in entries. */
struct weir_reading {
    uint64_t value;
    uint64_t until_ns; /* it counts before this time; 0: there is none */
};

struct weir_health_row {
    uint8_t signal;    /* enum weir_signal */
    uint8_t percent;   /* the scale: 1..100 */
    uint64_t at_least; /* the reading from which on the row counts */
};

#define WEIR_HEALTH_ROWS_MAX 32

struct weir_health_spec {
    struct weir_health_row rows[WEIR_HEALTH_ROWS_MAX];
    uint8_t count;
    uint8_t floor_percent; /* 1..100 */
    uint64_t hysteresis_ns;
};

struct weir_health {
    uint8_t percent;              /* the scale: floor_percent..100 */
    uint8_t causes[WEIR_SIGNALS]; /* what each signal makes of it now: 1..100 */
    uint8_t rising_percent;       /* the least that was asked for since rising_ns */
    bool rising;
    uint64_t rising_ns;
};

void weir_health_init(struct weir_health *health);

/* Takes all readings at a time, and returns the scale. Times must not decrease. */
uint8_t weir_health_update(struct weir_health *health, const struct weir_health_spec *spec,
                           const struct weir_reading readings[WEIR_SIGNALS], uint64_t now_ns);

#endif
