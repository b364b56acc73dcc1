/* SPDX-License-Identifier: Apache-2.0 */
/* What the `standing:` section of the rules says, for the part of the daemon that keeps standing.
 *
 * The rules own all of it; it is immutable and lives as long as the generation of rules.
 */
#ifndef WEIR_FEATURE_STANDING_SETTINGS_H
#define WEIR_FEATURE_STANDING_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/bytes.h>

#include "core/text/address.h"
#include "feature/standing/standing.h"

#define WEIR_STANDING_KINDS_MAX 16
#define WEIR_STANDING_LISTS_MAX 64

/* One value of `by:`. */
struct weir_standing_kind {
    struct weir_bytes name; /* as ids are made of it: "client.ip", "user", "header.x-api-key" */
    bool secret;            /* its values are written as SHA-256 only: header.*, API keys */
    bool address;           /* its values are networks */
    bool credential;        /* its values have one form: core/text/credential.h */
    uint8_t bits4, bits6;   /* of an address: what a plain address is widened to, 1..32 and 1..128
                               (client.ip/64: 32 and 64) */
    const struct weir_cidr *nat64; /* `server.nat64`: a plain address in one of these prefixes is */
    uint32_t nat64_count;          /* the IPv4 address inside, as clients count by it */
};

/* One of `lists:`. */
struct weir_standing_list {
    const char *path; /* relative to the folder of the rules file, or absolute */
    uint16_t kind;    /* index into kinds */
    uint8_t level;
    struct weir_bytes reason;
};

struct weir_standing_settings {
    const char *file;   /* of the history. NULL: nothing is kept */
    const char *map;    /* of the map: as the file says, else FILE.map. NULL: there is no `file` */
    size_t entries_max; /* 0: the default */
    bool closed;        /* `on_store_error: closed`: nobody passes while standing is not known */
    bool failure_given; /* it is there; else that of the whole file counts */
    size_t kinds_count;
    struct weir_standing_kind kinds[WEIR_STANDING_KINDS_MAX];
    size_t lists_count;
    struct weir_standing_list lists[WEIR_STANDING_LISTS_MAX];
};

#endif
