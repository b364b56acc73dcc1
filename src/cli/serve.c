/* SPDX-License-Identifier: Apache-2.0 */
/* weir serve: the command line of the daemon; the work is in server/. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "server/daemon/server.h"
#include "server/net/listener.h"

enum serve_option {
    OPT_CONFIG = 256,
    OPT_HTTP,
    OPT_REDIS,
    OPT_GRPC,
    OPT_ADMIN,
    OPT_WORKERS,
    OPT_WATCH,
    OPT_RESET_STATE,
    OPT_LOG_FORMAT,
    OPT_ENVOY_CONFIG,
};

static const struct option long_options[] = {
    {"config", required_argument, NULL, OPT_CONFIG},
    {"http", required_argument, NULL, OPT_HTTP},
    {"redis", required_argument, NULL, OPT_REDIS},
    {"grpc", required_argument, NULL, OPT_GRPC},
    {"admin", required_argument, NULL, OPT_ADMIN},
    {"workers", required_argument, NULL, OPT_WORKERS},
    {"watch", no_argument, NULL, OPT_WATCH},
    {"reset-state", no_argument, NULL, OPT_RESET_STATE},
    {"log-format", required_argument, NULL, OPT_LOG_FORMAT},
    {"envoy-config", required_argument, NULL, OPT_ENVOY_CONFIG},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char help[] =
    "Usage: weir serve [OPTION]...\n"
    "Run the server. Options override the rules file.\n\n"
    "  -c, --config=FILE       rules file; without one there are no limits, and a warning\n"
    "      --http=ADDRESS      decisions over HTTP (default " WEIR_HTTP_ADDRESS_DEFAULT ")\n"
    "      --redis=ADDRESS     decisions over the Redis protocol (default off)\n"
    "      --grpc=ADDRESS      decisions over gRPC, as Envoy asks for them\n"
    "      --admin=ADDRESS     health, metrics, state (default " WEIR_ADMIN_ADDRESS_DEFAULT ")\n"
    "      --workers=N         threads that decide; 'auto' (the default): one a core\n"
    "      --watch             reload when the rules file changes (SIGHUP always does)\n"
    "      --reset-state       remove the state file, good or damaged, and start with an\n"
    "                          empty one; fails while another process has it open\n"
    "      --envoy-config=DIR  configuration of Envoy's rate limit service, as\n"
    "                          envoyproxy/ratelimit has it (docs/envoy.md)\n"
    "      --log-format=FORMAT 'text' (key=value, the default) or 'json'\n"
    "  -h, --help              print this and exit\n\n"
    "ADDRESS is HOST:PORT, [IPV6]:PORT, unix:/PATH, or 'off'. Port 0 picks a free one; the\n"
    "log names it. SIGTERM finishes what is in flight and exits.\n";

/* 0 for "auto". Returns 0 or -1. */
static int parse_workers(const char *text, uint32_t *workers)
{
    *workers = 0;
    if (!strcmp(text, "auto"))
        return 0;
    char *end;
    errno = 0;
    unsigned long number = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || number < 1 || number > WEIR_WORKERS_MAX)
        return -1;
    *workers = (uint32_t)number;
    return 0;
}

/* An address to listen on. Returns 0 or the exit status after telling why it is none. */
static int take_address(const char *option, const char *value, const char **address)
{
    struct weir_endpoint endpoint;
    struct weir_reason reason = {{0}};
    if (weir_endpoint_parse(&endpoint, value, &reason) < 0) {
        cli_error("%s: %s", option, reason.text);
        return cli_try_help("serve");
    }
    *address = value;
    return 0;
}

static int take_option(int option, const char *value, struct weir_server_options *options)
{
    switch (option) {
    case 'c':
    case OPT_CONFIG:
        options->config = value;
        return 0;
    case OPT_HTTP:
        return take_address("--http", value, &options->http);
    case OPT_REDIS:
        return take_address("--redis", value, &options->redis);
    case OPT_GRPC:
        options->grpc = value;
        return 0;
    case OPT_ADMIN:
        return take_address("--admin", value, &options->admin);
    case OPT_WORKERS:
        if (parse_workers(value, &options->workers) < 0)
            return cli_usage_error(
                "serve", "--workers is 'auto' or a number from 1 to 128, not '%s'", value);
        return 0;
    case OPT_WATCH:
        options->watch = true;
        return 0;
    case OPT_RESET_STATE:
        options->reset_state = true;
        return 0;
    case OPT_LOG_FORMAT:
        if (strcmp(value, "text") && strcmp(value, "json"))
            return cli_usage_error("serve", "--log-format is 'text' or 'json', not '%s'", value);
        options->log_format = strcmp(value, "json") ? WEIR_LOG_TEXT : WEIR_LOG_JSON;
        return 0;
    case OPT_ENVOY_CONFIG:
        options->envoy_config = value;
        return 0;
    default: /* getopt has said what is wrong */
        return cli_try_help("serve");
    }
}

int weir_command_serve(int argc, char **argv)
{
    struct weir_server_options options = {0};
    int option;
    while ((option = getopt_long(argc, argv, "c:h", long_options, NULL)) != -1) {
        if (option == 'h')
            return cli_help(help);
        int status = take_option(option, optarg, &options);
        if (status)
            return status;
    }
    if (optind < argc)
        return cli_usage_error("serve", "unexpected argument '%s'", argv[optind]);
    if (options.watch && !options.config)
        return cli_usage_error("serve", "%s needs --config", "--watch");
    return weir_server_run(&options);
}
