/* SPDX-License-Identifier: Apache-2.0 */
/* see grant.h */
#include "cli/grant.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/admin_client.h"
#include "cli/options.h"
#include "core/reason.h"
#include "rules/match/key_values.h"
#include "server/daemon/server.h"

struct grant_options {
    const char *admin, *token;
    const char *keys[WEIR_KEY_VALUES_MAX];
    struct admin_grant grant;
};

static bool take_key(void *field, char *value, struct weir_reason *reason)
{
    struct grant_options *options = field;
    if (options->grant.key_count == WEIR_KEY_VALUES_MAX) {
        reason_text(reason, "at most ");
        reason_number(reason, WEIR_KEY_VALUES_MAX);
        reason_text(reason, " values");
        return false;
    }
    options->keys[options->grant.key_count++] = value;
    return true;
}

#define AT(field) .at = offsetof(struct grant_options, field)

static const struct cli_option options_table[] = {
    CLI_OPTION(0, "admin", "ADDRESS",
               "its admin listener, HOST:PORT, [IPV6]:PORT or unix:/PATH\n"
               "(" WEIR_ADMIN_ADDRESS_DEFAULT ")",
               .kind = CLI_TEXT, AT(admin)),
    CLI_OPTION(0, "token", "TOKEN",
               "the admin token. WEIR_ADMIN_TOKEN in the environment does the\n"
               "same and is not seen by other users",
               .kind = CLI_TEXT, AT(token)),
    CLI_OPTION(0, "limit", "NAME", "a limit of the rules file", .kind = CLI_TEXT, AT(grant.limit)),
    CLI_OPTION(0, "key", "VALUE", "a value of its key; once for each, in the order of the file",
               .kind = CLI_TAKEN, .take = take_key),
    CLI_OPTION(0, "plan", "NAME", "the key's plan, where the limit is by plan", .kind = CLI_TEXT,
               AT(grant.plan)),
    CLI_OPTION(0, "user", "NAME", "whose own rates count, where the key does not name the user",
               .kind = CLI_TEXT, AT(grant.user)),
    CLI_OPTION(0, "units", "N", "how many units to give back", .kind = CLI_U64, .min = 1,
               .max = WEIR_BUCKET_MAX, AT(grant.units)),
};

static const struct cli_syntax syntax = {
    .command = "grant",
    .usage = "Usage: weir grant --limit=NAME --key=VALUE... --units=N [OPTION]...\n"
             "Give units back to one key of a running server's limit: at most what the key has "
             "used, so\n"
             "that it is never better off than a new one. The server logs it.\n",
    .options = options_table,
    .count = sizeof options_table / sizeof *options_table,
};

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
    int status;
    if (cli_read_options(&syntax, argc, argv, &options, &status) < 0)
        return status;
    if (!options.grant.limit || options.grant.units == 0)
        return cli_usage_error("grant", "--limit and --units are required");
    return run(&options);
}
