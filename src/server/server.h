/* The daemon: `weir serve`.
 *
 * The main thread loads the rules, opens the table, binds every listener, starts the workers and
 * then runs the control loop: signals, reload, the clock's drift, and the admin listener (a worker
 * like the others, so that a slow scrape never holds up a decision). Each worker is one thread with
 * one loop, its own listening sockets, its own engine and its own owner slot of the table; a
 * request is read, decided and answered there.
 *
 * Everything that can fail for a reason the operator can mend (rules, state file, addresses) fails
 * before the first socket listens, with one line a problem on stderr.
 */
#ifndef WEIR_SERVER_SERVER_H
#define WEIR_SERVER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "server/limits.h"
#include "server/log.h"

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
    bool reset_state; /* overwrite a damaged or foreign state file */
    enum weir_log_format log_format;
};

/* Runs until SIGTERM or SIGINT. Returns the exit status. */
int weir_server_run(const struct weir_server_options *options);

#endif
