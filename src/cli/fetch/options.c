/* SPDX-License-Identifier: Apache-2.0 */
/* see options.h */
#include "cli/fetch/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "client/pace/own.h"

#define PARALLEL_DEFAULT 16
#define RETRY_DEFAULT 4
#define TRY_DEFAULT_NS (UINT64_C(30) * 1000000000)

#define AT(field) .at = offsetof(struct fetch_options, field)

static bool take_header(void *field, char *value, struct weir_reason *reason)
{
    struct fetch_headers *headers = field;

    if (headers->count == FETCH_HEADERS_MAX) {
        snprintf(reason->text, sizeof reason->text, "at most %d of them", FETCH_HEADERS_MAX);
        return false;
    }
    if (!strchr(value, ':') || value[0] == ':' || strpbrk(value, "\r\n"))
        return cli_refuse(reason, "'Name: value'", value);
    headers->lines[headers->count++] = value;
    return true;
}

static bool take_jitter(void *field, char *value, struct weir_reason *reason)
{
    static const char *const names[] = {"full", "equal", "decorrelated", "none"};

    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(value, names[i])) {
            *(enum weir_client_jitter *)field = (enum weir_client_jitter)i;
            return true;
        }
    return cli_refuse(reason, "full, equal, decorrelated or none", value);
}

static bool take_factor(void *field, char *value, struct weir_reason *reason)
{
    double *factor = field;

    return (cli_parse_number(value, false, 100, factor) && *factor >= 1) ||
           cli_refuse(reason, "a number of 1 to 100", value);
}

static bool take_rate(void *field, char *value, struct weir_reason *reason)
{
    struct weir_own_rates rates;

    *(const char **)field = value;
    return weir_own_parse(&rates, value, reason) == 0;
}

/* "408,425" */
static bool take_statuses(void *field, char *value, struct weir_reason *reason)
{
    uint16_t *statuses = field;
    size_t count = 0;
    char *at = value;

    memset(statuses, 0, WEIR_CLIENT_RETRY_ON_MOST * sizeof *statuses);
    for (;; at++) {
        char *end;
        unsigned long status = *at >= '4' && *at <= '5' ? strtoul(at, &end, 10) : 0;
        if (status < 400 || status > 599 || count == WEIR_CLIENT_RETRY_ON_MOST ||
            (*end != ',' && *end != '\0'))
            return cli_refuse(reason, "at most 16 statuses of 400 to 599, with commas", value);
        statuses[count++] = (uint16_t)status;
        at = end;
        if (*at == '\0')
            return true;
    }
}

