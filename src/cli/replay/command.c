/* SPDX-License-Identifier: Apache-2.0 */
/* see command.h */
#include "cli/replay/command.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "cli/replay/replay.h"
#include "cli/replay/stop.h"
#include "cli/replay/trace/detect.h"
#include "cli/suggest/suggest.h"
#include "cli/times.h"
#include "table/table.h"

#define KEYS_MAX_DEFAULT 10000000 /* 0.5 to 1 GB, reached only by a trace with so many keys */
#define TOP_DEFAULT 5
#define TOP_MAX 10000
#define MARGIN_MAX 1000
#define MARGIN_NONE UINT32_MAX /* not given */

static bool take_format(void *field, char *value, struct weir_reason *reason)
{
    char names[REPLAY_FORMATS_MAX];
    int format = replay_format_of(value);
    *(int *)field = format;
    return format >= REPLAY_FORMAT_AUTO || cli_refuse(reason, replay_format_names(names), value);
}

static bool take_proxies(void *field, char *value, struct weir_reason *reason)
{
    return replay_proxies_parse(field, value) ||
           cli_refuse(reason, "networks with commas between, `unix` among them, or none", value);
}

/* "99" or "99.9", as tenths of a percent. */
static bool parse_percentile(const char *text, uint32_t *permille)
{
    char digits[8];
    uint64_t tenths;
    size_t whole = strcspn(text, ".");

    if (whole == 0 || whole > 3 || (text[whole] == '.' && strlen(text + whole) != 2))
        return false;
    snprintf(digits, sizeof digits, "%.*s%s", (int)whole, text,
             text[whole] == '.' ? text + whole + 1 : "0");
    if (!cli_parse_count(digits, 1000, &tenths) || tenths < 500)
        return false;
    *permille = (uint32_t)tenths;
    return true;
}

static bool take_percentile(void *field, char *value, struct weir_reason *reason)
{
    return parse_percentile(value, field) || cli_refuse(reason, "50 to 100, as 99 or 99.9", value);
}

