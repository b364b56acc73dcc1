/* SPDX-License-Identifier: Apache-2.0 */
/* see envoy.h */
#include "feature/envoy/cli/envoy.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "feature/envoy/cli/environment.h"
#include "server/daemon/server.h"

struct envoy_options {
    uint32_t workers;
    bool print_config;
    const char *xds_cache;
};

#define AT(field) .at = offsetof(struct envoy_options, field)

static const struct cli_option options_table[] = {
    CLI_OPTION(0, "print-config", NULL,
               "print the rules file that the environment stands for, and exit", .kind = CLI_FLAG,
               AT(print_config)),
    CLI_OPTION(0, "workers", "N", "threads that decide; 'auto' (the default): one a core",
               .kind = CLI_AUTO, .min = 1, .max = WEIR_WORKERS_MAX, AT(workers)),
    CLI_OPTION(0, "xds-cache", "FILE",
               "keep the last good configuration of a control plane in FILE, for a\n"
               "start without it (also WEIR_XDS_CACHE)",
               .kind = CLI_TEXT, AT(xds_cache)),
};

static const struct cli_syntax syntax = {
    .command = "envoy",
    .usage = "Usage: weir envoy [OPTION]...\n"
             "Run the server as a replacement of envoyproxy/ratelimit: its environment variables, "
             "its YAML\n"
             "files, its ports. Without REDIS_URL, states are in this process' memory.\n",
    .notes =
        "Started under the name `ratelimit`, weir does the same. docs/envoy.md has the table of\n"
        "variables.\n",
    .options = options_table,
    .count = sizeof options_table / sizeof *options_table,
};

/* An option overrides its variable. */
static const char *from_process(void *context, const char *name)
{
    const struct envoy_options *options = context;
    return options->xds_cache && !strcmp(name, "WEIR_XDS_CACHE") ? options->xds_cache
                                                                 : getenv(name);
}

int weir_command_envoy(int argc, char **argv)
{
    struct weir_server_options server = {0};
    struct envoy_options options = {0};
    struct weir_reason reason;
    struct cli_envoy envoy;
    int status;
    if (cli_read_options(&syntax, argc, argv, &options, &status) < 0)
        return status;
    int err = cli_envoy_read(&envoy, from_process, &options, stderr, &reason);
    if (err < 0) {
        cli_error("%s", reason.text[0] ? reason.text : weir_error_text(err));
        return EXIT_FAILURE;
    }
    if (options.print_config) {
        fputs(envoy.rules, stdout);
        status = cli_finish(EXIT_SUCCESS);
    } else {
        server.config_text = envoy.rules;
        server.workers = options.workers;
        server.log_format = envoy.json_log ? WEIR_LOG_JSON : WEIR_LOG_TEXT;
        server.log_level = (enum weir_log_level)envoy.log_level;
        status = weir_server_run(&server);
    }
    free(envoy.rules);
    return status;
}
