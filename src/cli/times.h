/* SPDX-License-Identifier: Apache-2.0 */
/* Moments on the command line: printed as "2026-11-23T14:03:07+01:00" in the zone of the machine
 * ($TZ), or as "2026-11-23T13:03:07Z" with --utc; and read in all forms that are printed.
 *
 *   14:03, 14:03:07                          today, or yesterday where that is still to come
 *   2026-11-23T14:03:07.214+01:00, …Z        with its offset
 *   2026-11-23 14:03                         without one: in the zone that is printed
 *   10min, 2h, 1d                            so long ago
 *   1795442587                               seconds since the epoch
 *
 * Threads: reads $TZ; the main thread only.
 */
#ifndef WEIR_CLI_TIMES_H
#define WEIR_CLI_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

#include "server/text/moments.h"

/* Whether cli_time_text prints in UTC: a command says so once, by its options. */
void cli_time_choose(bool utc);
/* As weir_moment_text, in the zone that the command has chosen. */
const char *cli_time_text(char text[WEIR_MOMENT_MAX], uint64_t time_ns);
/* Reads a moment. A time of day is the newest one that is not after `now_ns`; with `after_ns` (0:
 * none) the first one after that. Errors: WEIR_ERR_SYNTAX, which `reason` explains. */
int cli_time_read(const char *text, uint64_t now_ns, uint64_t after_ns, bool utc, uint64_t *time_ns,
                  struct weir_reason *reason) __attribute__((warn_unused_result));

/* The option --utc: `at_` is the offset of its bool. */
#define CLI_UTC_OPTION(at_)                                                                        \
    CLI_OPTION(0, "utc", NULL, "times in UTC, not in the zone of this machine", .kind = CLI_FLAG,  \
               .at = (at_))

#endif
