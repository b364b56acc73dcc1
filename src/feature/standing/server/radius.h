/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a ban would hit: what is known of the traffic of a value or a network, and what speaks for a
 * second look before it is refused.
 *
 * Counts are of the callers that used most within a day (feature/use/server/observer.h), so they
 * are `at least`. What makes it ask:
 *   - above 1 % of all requests, of 100 or more
 *   - a network larger than a /16 (IPv4) or a /48 (IPv6)
 *   - it contains loopback, a proxy of server.trusted_proxies, or the address that asks for it
 *   - a value, other than an address, that nobody has had of late
 *
 * Threads: the main thread's.
 */
#ifndef WEIR_FEATURE_STANDING_SERVER_RADIUS_H
#define WEIR_FEATURE_STANDING_SERVER_RADIUS_H

#include "feature/standing/server/service.h"
#include "feature/use/server/use.h"

enum weir_radius_doubt {
    WEIR_RADIUS_MUCH = 1, /* of all requests */
    WEIR_RADIUS_LARGE = 2,
    WEIR_RADIUS_LOOPBACK = 4,
    WEIR_RADIUS_PROXY = 8,
    WEIR_RADIUS_SELF = 16,
    WEIR_RADIUS_UNKNOWN = 32,
};
/* Those that a refusal has to be sure of without having asked: scripts ban values that nobody has
 * had yet. */
#define WEIR_RADIUS_WIDE (WEIR_RADIUS_UNKNOWN - 1)

struct weir_radius {
    uint64_t requests, all; /* of the last day; `requests` at least */
    uint64_t callers;       /* addresses, users or organisations in it that are known */
    unsigned doubts;        /* enum weir_radius_doubt; 0: nothing speaks against it */
};

/* `text` is the value as it was given; `peer` the address that asks for it (family 0: not known).
 */
void weir_radius_find(struct weir_daemon *daemon, const struct weir_standing_value *value,
                      struct weir_bytes text, const struct weir_address *peer, uint64_t now_ns,
                      struct weir_radius *radius);

/* {"requests_at_least", "requests", "percent", "callers_at_least", "asks": ["…"]}, of a refusal. */
json_t *weir_radius_json(const struct weir_radius *radius);
/* Why it asks, as one sentence. */
void weir_radius_why(const struct weir_radius *radius, struct weir_reason *reason);

#endif
