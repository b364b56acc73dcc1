/* SPDX-License-Identifier: Apache-2.0 */
/* The standing of callers for commands that decide by themselves: explain and replay. */
#ifndef WEIR_FEATURE_STANDING_CLI_STANDING_MAP_H
#define WEIR_FEATURE_STANDING_CLI_STANDING_MAP_H

#include "feature/standing/standing.h"
#include "rules/rules.h"

/* What is in force on this machine by the rules: the map that `weir serve` keeps, if it is there
 * and `with_file`; else the lists alone. *map is the caller's to close; NULL: the rules keep no
 * standing. Returns 0, or -1 after an error was printed. */
int cli_standing_open(struct weir_standing **map, const struct weir_rules *rules, bool with_file);

#endif
