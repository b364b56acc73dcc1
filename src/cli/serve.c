/* SPDX-License-Identifier: Apache-2.0 */
/* see serve.h */
#include "cli/serve.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/reload/pid_file.h"
#include "server/daemon/server.h"
#include "server/net/listener.h"

static bool take_address(void *field, char *value, struct weir_reason *reason)
{
    struct weir_endpoint endpoint;
    *(const char **)field = value;
    return weir_endpoint_parse(&endpoint, value, reason) == 0;
}

static bool take_log_format(void *field, char *value, struct weir_reason *reason)
{
    bool json = strcmp(value, "json") == 0;
    if (!json && strcmp(value, "text") != 0)
        return cli_refuse(reason, "'text' or 'json'", value);
    ((struct weir_server_options *)field)->log_format = json ? WEIR_LOG_JSON : WEIR_LOG_TEXT;
    return true;
}

static bool take_log_level(void *field, char *value, struct weir_reason *reason)
{
    static const char *const names[] = {"info", "warning", "error"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (!strcmp(value, names[i])) {
            ((struct weir_server_options *)field)->log_level = (enum weir_log_level)i;
            return true;
        }
    }
    return cli_refuse(reason, "'info', 'warning' or 'error'", value);
}

struct serve_options {
    struct weir_server_options server; /* first: what options are taken into */
    const char *pid_file;
};

#define AT(field) .at = offsetof(struct weir_server_options, field)

static const struct cli_option options_table[] = {
    CLI_OPTION('c', "config", "FILE", "rules file; without one there are no limits, and a warning",
               .kind = CLI_TEXT, AT(config)),
    CLI_OPTION(0, "http", "ADDRESS", "decisions over HTTP (default " WEIR_HTTP_ADDRESS_DEFAULT ")",
               .kind = CLI_TAKEN, .take = take_address, AT(http)),
    CLI_OPTION(0, "redis", "ADDRESS", "decisions over the Redis protocol (default off)",
               .kind = CLI_TAKEN, .take = take_address, AT(redis)),
    CLI_OPTION(0, "grpc", "ADDRESS", "decisions over gRPC, for Envoy (default off)",
               .kind = CLI_TEXT, AT(grpc)),
    CLI_OPTION(0, "admin", "ADDRESS",
               "health, metrics, state (default " WEIR_ADMIN_ADDRESS_DEFAULT ")", .kind = CLI_TAKEN,
               .take = take_address, AT(admin)),
    CLI_OPTION(0, "workers", "N", "threads that decide; 'auto' (the default): one a core",
               .kind = CLI_AUTO, .min = 1, .max = WEIR_WORKERS_MAX, AT(workers)),
    CLI_OPTION(0, "watch", NULL, "reload when the rules file changes (SIGHUP always does)",
               .kind = CLI_FLAG, AT(watch)),
    CLI_OPTION(0, "reset-state", NULL,
               "remove the state file, good or damaged, and start with an\n"
               "empty one; fails while another process has it open",
               .kind = CLI_FLAG, AT(reset_state)),
    CLI_OPTION(0, "envoy-config", "DIR",
               "configuration of Envoy's rate limit service, as\n"
               "envoyproxy/ratelimit has it (docs/envoy.md)",
               .kind = CLI_TEXT, AT(envoy_config)),
    CLI_OPTION(0, "pid-file", "PATH", "writes its process id there, for weir reload",
               .kind = CLI_TEXT, .at = offsetof(struct serve_options, pid_file)),
    CLI_OPTION(0, "log-level", "LEVEL", "'info' (all lines, the default), 'warning' or 'error'",
               .kind = CLI_TAKEN, .take = take_log_level),
    CLI_OPTION(0, "log-format", "FORMAT", "'text' (key=value, the default) or 'json'",
               .kind = CLI_TAKEN, .take = take_log_format),
};

static const struct cli_syntax syntax = {
    .command = "serve",
    .usage = "Usage: weir serve [OPTION]...\n"
             "Run the server. Options override the rules file.\n",
    .notes =
        "ADDRESS is HOST:PORT, [IPV6]:PORT, unix:/PATH, or 'off'. Port 0 picks a free one; the\n"
        "log names it. SIGTERM finishes the requests in flight and exits.\n",
    .options = options_table,
    .count = sizeof options_table / sizeof *options_table,
};

int weir_command_serve(int argc, char **argv)
{
    struct serve_options options = {.pid_file = NULL};
    struct weir_reason reason = {{0}};
    int status;
    if (cli_read_options(&syntax, argc, argv, &options, &status) < 0)
        return status;
    if (options.server.watch && !options.server.config)
        return cli_usage_error("serve", "%s needs --config", "--watch");
    if (options.pid_file && cli_pid_file_take(options.pid_file, &reason) < 0) {
        cli_error("%s", reason.text);
        return EXIT_FAILURE;
    }
    status = weir_server_run(&options.server);
    if (options.pid_file)
        cli_pid_file_remove(options.pid_file);
    return status;
}
