/* SPDX-License-Identifier: Apache-2.0 */
/* see explain.h */
#include "cli/explain.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"

static const char help[] =
    "Usage: weir explain --config=FILE [OPTION]...\n"
    "Say which limits a request meets, with which keys, why the others do not apply, and what\n"
    "they would decide now. Nothing is charged.\n"
    "\n"
    "  -c, --config=FILE       the rules file\n"
    "  -m, --method=METHOD     what the request is\n"
    "  -p, --path=PATH\n"
    "      --host=HOST\n"
    "      --ip=ADDRESS\n"
    "  -H, --header='N: VALUE' a header; may be given again\n"
    "  -a, --attribute=N=VALUE any other attribute, as user=alice; may be given again\n"
    "      --cost=N            (1)\n"
    "  -j, --json=REQUEST      the request as for /v1/check, instead of the options above\n"
    "  -s, --state=FILE        look into this state file, which a server may be using (without\n"
    "                          it, states are fresh)\n"
    "  -h, --help              print this and exit\n";

enum {
    OPT_HOST = 256,
    OPT_IP,
    OPT_COST,
};

static const struct option long_options[] = {
    {"config", required_argument, NULL, 'c'},
    {"method", required_argument, NULL, 'm'},
    {"path", required_argument, NULL, 'p'},
    {"host", required_argument, NULL, OPT_HOST},
    {"ip", required_argument, NULL, OPT_IP},
    {"header", required_argument, NULL, 'H'},
    {"attribute", required_argument, NULL, 'a'},
    {"cost", required_argument, NULL, OPT_COST},
    {"json", required_argument, NULL, 'j'},
    {"state", required_argument, NULL, 's'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static struct weir_bytes bytes_of(const char *text)
{
    return (struct weir_bytes){text, strlen(text)};
}

/* Cuts "name<mark>value". */
static bool cut_pair(const char *text, char mark, struct weir_check_pair *pair)
{
    const char *at = strchr(text, mark);
    if (at == NULL || at == text)
        return false;
    pair->name = (struct weir_bytes){text, (size_t)(at - text)};
    pair->value = bytes_of(at + 1);
    return true;
}

static int add_header(struct weir_check_json *check, const char *text)
{
    struct weir_check_pair pair;
    if (!cut_pair(text, ':', &pair))
        return cli_usage_error("explain", "--header: 'NAME: VALUE', not '%s'", text);
    if (check->header_count == WEIR_CHECK_JSON_PAIRS_MAX)
        return cli_usage_error("explain", "more than %d headers", WEIR_CHECK_JSON_PAIRS_MAX);
    while (pair.value.size > 0 && (*pair.value.data == ' ' || *pair.value.data == '\t')) {
        pair.value.data++;
        pair.value.size--;
    }
    check->headers[check->header_count++] = pair;
    return 0;
}

static int add_attribute(struct weir_check_json *check, const char *text)
{
    struct weir_check_pair pair;
    if (!cut_pair(text, '=', &pair))
        return cli_usage_error("explain", "--attribute: 'NAME=VALUE', not '%s'", text);
    if (check->attribute_count == WEIR_CHECK_JSON_PAIRS_MAX)
        return cli_usage_error("explain", "more than %d attributes", WEIR_CHECK_JSON_PAIRS_MAX);
    check->attributes[check->attribute_count++] = pair;
    return 0;
}

/* `text` is an argument of ours, which may be written to. */
static int parse_json(struct weir_check_json *check, char *text)
{
    struct weir_reason reason = {{0}};
    struct weir_check_cursor cursor;
    weir_check_cursor_init(&cursor, text, strlen(text));
    int got = weir_check_cursor_next(&cursor, check, &reason);
    struct weir_check_json tail;
    if (got == 1 && !cursor.array)
        got = weir_check_cursor_next(&cursor, &tail, &reason) == 0 ? 1 : WEIR_ERR_SYNTAX;
    if (got == 1 && !cursor.array)
        return 0;
    return cli_usage_error("explain", "--json: %s", got < 0 ? reason.text : "not one JSON object");
}

/* Takes one option. Returns 0 or the exit status. */
static int take_option(int option, char *value, struct explain_options *options)
{
    struct weir_check_json *check = &options->check;
    switch (option) {
    case 'c':
        options->config = value;
        return 0;
    case 's':
        options->state = value;
        return 0;
    case 'm':
        check->method = bytes_of(value);
        return 0;
    case 'p':
        check->path = bytes_of(value);
        return 0;
    case OPT_HOST:
        check->host = bytes_of(value);
        return 0;
    case OPT_IP:
        check->ip = bytes_of(value);
        return 0;
    case 'H':
        return add_header(check, value);
    case 'a':
        return add_attribute(check, value);
    case OPT_COST:
        if (!cli_parse_count(value, UINT64_MAX, &check->cost))
            return cli_usage_error("explain", "--cost: not a number: '%s'", value);
        return 0;
    case 'j':
        return parse_json(check, value);
    default: /* getopt has said what is wrong */
        return cli_try_help("explain");
    }
}

int weir_command_explain(int argc, char **argv)
{
    static struct explain_options options = {.check.cost = 1}; /* large for the stack */
    bool json = false, parts = false;
    int option;
    while ((option = getopt_long(argc, argv, "c:m:p:H:a:j:s:h", long_options, NULL)) != -1) {
        if (option == 'h')
            return cli_help(help);
        json |= option == 'j';
        parts |= option != 'j' && option != 'c' && option != 's';
        int status = take_option(option, optarg, &options);
        if (status != 0)
            return status;
    }
    if (optind < argc)
        return cli_usage_error("explain", "unexpected argument '%s'", argv[optind]);
    if (options.config == NULL)
        return cli_usage_error("explain", "--config is missing");
    if (json && parts)
        return cli_usage_error("explain", "--json says the whole request: no other part beside it");
    return explain_run(&options);
}
