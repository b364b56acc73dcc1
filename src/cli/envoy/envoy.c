/* SPDX-License-Identifier: Apache-2.0 */
/* `weir envoy`: the server, configured as envoyproxy/ratelimit is; also the program called
 * `ratelimit`. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/envoy/environment.h"
#include "cli/options.h"
#include "server/daemon/server.h"

static const char help[] =
    "Usage: weir envoy [OPTION]...\n"
    "Run the server as a replacement of envoyproxy/ratelimit: its environment variables, its YAML\n"
    "files, its ports. Without REDIS_URL, states are in this process' memory.\n\n"
    "      --print-config      print the rules file that the environment stands for, and exit\n"
    "      --workers=N         threads that decide; 'auto' (the default): one a core\n"
    "  -h, --help              print this and exit\n\n"
    "Started under the name `ratelimit`, weir does the same. docs/envoy.md has the table of\n"
    "variables.\n";

enum { OPT_PRINT = 256, OPT_WORKERS };

static const struct option long_options[] = {
    {"print-config", no_argument, NULL, OPT_PRINT},
    {"workers", required_argument, NULL, OPT_WORKERS},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char *from_process(void *context, const char *name)
{
    (void)context;
    return getenv(name);
}

int weir_command_envoy(int argc, char **argv)
{
    struct weir_server_options options = {0};
    struct weir_reason reason;
    struct cli_envoy envoy;
    uint64_t workers = 0;
    bool print = false;
    int option;
    while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        if (option == 'h')
            return cli_help(help);
        if (option == OPT_PRINT)
            print = true;
        else if (option != OPT_WORKERS)
            return cli_try_help("envoy");
        else if (strcmp(optarg, "auto") != 0 &&
                 (!cli_parse_count(optarg, WEIR_WORKERS_MAX, &workers) || workers == 0))
            return cli_usage_error(
                "envoy", "--workers is 'auto' or a number from 1 to 128, not '%s'", optarg);
    }
    if (optind < argc)
        return cli_usage_error("envoy", "unexpected argument '%s'", argv[optind]);
    int err = cli_envoy_read(&envoy, from_process, NULL, stderr, &reason);
    if (err < 0) {
        cli_error("%s", reason.text[0] ? reason.text : weir_error_text(err));
        return EXIT_FAILURE;
    }
    int status;
    if (print) {
        fputs(envoy.rules, stdout);
        status = cli_finish(EXIT_SUCCESS);
    } else {
        options.config_text = envoy.rules;
        options.workers = (uint32_t)workers;
        options.log_format = envoy.json_log ? WEIR_LOG_JSON : WEIR_LOG_TEXT;
        status = weir_server_run(&options);
    }
    free(envoy.rules);
    return status;
}
