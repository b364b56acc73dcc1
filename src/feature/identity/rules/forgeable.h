/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that a client chooses: what `weir validate` says of limits that count by a header field
 * which nobody verifies. */
#ifndef WEIR_FEATURE_IDENTITY_RULES_FORGEABLE_H
#define WEIR_FEATURE_IDENTITY_RULES_FORGEABLE_H

#include "rules/rules.h"

enum weir_forgeable {
    WEIR_FORGEABLE_NONE,
    WEIR_FORGEABLE_ADDRESS, /* a field that says the client's address, such as X-Forwarded-For */
    WEIR_FORGEABLE_FIELD, /* the only attribute of the key is a header field, which `identify` does
                             not read, and `on_unknown: deny` is not set */
};

/* What of a limit's key the client can choose; `name` is that attribute. */
enum weir_forgeable weir_rules_forgeable(const struct weir_rules *rules, uint32_t rule,
                                         struct weir_bytes *name);

#endif