static const struct cli_option options_table[] = {
    CLI_OPTION('i', "input", "FILE", "URLs, one a line; '-': from stdin", .kind = CLI_TEXT,
               AT(input)),
    CLI_HEADING("\nRequests:\n"),
    CLI_OPTION('X', "request", "METHOD", "(GET, or POST with --data)", .kind = CLI_TEXT,
               AT(method)),
    CLI_OPTION('d', "data", "TEXT", "the body", .kind = CLI_TEXT, AT(data)),
    CLI_OPTION('H', "header", "LINE", "'Name: value'; can be given often", .kind = CLI_TAKEN,
               .take = take_header, AT(headers)),
    CLI_OPTION('L', "location", NULL, "follow redirects", .kind = CLI_FLAG, AT(location)),
    CLI_OPTION(0, "idempotency-key", NULL,
               "send an Idempotency-Key, the same in all tries, so that\n"
               "POST and PATCH are retried",
               .kind = CLI_FLAG, AT(key)),
    CLI_HEADING("\nLimits:\n"),
    CLI_OPTION('p', "parallel", "N", "most requests in flight (16)", .kind = CLI_U32, .min = 1,
               .max = 1000, AT(parallel)),
    CLI_OPTION(0, "retry", "N", "most tries after the first (4)", .kind = CLI_U32, .max = 999,
               AT(retry)),
    CLI_OPTION(0, "retry-on", "STATUS,...", "retry these, too, such as 408,425,409",
               .kind = CLI_TAKEN, .take = take_statuses, AT(retry_on)),
    CLI_OPTION(0, "retry-statuses", "STATUS,...",
               "retry these instead of 429, 500, 502, 503, 504, 529", .kind = CLI_TAKEN,
               .take = take_statuses, AT(retry_statuses)),
    CLI_OPTION(0, "attempts", "N", "most tries, the first included (5)", .kind = CLI_U32, .min = 1,
               .max = 1000, AT(attempts)),
    CLI_OPTION(0, "base", "SECONDS", "the first wait between tries (0.1)", .kind = CLI_SECONDS,
               .min = 1, AT(base_ns)),
    CLI_OPTION(0, "factor", "NUMBER", "by which waits grow (2)", .kind = CLI_TAKEN,
               .take = take_factor, AT(factor)),
    CLI_OPTION(0, "cap", "SECONDS", "the longest wait (20)", .kind = CLI_SECONDS, .min = 1,
               AT(cap_ns)),
    CLI_OPTION(0, "jitter", "KIND", "of waits: full, equal, decorrelated or none (full)",
               .kind = CLI_TAKEN, .take = take_jitter, AT(jitter)),
    CLI_OPTION(0, "rate", "RATE",
               "most requests to a host, whatever it says: 10/s,\n"
               "'600/min burst 20', 'api.example.com=5/10s, 10/s'",
               .kind = CLI_TAKEN, .take = take_rate, AT(rate)),
    CLI_OPTION('m', "max-time", "SECONDS", "for one URL, with all waits (no limit)",
               .kind = CLI_SECONDS, .min = 1, AT(time_ns)),
    CLI_OPTION(0, "try-time", "SECONDS", "for one try (30)", .kind = CLI_SECONDS, .min = 1,
               AT(try_ns)),
    CLI_OPTION(0, "adaptive", NULL, "fewer requests in flight while latency grows",
               .kind = CLI_FLAG, AT(adaptive)),
    CLI_OPTION(0, "state", "FILE", "share what is known of limits with other processes",
               .kind = CLI_TEXT, AT(state)),
    CLI_OPTION(0, "scope", "TEXT", "what the server counts by, such as an API key (the host)",
               .kind = CLI_TEXT, AT(scope)),
    CLI_HEADING("\nOutput:\n"),
    CLI_OPTION('o', "output-dir", "DIR", "a file for each answer below 400", .kind = CLI_TEXT,
               AT(output_dir)),
    CLI_OPTION('c', "continue", NULL, "skip URLs whose file is in --output-dir", .kind = CLI_FLAG,
               AT(resume)),
    CLI_OPTION(0, "json", NULL, "a line of JSON for each URL, instead of bodies", .kind = CLI_FLAG,
               AT(json)),
    CLI_OPTION('q', "quiet", NULL, "no progress, no summary", .kind = CLI_FLAG, AT(quiet)),
};

static const struct cli_syntax syntax = {
    .command = "fetch",
    .usage =
        "Usage: weir fetch [OPTION]... URL...\n"
        "Fetch URLs as fast as the rate limits of their servers allow, and retry what fails.\n",
    .notes =
        "\nBodies go to stdout, or to files. Exit status: 0 all answered below 400; 10 an\n"
        "answer of 400 or above; 11 gave up; 12 limited; 13 timed out; 14 refused; 15 several\n"
        "of these; 1 an output failed; 2 wrong usage; 130 interrupted.\n",
    .options = options_table,
    .count = sizeof options_table / sizeof *options_table,
    .takes_arguments = true,
};

int fetch_read_options(int argc, char **argv, struct fetch_options *options, int *status)
{
    *options = (struct fetch_options){
        .parallel = PARALLEL_DEFAULT, .retry = RETRY_DEFAULT, .try_ns = TRY_DEFAULT_NS};
    int first = cli_read_options(&syntax, argc, argv, options, status);
    if (first < 0)
        return first;
    *status = 0;
    if (first == argc && !options->input)
        *status = cli_usage_error("fetch", "a URL or --input is required");
    else if (options->resume && !options->output_dir)
        *status = cli_usage_error("fetch", "--continue needs --output-dir");
    else if (options->retry_statuses[0] != 0 && options->retry_on[0] != 0)
        *status = cli_usage_error("fetch", "--retry-statuses has all: leave out --retry-on");
    return *status != 0 ? -1 : first;
}
