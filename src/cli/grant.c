/* SPDX-License-Identifier: Apache-2.0 */
/* `weir grant`: tops up one key of a running server's limit. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/admin_client.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "rules/match/key_values.h"
#include "server/daemon/server.h"

static const char help[] =
    "Usage: weir grant --limit=NAME --key=VALUE... --units=N [OPTION]...\n"
    "Give units back to one key of a running server's limit: at most what the key has used, so\n"
    "that it is never better off than a new one. The server logs it.\n"
    "\n"
    "      --admin=ADDRESS     its admin listener, HOST:PORT, [IPV6]:PORT or unix:/PATH\n"
    "                          (" WEIR_ADMIN_ADDRESS_DEFAULT ")\n"
    "      --token=TOKEN       the admin token; WEIR_ADMIN_TOKEN in the environment does the\n"
    "                          same and is not seen by other users\n"
    "      --limit=NAME        a limit of the rules file\n"
    "      --key=VALUE         a value of its key; once for each, in the order of the file\n"
    "      --plan=NAME         the key's plan, where the limit is by plan\n"
    "      --user=NAME         whose own rates count, where the key does not name the user\n"
    "      --units=N           how many\n"
    "  -h, --help              print this and exit\n";

enum { OPT_ADMIN = 256, OPT_TOKEN, OPT_LIMIT, OPT_KEY, OPT_PLAN, OPT_USER, OPT_UNITS };

static const struct option long_options[] = {
    {"admin", required_argument, NULL, OPT_ADMIN},
    {"token", required_argument, NULL, OPT_TOKEN},
    {"limit", required_argument, NULL, OPT_LIMIT},
    {"key", required_argument, NULL, OPT_KEY},
    {"plan", required_argument, NULL, OPT_PLAN},
    {"user", required_argument, NULL, OPT_USER},
    {"units", required_argument, NULL, OPT_UNITS},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct grant_options {
    const char *admin, *token;
    const char *keys[WEIR_KEY_VALUES_MAX];
    struct admin_grant grant;
};

/* Returns 0, or what to exit with. */
static int take_option(int option, const char *value, struct grant_options *options)
{
    struct admin_grant *grant = &options->grant;
    switch (option) {
    case OPT_ADMIN:
        options->admin = value;
        return 0;
    case OPT_TOKEN:
        options->token = value;
        return 0;
    case OPT_LIMIT:
        grant->limit = value;
        return 0;
    case OPT_PLAN:
        grant->plan = value;
        return 0;
    case OPT_USER:
        grant->user = value;
        return 0;
    case OPT_KEY:
        if (grant->key_count == WEIR_KEY_VALUES_MAX)
            return cli_usage_error("grant", "more than %d keys", WEIR_KEY_VALUES_MAX);
        options->keys[grant->key_count++] = value;
        return 0;
    case OPT_UNITS:
        if (!cli_parse_count(value, WEIR_BUCKET_MAX, &grant->units) || grant->units == 0)
            return cli_usage_error("grant", "--units must be 1 to 2^40");
        return 0;
    default:
        return cli_try_help("grant");
    }
}

static int run(const struct grant_options *options)
{
    struct admin_granted granted;
    struct weir_reason reason = {{0}};
    struct admin_client *client;
    int error = admin_client_open(&client, options->admin, options->token);
    if (error < 0) {
        cli_error("%s", weir_error_text(error));
        return EXIT_FAILURE;
    }
    error = admin_client_grant(client, &options->grant, &granted, &reason);
    admin_client_close(client);
    if (error < 0) {
        cli_error("%s: %s", options->admin, reason.text);
        return EXIT_FAILURE;
    }
    printf("%s: %" PRIu64 " of %" PRIu64 " remain%s\n", options->grant.limit, granted.remaining,
           granted.limit, granted.granted ? "" : "; there was nothing to give back");
    return cli_finish(EXIT_SUCCESS);
}

int weir_command_grant(int argc, char **argv)
{
    struct grant_options options = {.admin = WEIR_ADMIN_ADDRESS_DEFAULT,
                                    .token = getenv("WEIR_ADMIN_TOKEN")};
    options.grant.keys = options.keys;
    int option;
    while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        if (option == 'h')
            return cli_help(help);
        int status = take_option(option, optarg, &options);
        if (status != 0)
            return status;
    }
    if (optind < argc)
        return cli_usage_error("grant", "unexpected argument '%s'", argv[optind]);
    if (options.grant.limit == NULL || options.grant.units == 0)
        return cli_usage_error("grant", "--limit and --units are needed");
    return run(&options);
}
