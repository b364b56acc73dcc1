/* SPDX-License-Identifier: Apache-2.0 */
/* Where a key counts, for `weir explain`: its home among regions, with the part of the limit that
 * this region has of it, or its node of a fleet. */
#ifndef WEIR_SERVER_EXPLAIN_HOME_H
#define WEIR_SERVER_EXPLAIN_HOME_H

#include <stdio.h>

#include "rules/rules.h"

/* Prints a line of each that the limit of `check` has; each begins with the end of the line before.
 */
void weir_explain_home(FILE *out, const struct weir_rules *rules, const struct weir_check *check);

#endif
