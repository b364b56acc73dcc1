/* SPDX-License-Identifier: Apache-2.0 */
/* Versions, and what is deprecated.
 *
 * What weir takes although it switches something off in silence is deprecated: it is taken for two
 * releases more, so that an upgrade never stops a limiter, and told as an error with each start and
 * reload; then it is refused. Which of the two it is depends on nothing but the version of this
 * library. See docs/operations/upgrade.md.
 */
#ifndef WEIR_VERSION_H
#define WEIR_VERSION_H

#include <stdbool.h>

/* What this version deprecates is refused from this one on. */
#define WEIR_REFUSED_FROM "0.5.0"

#pragma GCC visibility push(default)

/* Whether the version `a` ("0.2.0") is before `b`: compared by their numbers, from the left; one
 * that is missing is 0. */
bool weir_version_before(const char *a, const char *b);

/* Whether this library still takes what is refused from the version `refused_from` on. */
bool weir_still_takes(const char *refused_from);

#pragma GCC visibility pop

#endif
