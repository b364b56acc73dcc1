/* SPDX-License-Identifier: Apache-2.0 */
/* What a report says of how its trace was read: files with their formats, in the order in which
 * they were read, and whatever was done to lines, so that nothing is assumed in silence. */
#ifndef WEIR_CLI_REPLAY_TRACE_READING_H
#define WEIR_CLI_REPLAY_TRACE_READING_H

#include <stdio.h>

#include "cli/replay/trace/clients.h"
#include "cli/replay/trace/trace.h"

#define REPLAY_FILES_SHOWN 20

/* Each line begins with `prefix`. */
void replay_reading_print(const struct replay_reading *reading,
                          const struct replay_clients *clients, const char *prefix, FILE *out);

/* "Partial: …", of a reading that Ctrl-C has ended after so many lines. */
void replay_partial_print(const struct replay_reading *reading, uint64_t lines, const char *prefix,
                          FILE *out);

#endif
