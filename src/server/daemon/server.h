/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon: `weir serve`.
 *
 * The main thread loads the rules, opens the table, binds every listener, starts the workers and
 * then runs the control loop: signals, reload, the clock's drift, and the admin listener (a worker
 * like the others, so that a slow scrape never holds up a decision). Each worker is one thread with
 * one loop, its own listening sockets, its own engine and its own owner slot of the table; a
 * request is read, decided and answered there.
 *
 * Everything that can fail for a reason the operator can fix (rules, state file, addresses) fails
 * before the first socket listens, with one line a problem on stderr.
 */
#ifndef WEIR_SERVER_DAEMON_SERVER_H
#define WEIR_SERVER_DAEMON_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "rules/rules.h"
#include "server/daemon/limits.h"
#include "server/daemon/log.h"
#include "server/pressure/few_keys.h"

#define WEIR_HTTP_ADDRESS_DEFAULT "127.0.0.1:8080"
#define WEIR_ADMIN_ADDRESS_DEFAULT "127.0.0.1:9090"

/* The command line; it overrides the rules file. NULL or zero: not given. */
struct weir_server_options {
    const char *config;       /* NULL: no limits, default listeners */
    const char *config_text;  /* instead of `config`: the rules themselves */
    const char *envoy_config; /* folder of Envoy's configuration; goes before envoy.config */
    const char *http, *redis, *grpc, *admin;
    uint32_t workers;
    bool watch;       /* reload when the rules file changes */
    bool reset_state; /* start with an empty state file in place of the one that is there */
    enum weir_log_format log_format;
    enum weir_log_level log_level; /* lines below it are not written */
};

/* Whether a server would start with these rules alone, as far as that can be said without starting
 * it: listeners, certificates, room for their limits in the state that there is or would be. What
 * only a running server finds (an address in use, a disk that is full) is not looked for. Errors:
 * WEIR_ERR_RULES and others; `reason` says what is wrong. */
int weir_server_check(struct weir_rules *rules, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* The limits for whose keys the state has little room that a server would have with these rules:
 * the file that is there, or a new one. None where their states live in a remote store. Errors:
 * those of weir_table_plan_capacity. */
int weir_server_few_keys(const struct weir_rules *rules, struct weir_few_keys *few)
    __attribute__((warn_unused_result));

/* What the state of a server with these rules has room for: with `bytes` 0 that of the file that is
 * there, or of a new one; else that of a new one of so many bytes. Errors: those of
 * weir_table_plan_capacity. */
int weir_server_capacity(const struct weir_rules *rules, uint64_t bytes,
                         struct weir_table_capacity *capacity) __attribute__((warn_unused_result));

/* Runs until SIGTERM or SIGINT. Returns the exit status. */
int weir_server_run(const struct weir_server_options *options);

#endif
