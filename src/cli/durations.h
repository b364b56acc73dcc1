/* SPDX-License-Identifier: Apache-2.0 */
/* Durations for people: "8d 8h", "12s", "250ms". At most two units, rounded up, so that who waits
 * that long has waited long enough.
 *
 * Threads: pure.
 */
#ifndef WEIR_CLI_DURATIONS_H
#define WEIR_CLI_DURATIONS_H

#include <stddef.h>
#include <stdint.h>

#define CLI_DURATION_MAX 24

/* Writes it with its NUL; returns `text`. */
const char *cli_duration(char text[CLI_DURATION_MAX], uint64_t milliseconds);

#endif
