/* SPDX-License-Identifier: Apache-2.0 */
/* The keywords at the top of a rules file: the table from which every other one is reached. It
 * names the sections of all features; load.c calls their code.
 */
#ifndef WEIR_RULES_LOAD_GRAMMAR_H
#define WEIR_RULES_LOAD_GRAMMAR_H

#include "rules/load/keyword.h"

enum rules_top_field {
    TOP_VERSION,
    TOP_LIMITS,
    TOP_ATTRIBUTES,
    TOP_IDENTIFY,
    TOP_KEYS,
    TOP_STRICT_ATTRIBUTES,
    TOP_ON_STORE_ERROR,
    TOP_IDENTITIES,
    TOP_REPEATED_CREDENTIALS,
    TOP_ON_UNKNOWN,
    TOP_JWT,
    TOP_PLANS,
    TOP_DEFAULT_PLAN,
    TOP_PRIORITY,
    TOP_PATHS,
    TOP_SERVER,
    TOP_STATE,
    TOP_HEADERS,
    TOP_REJECT,
    TOP_STORE,
    TOP_STICKY,
    TOP_REGIONS,
    TOP_TIMEZONE,
    TOP_IDEMPOTENCY,
    TOP_SCORE,
    TOP_STANDING,
    TOP_KERNEL,
    TOP_PENALTIES,
    TOP_ADAPTIVE,
    TOP_WEBHOOK,
    TOP_CHALLENGE,
    TOP_ENVOY,
    TOP_DENIALS,
    TOP_FIELDS,
};

extern const struct rules_section rules_section_file;

/* The first of these fields that only `weir serve` can do; NULL: there is none. */
const struct rules_keyword *rules_server_only(const struct rules_field fields[TOP_FIELDS]);

#endif
