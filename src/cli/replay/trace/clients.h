/* SPDX-License-Identifier: Apache-2.0 */
/* Whose request a line of an access log is: the address that a door would have found.
 *
 * What the server wrote is read by the doors' reader (wire/http/forwarded.h): an address with or
 * without port, brackets and zone; of a list, the right-most hop that is no trusted proxy. Where
 * the line has X-Forwarded-For (or Forwarded) beside the peer, it counts if the peer is trusted, as
 * at a door. Trusted are the networks that the user names (--trusted-proxies); else those of
 * `server.trusted_proxies`, if the rules have it; else private networks, since no client of the
 * open network has such an address.
 *
 * A word that is no address is a name (Apache's HostnameLookups). It stands for an address of its
 * own in fc00::/8, which nobody has: another name, another address, and another /64 (the address is
 * a hash of the name). What looks like an address and is none ("203.0.113.9_x") is noted, for the
 * report; what can be no name ("010.0.0.1", "1.2.3.4:port") makes the line malformed.
 *
 * Threads: one owner.
 */
#ifndef WEIR_CLI_REPLAY_TRACE_CLIENTS_H
#define WEIR_CLI_REPLAY_TRACE_CLIENTS_H

#include <stdio.h>

#include "rules/rules.h"
#include "wire/http/forwarded.h"
#include "wire/log/record.h"

#define REPLAY_PROXIES_MAX 64
#define REPLAY_ODD_MAX 5 /* names that are shown */
#define REPLAY_ODD_BYTES 64

/* Networks from the command line. */
struct replay_proxies {
    struct weir_cidr networks[REPLAY_PROXIES_MAX];
    uint32_t count;
    bool local, given; /* local: `unix` is among them */
};

/* Reads "10.0.0.0/8,unix" and the like; "none" trusts nobody. */
bool replay_proxies_parse(struct replay_proxies *proxies, const char *text);

struct replay_clients {
    struct weir_proxies trusted;
    const char *trusted_by;       /* who says so, for the report */
    uint64_t forwarded, unread;   /* clients from a field; fields of peers that are not trusted */
    uint64_t lists;               /* clients from a list in place of an address */
    uint64_t names, odd, unknown; /* odd: names that look like addresses */
    char odd_name[REPLAY_ODD_MAX][REPLAY_ODD_BYTES];
    uint32_t odd_shown;
    bool odd_more; /* than are shown */
};

/* `settings` may be NULL: there are no rules. All is borrowed. */
void replay_clients_init(struct replay_clients *clients, const struct replay_proxies *given,
                         const struct weir_settings *settings);

/* Sets the address (family 0: unknown), and the name that it stands for (data == NULL: none).
 * Errors: WEIR_ERR_SYNTAX with `reason`. */
int replay_client_read(struct replay_clients *clients, const struct weir_log_record *record,
                       struct weir_address *client, struct weir_bytes *name,
                       struct weir_reason *reason) __attribute__((warn_unused_result));

/* What the report says of it; each line begins with `prefix`. */
void replay_clients_print(const struct replay_clients *clients, const char *prefix, FILE *out);

#endif