/* Attributes and commas, and so nothing that means something else in a rules file. */
static bool is_key(const char *text)
{
    return text[0] != '\0' &&
           text[strspn(text,
                       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/,")] ==
               '\0';
}

static bool take_key(void *field, char *value, struct weir_reason *reason)
{
    struct replay_options *options = field;
    options->suggest_key = value;
    options->suggest_key_given = true;
    return is_key(value) || cli_refuse(reason, "attributes with commas between", value);
}

#define AT(field) .at = offsetof(struct replay_options, field)

static const struct cli_option options_table[] = {
    CLI_OPTION('c', "config", "FILE", "the rules file", .kind = CLI_TEXT, AT(config)),
    CLI_OPTION('f', "format", "FORMAT",
               "auto (the default: by each file's first lines), jsonl, combined,\n"
               "common, vhost_combined, nginx-main, ingress-nginx, traefik-clf,\n"
               "traefik-json, caddy-json, haproxy",
               .kind = CLI_TAKEN, .take = take_format, AT(format)),
    CLI_OPTION(0, "trusted-proxies", "NETWORKS",
               "proxies whose X-Forwarded-For counts, as 10.0.0.0/8,unix, or\n"
               "none (server.trusted_proxies of the rules, else private networks)",
               .kind = CLI_TAKEN, .take = take_proxies, AT(proxies)),
    CLI_OPTION(0, "allow-disorder", NULL,
               "decide a line that stands more than a minute below a later one\n"
               "at the latest time seen; else it ends the reading",
               .kind = CLI_FLAG, AT(disorder)),
    CLI_OPTION('d', "decisions", "FILE",
               "write every decision as a line of JSON; with '-' they go to\n"
               "standard output and the report to standard error",
               .kind = CLI_TEXT, AT(decisions)),
    CLI_OPTION(0, "compare", NULL, "print each algorithm beside an exact log for the same limits",
               .kind = CLI_FLAG, AT(compare)),
    CLI_OPTION(0, "top", "N",
               "most denied keys to print for each limit (5); with --suggest,\n"
               "routes with most requests (20)",
               .kind = CLI_U64, .max = TOP_MAX, AT(top)),
    CLI_OPTION(0, "skip-bad", NULL, "exit with 0 although lines were malformed", .kind = CLI_FLAG,
               AT(skip_bad)),
    CLI_OPTION(0, "state-size", "SIZE",
               "bytes of the state table, 256KiB to 4TiB (by default it grows with\n"
               "its keys, up to a quarter of the memory)",
               .kind = CLI_SIZE, .min = WEIR_TABLE_BYTES_MIN, .max = WEIR_TABLE_BYTES_MAX,
               AT(state_bytes)),
    CLI_OPTION(0, "max-keys", "N", "distinct keys to count, over all limits (10000000)",
               .kind = CLI_U64, .max = UINT32_MAX, AT(keys_max)),
    CLI_UTC_OPTION(offsetof(struct replay_options, utc)),
    CLI_OPTION(0, "suggest", NULL,
               "instead of a report, print limits for this traffic: a rules file", .kind = CLI_FLAG,
               AT(suggest)),
    CLI_OPTION(0, "percentile", "P",
               "of keys to which all suggested limits together deny nothing, 50\n"
               "to 100, in tenths (99)",
               .kind = CLI_TAKEN, .take = take_percentile, AT(suggest_permille)),
    CLI_OPTION(0, "margin", "PERCENT", "on top of what those keys asked for, 0 to 1000 (50)",
               .kind = CLI_U32, .max = MARGIN_MAX, AT(suggest_margin)),
    CLI_OPTION(0, "key", "ATTRIBUTES", "what a suggested limit counts separately (client.ip/64)",
               .kind = CLI_TAKEN, .take = take_key),
};

static const struct cli_syntax syntax = {
    .command = "replay",
    .usage = "Usage: weir replay --config=FILE [OPTION]... TRACE...\n"
             "  or:  weir replay --suggest [OPTION]... TRACE...\n"
             "Run a recorded trace through the rules, in virtual time, and report which requests "
             "would have\n"
             "been limited. A TRACE is an access log, as Apache, nginx, ingress-nginx, HAProxy, "
             "Traefik and\n"
             "Caddy write it, also from docker and CRI, or has one JSON object a line. It may be "
             "compressed\n"
             "(gzip, zstd). Files are read in the order of their first times; '-' is standard "
             "input.\n",
    .notes =
        "JSON lines look like {\"t\": 1700000000.123456789, \"method\": \"GET\", \"path\": \"/\",\n"
        "\"host\": \"example.org\", \"ip\": \"192.0.2.1\", \"headers\": {}, \"attributes\": {},\n"
        "\"cost\": 1, \"dry_run\": false}. All but t may be left out. Malformed lines are "
        "reported\n"
        "and skipped, and make the exit status 1. Ctrl-C ends the reading: the report is "
        "partial,\n"
        "and the exit status 130.\n",
    .options = options_table,
    .count = sizeof options_table / sizeof *options_table,
    .takes_arguments = true,
};

/* Whether the options fit together. Returns 0 or the exit status. */
static int check_options(struct replay_options *options)
{
    if (!options->suggest && (options->suggest_permille != 0 || options->suggest_key ||
                              options->suggest_margin != MARGIN_NONE))
        return cli_usage_error("replay", "--percentile, --margin and --key go with --suggest");
    if (options->suggest &&
        (options->config || options->decisions || options->compare || options->state_bytes != 0))
        return cli_usage_error("replay", "--suggest takes no rules: neither --config, --decisions, "
                                         "--compare nor --state-size");
    if (options->suggest && options->keys_max == 0)
        return cli_usage_error("replay", "--suggest: --max-keys must not be 0");
    if (!options->suggest && !options->config)
        return cli_usage_error("replay", "--config is required");
    if (options->suggest_permille == 0)
        options->suggest_permille = SUGGEST_PERMILLE;
    if (options->suggest_margin == MARGIN_NONE)
        options->suggest_margin = SUGGEST_MARGIN;
    if (!options->suggest_key)
        options->suggest_key = SUGGEST_KEY;
    if (options->top == UINT64_MAX)
        options->top = options->suggest ? SUGGEST_ROUTES : TOP_DEFAULT;
    options->suggest_routes = options->top;
    return 0;
}

/* How often standard input is a trace: two readers of it would get a part each. */
static size_t inputs(const struct replay_options *options)
{
    size_t count = 0;
    for (size_t i = 0; i < options->trace_count; i++)
        count += strcmp(options->traces[i], "-") == 0;
    return count;
}

int weir_command_replay(int argc, char **argv)
{
    struct replay_options options = {.keys_max = KEYS_MAX_DEFAULT,
                                     .top = UINT64_MAX,
                                     .suggest_margin = MARGIN_NONE,
                                     .format = REPLAY_FORMAT_AUTO};
    int status;
    int first = cli_read_options(&syntax, argc, argv, &options, &status);
    if (first < 0)
        return status;
    status = check_options(&options);
    if (status != 0)
        return status;
    cli_time_choose(options.utc);
    if (first == argc)
        return cli_usage_error("replay", "no trace was given");
    options.traces = (const char *const *)(argv + first);
    options.trace_count = (size_t)(argc - first);
    if (inputs(&options) > 1)
        return cli_usage_error("replay", "standard input ('-') can be one of the traces only");
    replay_stop_watch();
    return options.suggest ? replay_suggest(&options) : replay_run(&options);
}
