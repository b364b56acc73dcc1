/* SPDX-License-Identifier: Apache-2.0 */
/* see replay.h */
#include "cli/replay/replay.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/suggest/suggest.h"
#include "table/table.h"

#define KEYS_MAX_DEFAULT 10000000 /* 0.5 to 1 GB, reached only by a trace with so many keys */
#define TOP_DEFAULT 5
#define TOP_MAX 10000
#define MARGIN_MAX 1000
#define MARGIN_NONE UINT32_MAX /* not given */

static const char help[] =
    "Usage: weir replay --config=FILE [OPTION]... TRACE...\n"
    "  or:  weir replay --suggest [OPTION]... TRACE...\n"
    "Run a recorded trace through the rules, in virtual time, and report who would have been\n"
    "limited. A TRACE is an access log (common or combined format) or has one JSON object a\n"
    "line; '-' is standard input.\n"
    "\n"
    "  -c, --config=FILE       the rules file\n"
    "  -f, --format=FORMAT     auto (the default: by each file's first line), jsonl, common,\n"
    "                          combined\n"
    "  -d, --decisions=FILE    write every decision as a line of JSON; with '-' they go to\n"
    "                          standard output and the report to standard error\n"
    "      --compare           print each algorithm beside an exact log for the same limits\n"
    "      --top=N             most denied keys to print for each limit (5); with --suggest,\n"
    "                          routes with most requests (20)\n"
    "      --skip-bad          exit with 0 although lines were malformed\n"
    "      --state-size=SIZE   bytes of the state table, as 512MiB or 4GiB (by\n"
    "                          default as the trace may need, up to a quarter of the memory)\n"
    "      --max-keys=N        distinct keys to count, over all limits (10000000)\n"
    "      --suggest           instead of a report, print limits for this traffic: a rules file\n"
    "      --percentile=P      of keys to which all suggested limits together deny nothing, 50\n"
    "                          to 100, in tenths (99)\n"
    "      --margin=PERCENT    on top of what those keys asked for, 0 to 1000 (50)\n"
    "      --key=ATTRIBUTES    what a suggested limit counts separately (client.ip/64)\n"
    "  -h, --help              print this and exit\n"
    "\n"
    "JSON lines look like {\"t\": 1700000000.123456789, \"method\": \"GET\", \"path\": \"/\",\n"
    "\"host\": \"example.org\", \"ip\": \"192.0.2.1\", \"headers\": {}, \"attributes\": {},\n"
    "\"cost\": 1, \"dry_run\": false}; all but t may be left out. Malformed lines are reported "
    "and\n"
    "left out, and make the exit status 1.\n";

enum {
    OPT_COMPARE = 256,
    OPT_TOP,
    OPT_SKIP_BAD,
    OPT_STATE_SIZE,
    OPT_MAX_KEYS,
    OPT_SUGGEST,
    OPT_PERCENTILE,
    OPT_MARGIN,
    OPT_KEY,
};

static const struct option long_options[] = {
    {"config", required_argument, NULL, 'c'},
    {"format", required_argument, NULL, 'f'},
    {"decisions", required_argument, NULL, 'd'},
    {"compare", no_argument, NULL, OPT_COMPARE},
    {"top", required_argument, NULL, OPT_TOP},
    {"skip-bad", no_argument, NULL, OPT_SKIP_BAD},
    {"state-size", required_argument, NULL, OPT_STATE_SIZE},
    {"max-keys", required_argument, NULL, OPT_MAX_KEYS},
    {"suggest", no_argument, NULL, OPT_SUGGEST},
    {"percentile", required_argument, NULL, OPT_PERCENTILE},
    {"margin", required_argument, NULL, OPT_MARGIN},
    {"key", required_argument, NULL, OPT_KEY},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool parse_format(const char *text, enum replay_format *format)
{
    static const struct {
        const char *name;
        enum replay_format format;
    } formats[] = {{"auto", REPLAY_AUTO},
                   {"jsonl", REPLAY_JSONL},
                   {"common", REPLAY_ACCESS_LOG},
                   {"combined", REPLAY_ACCESS_LOG}};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(text, formats[i].name) == 0) {
            *format = formats[i].format;
            return true;
        }
    }
    return false;
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

