/* SPDX-License-Identifier: Apache-2.0 */
/* What a client counts by. */
#ifndef WEIR_RULES_COUNTED_H
#define WEIR_RULES_COUNTED_H

#include "core/text/address.h"

struct weir_rules;

/* The address that a client counts by: the IPv4 one that a translator has put into an IPv6 address
 * (`server.nat64`), else `client`; `inside` is room for it. For what is counted, held and given out
 * by address; never for what names an address: match, unless, trusted_proxies, what the kernel and
 * XDP never filter. */
const struct weir_address *weir_rules_counted_by(const struct weir_rules *rules,
                                                 const struct weir_address *client,
                                                 struct weir_address *inside);

#endif
