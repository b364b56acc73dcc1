/* SPDX-License-Identifier: Apache-2.0 */
/* List files of standing: networks or values, one a line.
 *
 *   # networks that send only attacks
 *   192.0.2.0/24
 *   2001:db8::/32      # since March
 *
 * White space around a value does not count. A comment begins with '#' at the begin of a line or
 * after white space. Lines end with LF or CR LF; a byte order mark before the first one is ignored.
 * A value has up to WEIR_LIST_VALUE_MAX bytes and no control characters.
 *
 * Threads: pure functions. feature/standing/rules/lists.h reads the files.
 */
#ifndef WEIR_FEATURE_STANDING_LIST_H
#define WEIR_FEATURE_STANDING_LIST_H

#include "feature/standing/settings.h"

#define WEIR_LIST_VALUE_MAX 1024
#define WEIR_LIST_BYTES_MAX (UINT64_C(256) << 20) /* of a file */

struct weir_list_item {
    struct weir_bytes
        value; /* as in the file; of credentials in their one form. Valid during `take` */
    struct weir_cidr network; /* of a kind of addresses */
    uint32_t line;            /* from 1 on */
};

/* A network or address of a kind of addresses. A plain address is widened to what the kind keeps of
 * it: for client.ip/64, "2001:db8::1" is 2001:db8::/64, and "2001:db8::1/128" itself.
 * One with an IPv4 address inside is that IPv4 address, which its client counts by, and one whose
 * IPv4 address is not global is itself: the translator's network is all of its clients. Errors:
 * WEIR_ERR_SYNTAX. */
int weir_standing_network(const struct weir_standing_kind *kind, struct weir_bytes text,
                          struct weir_cidr *network) __attribute__((warn_unused_result));

/* Calls `take` for each line of a text that has a value. Stops at an error, its own or one that
 * `take` returns (< 0; it may fill *reason). Errors: WEIR_ERR_SYNTAX; *reason is "NAME:LINE: …". */
int weir_list_parse(const struct weir_standing_kind *kind, const char *name, struct weir_bytes text,
                    int (*take)(void *context, const struct weir_list_item *item,
                                struct weir_reason *reason),
                    void *context, struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
