/* SPDX-License-Identifier: Apache-2.0 */
/* In which regions a reset or a grant has acted, as answers say it.
 *
 * Threads: any.
 */
#ifndef WEIR_FEATURE_REGION_SERVER_ACTED_H
#define WEIR_FEATURE_REGION_SERVER_ACTED_H

#include "core/check.h"

#define WEIR_ACTED_MAX 192 /* two names of 64 bytes, and what is around them */

/* Writes `"regions":["eu","us"],` for a finished operation on one key of a limit with `global`;
 * nothing for other limits. Returns its length. */
size_t weir_acted_json(const struct weir_decision *decision, char text[WEIR_ACTED_MAX]);

/* Writes which region has not acted, and what to do; returns whether there is one. */
bool weir_acted_problem(const struct weir_decision *decision, char text[WEIR_ACTED_MAX]);

#endif
