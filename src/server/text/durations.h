/* SPDX-License-Identifier: Apache-2.0 */
/* Durations for people, in all that is printed but JSON: "8d 8h", "12s", "250ms".
 *
 * Threads: pure.
 */
#ifndef WEIR_SERVER_TEXT_DURATIONS_H
#define WEIR_SERVER_TEXT_DURATIONS_H

#include <stddef.h>
#include <stdint.h>

#define WEIR_DURATION_MAX 24

/* How long to wait, or how long it took: at most two units, below 10 s one with tenths, rounded up,
 * so that who waits that long has waited long enough. Writes it with its NUL; returns `text`. */
const char *weir_duration(char text[WEIR_DURATION_MAX], uint64_t milliseconds);
/* The same of nanoseconds: "1ms" is the least but "0ms". */
const char *weir_duration_ns(char text[WEIR_DURATION_MAX], uint64_t nanoseconds);

/* A setting as a file says it: in the largest unit that it is a whole number of. "1h", "90s",
 * "1500us"; "0s". */
const char *weir_duration_exact(char text[WEIR_DURATION_MAX], uint64_t nanoseconds);

#endif
