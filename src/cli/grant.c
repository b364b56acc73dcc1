/* SPDX-License-Identifier: Apache-2.0 */
/* see grant.h */
#include "cli/grant.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/admin_access.h"
#include "core/text/reason.h"
#include "rules/match/key_values.h"
#include "server/text/durations.h"

struct grant_options {
    struct admin_access access;
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
    ADMIN_ACCESS_OPTIONS(offsetof(struct grant_options, access)),
    CLI_OPTION(0, "limit", "NAME", "a limit of the rules file", .kind = CLI_TEXT, AT(grant.limit)),
    CLI_OPTION(0, "key", "VALUE", "a value of its key; once for each, in the order of the file",
               .kind = CLI_TAKEN, .take = take_key),
    CLI_OPTION(0, "plan", "NAME", "the key's plan: required where the limit is by plan",
               .kind = CLI_TEXT, AT(grant.plan)),
    CLI_OPTION(0, "user", "NAME", "whose own rates count, where the key does not name the user",
               .kind = CLI_TEXT, AT(grant.user)),
    CLI_OPTION(0, "units", "N", "how many units to give", .kind = CLI_U64, .min = 1,
               .max = WEIR_BUCKET_MAX, AT(grant.units)),
    CLI_OPTION(
        0, "above", NULL,
        "above the limit, on top of all that it gives: units that were bought. They are used "
        "where the limit denies, until none is left",
        .kind = CLI_FLAG, AT(grant.above)),
    CLI_OPTION(0, "expires", "DURATION",
               "with --above: how long they live, such as 30d; else as the limit says (top_up)",
               .kind = CLI_TEXT, AT(grant.expires)),
};

static const struct cli_syntax syntax = {
    .command = "grant",
    .usage = "Usage: weir grant --limit=NAME --key=VALUE... --units=N [OPTION]...\n"
             "Give units back to one key of a running server's limit: at most what the key has "
             "used, so\n"
             "that it is never better off than a new one. With --above give it bought units on top "
             "of its limit,\n"
             "which has `top_up`. The server logs it.\n",
    .options = options_table,
    .count = sizeof options_table / sizeof *options_table,
};

struct granting {
    const struct admin_grant *grant;
    struct admin_granted granted;
};

static int give(struct admin_client *client, void *context, struct weir_reason *reason)
{
    struct granting *granting = context;
    return admin_client_grant(client, granting->grant, &granting->granted, reason);
}

static int run(const struct grant_options *options)
{
    struct granting granting = {.grant = &options->grant};
    const struct admin_granted *granted = &granting.granted;
    int status = admin_access_call(&options->access, give, &granting);
    char ends[WEIR_DURATION_MAX];
    if (status != EXIT_SUCCESS)
        return status;
    if (options->grant.above) {
        printf("%s: %" PRIu64 " bought units are left; they end in %s\n", options->grant.limit,
               granted->bought, weir_duration(ends, granted->ends_after_ms));
        return cli_finish(EXIT_SUCCESS);
    }
    printf("%s: %" PRIu64 " of %" PRIu64 " remain%s\n", options->grant.limit, granted->remaining,
           granted->limit,
           granted->granted
               ? ""
               : "; there was nothing to give back: no state of this key is live. It has "
                 "used nothing, or is another key");
    return cli_finish(EXIT_SUCCESS);
}

int weir_command_grant(int argc, char **argv)
{
    struct grant_options options = {.access = admin_access_default()};
    options.grant.keys = options.keys;
    int status;
    if (cli_read_options(&syntax, argc, argv, &options, &status) < 0)
        return status;
    if (!options.grant.limit || options.grant.units == 0)
        return cli_usage_error("grant", "--limit and --units are required");
    if (options.grant.expires && !options.grant.above)
        return cli_usage_error("grant", "--expires goes with --above");
    return run(&options);
}
