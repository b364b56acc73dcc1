/* SPDX-License-Identifier: Apache-2.0 */
/* Cookies by their name in a Cookie header field (RFC 6265 section 4.2).
 *
 * A name may come more than once: a cookie of a parent domain or of a longer path has the same
 * name, and the field does not say which is which. So all of them are found, one after the other.
 * Repeated fields are joined with ", " by front ends, so a comma ends a cookie as a semicolon does;
 * neither may be in a value.
 *
 * Threads: pure. Allocates nothing.
 */
#ifndef WEIR_FEATURE_CHALLENGE_COOKIE_H
#define WEIR_FEATURE_CHALLENGE_COOKIE_H

#include <stdbool.h>
#include <stddef.h>
#include <weir/bytes.h>

/* Finds the next cookie called `name`, case counting, and takes it and all before it off *field.
 * *value points into the field, without quotes. False: there is none. */
bool weir_cookie_next(struct weir_bytes *field, struct weir_bytes name, struct weir_bytes *value);

/* Whether a cookie may have this name: a token of RFC 9110 section 5.6.2. */
bool weir_cookie_name_is_valid(struct weir_bytes name);

#endif
