/* SPDX-License-Identifier: Apache-2.0 */
/* Which proxies are trusted in a trace (wire/log/client.h says what for), and what the report says
 * of its clients. Trusted are the networks that the user names (--trusted-proxies); else those of
 * `server.trusted_proxies`, if the rules have it; else private networks, since no client of the
 * open network has such an address.
 *
 * Threads: one owner.
 */
#ifndef WEIR_CLI_REPLAY_TRACE_CLIENTS_H
#define WEIR_CLI_REPLAY_TRACE_CLIENTS_H

#include <stdio.h>

#include "rules/rules.h"
#include "wire/log/client.h"

#define REPLAY_PROXIES_MAX 64

/* Networks from the command line. */
struct replay_proxies {
    struct weir_cidr networks[REPLAY_PROXIES_MAX];
    uint32_t count;
    bool local, given; /* local: `unix` is among them */
};

/* Reads "10.0.0.0/8,unix" and the like; "none" trusts nobody. */
bool replay_proxies_parse(struct replay_proxies *proxies, const char *text);

struct replay_clients {
    struct weir_log_clients log;
    const char *trusted_by; /* for the report */
};

/* `settings` may be NULL: there are no rules. All is borrowed. */
void replay_clients_init(struct replay_clients *clients, const struct replay_proxies *given,
                         const struct weir_settings *settings);

/* What the report says of it; each line begins with `prefix`. */
void replay_clients_print(const struct replay_clients *clients, const char *prefix, FILE *out);

#endif
