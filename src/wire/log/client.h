/* SPDX-License-Identifier: Apache-2.0 */
/* Whose request a line of an access log is: the address that a door would have found.
 *
 * What the server wrote is read by the doors' reader (wire/http/forwarded.h): an address with or
 * without port, brackets and zone; of a list, the right-most hop that is not a trusted proxy. Where
 * the line has X-Forwarded-For (or Forwarded) beside the peer, it counts if the peer is trusted, as
 * at a door.
 *
 * A word that is no address is a name (Apache's HostnameLookups). It stands for an address of its
 * own in fc00::/8, which nobody has: another name, another address, and another /64 (the address is
 * a hash of the name). What looks like an address and is none ("203.0.113.9_x") is noted, for the
 * report; what can be no name ("010.0.0.1", "1.2.3.4:port") makes the line malformed.
 *
 * Threads: one owner.
 */
#ifndef WEIR_WIRE_LOG_CLIENT_H
#define WEIR_WIRE_LOG_CLIENT_H

#include "wire/http/forwarded.h"
#include "wire/log/record.h"

#define WEIR_LOG_NAME_MAX 253 /* of a host: RFC 1035 2.3.4 */
#define WEIR_LOG_ODD_MAX 5    /* names that are shown */
#define WEIR_LOG_ODD_BYTES 64

/* Networks that no client of the open network is in, and Unix sockets: whom to trust where nobody
 * says more. */
extern const struct weir_proxies weir_log_private_proxies;

/* All zero bytes, and who is trusted, are an empty one. */
struct weir_log_clients {
    struct weir_proxies trusted;
    uint64_t forwarded, unread;   /* clients from a field; fields of peers that are not trusted */
    uint64_t lists;               /* clients from a list in place of an address */
    uint64_t names, odd, unknown; /* odd: names that look like addresses */
    char odd_name[WEIR_LOG_ODD_MAX][WEIR_LOG_ODD_BYTES];
    uint32_t odd_shown;
    bool odd_more; /* than are shown */
};

/* Sets the address (family 0: unknown), and the name that it stands for (data == NULL: none), and
 * counts. Errors: WEIR_ERR_SYNTAX with `reason`. */
int weir_log_client_read(struct weir_log_clients *clients, const struct weir_log_record *record,
                         struct weir_address *client, struct weir_bytes *name,
                         struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
