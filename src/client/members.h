/* SPDX-License-Identifier: Apache-2.0 */
/* Members of list-like header fields, leniently: `"a";q=1;w=60, 100;w=3600`, `limit=5, reset=2`.
 *
 * Source: RFC 9651 (structured fields), and what was sent before it: spaces anywhere, tokens and
 * numbers where strings belong. A member is a value and parameters; a member `key=value` is a
 * dictionary's. A member that is malformed is skipped to the next comma; an open string ends the
 * list.
 *
 * Bounds: WEIR_MEMBER_PARAMETERS parameters of a member; further ones are ignored. Pure functions
 * over borrowed text.
 */
#ifndef WEIR_CLIENT_MEMBERS_H
#define WEIR_CLIENT_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/bytes.h>

#define WEIR_MEMBER_PARAMETERS 8

struct weir_member_parameter {
    struct weir_bytes key, value; /* a string's value is between its quotes, escapes left alone */
};

struct weir_member {
    struct weir_bytes value;
    struct weir_bytes key; /* of a dictionary's member; else absent */
    struct weir_member_parameter parameters[WEIR_MEMBER_PARAMETERS];
    uint32_t count;
};

/* Takes the next member from `rest` and shortens it. False: there is none. */
bool weir_member_next(struct weir_bytes *rest, struct weir_member *member);

/* A parameter's value, its key in any case; absent: data is NULL. */
struct weir_bytes weir_member_get(const struct weir_member *member, const char *key);

#endif
