/* SPDX-License-Identifier: Apache-2.0 */
/* What Envoy's configuration says of weir: of a filter, or of a route.
 *
 *     {"rules": "/etc/weir/weir.yaml", "state": "/run/weir-state/weir.state",
 *      "attributes": {"tier": "gold", "user": {"namespace": "jwt", "key": "sub"}}}
 *
 * Envoy hands a Struct over as JSON, and a StringValue as its text: JSON too, or of a filter the
 * path of the rules file alone, of a route the word `off`. docs/deploy/envoy-module.md has all
 * keys. A key of a route counts in place of the filter's; `attributes` replaces all of them.
 *
 * Memory: one piece with the texts. Threads: immutable, except the handles of attributes.
 */
#ifndef WEIR_EVY_SETTINGS_H
#define WEIR_EVY_SETTINGS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

#include "envoy/abi.h"

/* Attributes of one filter or route. */
#define WEIR_EVY_ATTRIBUTES_MAX 64

/* Bytes of a configuration; one that names a rules file is 100. */
#define WEIR_EVY_CONFIG_MAX 65536

enum weir_evy_on_error {
    WEIR_EVY_AS_RULES_SAY, /* on_store_error of the limits */
    WEIR_EVY_OPEN,
    WEIR_EVY_CLOSED,
};

/* Which header fields answers get. */
enum weir_evy_fields {
    WEIR_EVY_FIELDS_ALL,
    WEIR_EVY_FIELDS_DENIALS, /* denials all, others none */
    WEIR_EVY_FIELDS_NONE,    /* denials Retry-After and Cache-Control alone */
};

/* A value of the stream's dynamic metadata; its key is empty where there is none. */
struct weir_evy_place {
    struct weir_evy_text space, key;
};

struct weir_evy_attribute {
    const char *name;
    struct weir_evy_text text; /* NULL: that of the metadata */
    struct weir_evy_place of;  /* where its text is */
    _Atomic uint64_t handle;   /* see request.c */
};

enum weir_evy_flag { WEIR_EVY_NO, WEIR_EVY_YES, WEIR_EVY_UNSAID };

struct weir_evy_settings {
    _Atomic unsigned users;    /* the configuration, and streams that settle by it */
    const char *rules, *state; /* of a filter; state NULL: the rules file's */
    enum weir_evy_on_error on_error;
    enum weir_evy_fields fields;
    bool trusted_proxies; /* X-Forwarded-For counts, as the rules trust */
    enum weir_evy_flag off, dry_run, trusted;
    bool has_cost, has_attributes;
    uint64_t cost; /* where `cost_of` has no key */
    struct weir_evy_place cost_of, settle;
    unsigned attribute_count;
    struct weir_evy_attribute attributes[WEIR_EVY_ATTRIBUTES_MAX];
    char text[]; /* the configuration */
};

/* Errors: WEIR_ERR_SYNTAX, WEIR_ERR_RANGE, WEIR_ERR_TOO_LARGE, WEIR_ERR_MEMORY; the reason says
 * what is wrong. */
int weir_evy_settings_read(struct weir_evy_settings **settings, struct weir_evy_text config,
                           bool route, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* A stream may outlive the route that it was decided by. Each keep has its free. NULL is ignored.
 */
void weir_evy_settings_keep(struct weir_evy_settings *settings);
void weir_evy_settings_free(struct weir_evy_settings *settings);

#endif
