/* SPDX-License-Identifier: Apache-2.0 */
/* Whom somebody asks for: as a text, which may be
 *   the text of a key as it is shown, or
 *   all of several values with their kinds  user=ann,client.ip=192.0.2.1
 *   one value with its kind                 user=ann, user=sha256:…,
 * header.x-api-key=the-key-itself one value of any kind                   ann, 192.0.2.1, sha256:…
 * Values are the real ones; long ones and secrets are found by themselves or by their SHA-256.
 * Addresses and credentials are found however they are spelled, as requests are counted:
 * "2001:DB8::1",
 * "::ffff:192.0.2.1", "64:ff9b::8.8.8.8" (the IPv4 address within the prefix that everybody has,
 * core/text/nat64.h), "bearer K".
 *
 * Threads: plain data.
 */
#ifndef WEIR_FEATURE_USE_SERVER_ASKED_H
#define WEIR_FEATURE_USE_SERVER_ASKED_H

#include "core/text/address.h"
#include "core/text/shown.h"

#define WEIR_ASKED_VALUES_MAX 8 /* of "kind=value,kind=value" */

/* A value of one kind, however it may be spelled. */
struct weir_asked_value {
    struct weir_shown_asked real, digest;
    struct weir_shown_asked credential; /* by its digest */
    char address[WEIR_ADDRESS_TEXT_MAX];
    uint8_t address_size; /* 0: it is none; and so with digest_size above */
};

struct weir_asked {
    struct weir_bytes text; /* borrowed; data == NULL: anybody */
    struct weir_shown_asked any, any_digest;
    struct weir_asked_value one;
    struct weir_asked_value each[WEIR_ASKED_VALUES_MAX]; /* all of them */
    uint8_t each_count;                                  /* 0: it is not several */
};

/* Reads a text, which is borrowed. False: it has more than WEIR_ASKED_VALUES_MAX values with kinds;
 * then it is read as one value. */
bool weir_asked_read(struct weir_asked *asked, struct weir_bytes text)
    __attribute__((warn_unused_result));
/* The value of one kind, both borrowed: real or as "sha256:…". */
void weir_asked_read_kind(struct weir_asked *asked, struct weir_bytes kind,
                          struct weir_bytes value);

/* Whether a packed list is, or has, what is asked for. */
bool weir_asked_has(const struct weir_asked *asked, struct weir_bytes packed);

/* The value of a list that is asked for by one kind and value. */
bool weir_asked_find(const struct weir_asked *asked, struct weir_bytes packed,
                     struct weir_shown *found);

#endif