/* Attributes and commas, and so nothing that means something else in a rules file. */
static bool is_key(const char *text)
{
    return text[0] != '\0' &&
           text[strspn(text,
                       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/,")] ==
               '\0';
}

/* Takes one option of --suggest. Returns 0 or the exit status. */
static int take_suggest_option(int option, const char *value, struct replay_options *options)
{
    uint64_t margin;

    switch (option) {
    case OPT_SUGGEST:
        options->suggest = true;
        return 0;
    case OPT_PERCENTILE:
        if (!parse_percentile(value, &options->suggest_permille))
            return cli_usage_error("replay", "--percentile: 50 to 100, as 99 or 99.9, not '%s'",
                                   value);
        return 0;
    case OPT_MARGIN:
        if (!cli_parse_count(value, MARGIN_MAX, &margin))
            return cli_usage_error("replay", "--margin: a number of 0 to %d, in percent, not '%s'",
                                   MARGIN_MAX, value);
        options->suggest_margin = (uint32_t)margin;
        return 0;
    case OPT_KEY:
        if (!is_key(value))
            return cli_usage_error("replay", "--key: attributes with commas between, not '%s'",
                                   value);
        options->suggest_key = value;
        options->suggest_key_given = true;
        return 0;
    default: /* getopt has said what is wrong */
        return cli_try_help("replay");
    }
}

/* Takes one option. Returns 0 or the exit status. */
static int take_option(int option, const char *value, struct replay_options *options)
{
    switch (option) {
    case 'c':
        options->config = value;
        return 0;
    case 'd':
        options->decisions = value;
        return 0;
    case 'f':
        if (!parse_format(value, &options->format))
            return cli_usage_error("replay", "--format: auto, jsonl, common or combined, not '%s'",
                                   value);
        return 0;
    case OPT_COMPARE:
        options->compare = true;
        return 0;
    case OPT_SKIP_BAD:
        options->skip_bad = true;
        return 0;
    case OPT_TOP:
        if (!cli_parse_count(value, TOP_MAX, &options->top))
            return cli_usage_error("replay", "--top: a number of 0 to %d, not '%s'", TOP_MAX,
                                   value);
        return 0;
    case OPT_MAX_KEYS:
        if (!cli_parse_count(value, UINT32_MAX, &options->keys_max))
            return cli_usage_error("replay", "--max-keys: not a number: '%s'", value);
        return 0;
    case OPT_STATE_SIZE:
        if (!cli_parse_size(value, &options->state_bytes) ||
            options->state_bytes < WEIR_TABLE_BYTES_MIN ||
            options->state_bytes > WEIR_TABLE_BYTES_MAX)
            return cli_usage_error("replay", "--state-size: 256KiB to 4TiB, not '%s'", value);
        return 0;
    default:
        return take_suggest_option(option, value, options);
    }
}

/* Whether the options fit together. Returns 0 or the exit status. */
static int check_options(struct replay_options *options)
{
    if (!options->suggest && (options->suggest_permille != 0 || options->suggest_key != NULL ||
                              options->suggest_margin != MARGIN_NONE))
        return cli_usage_error("replay", "--percentile, --margin and --key go with --suggest");
    if (options->suggest && (options->config != NULL || options->decisions != NULL ||
                             options->compare || options->state_bytes != 0))
        return cli_usage_error("replay", "--suggest takes no rules: neither --config, --decisions, "
                                         "--compare nor --state-size");
    if (options->suggest && options->keys_max == 0)
        return cli_usage_error("replay", "--suggest: --max-keys must not be 0");
    if (!options->suggest && options->config == NULL)
        return cli_usage_error("replay", "--config is missing");
    if (options->suggest_permille == 0)
        options->suggest_permille = SUGGEST_PERMILLE;
    if (options->suggest_margin == MARGIN_NONE)
        options->suggest_margin = SUGGEST_MARGIN;
    if (options->suggest_key == NULL)
        options->suggest_key = SUGGEST_KEY;
    if (options->top == UINT64_MAX)
        options->top = options->suggest ? SUGGEST_ROUTES : TOP_DEFAULT;
    options->suggest_routes = options->top;
    return 0;
}

int weir_command_replay(int argc, char **argv)
{
    struct replay_options options = {
        .keys_max = KEYS_MAX_DEFAULT, .top = UINT64_MAX, .suggest_margin = MARGIN_NONE};
    int option;
    while ((option = getopt_long(argc, argv, "c:f:d:h", long_options, NULL)) != -1) {
        if (option == 'h')
            return cli_help(help);
        int status = take_option(option, optarg, &options);
        if (status != 0)
            return status;
    }
    int status = check_options(&options);
    if (status != 0)
        return status;
    if (optind == argc)
        return cli_usage_error("replay", "no trace was given");
    options.traces = (const char *const *)(argv + optind);
    options.trace_count = (size_t)(argc - optind);
    return options.suggest ? replay_suggest(&options) : replay_run(&options);
}
