/* SPDX-License-Identifier: Apache-2.0 */
/* see options.h */
#include "cli/bench/options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "core/text/reason.h"

#define RATE_MAX 1e9 /* one request a nanosecond: the resolution of the clock */
#define CONNECTIONS_DEFAULT 50
#define KEYS_DEFAULT 1000000
#define DURATION_DEFAULT_S 10
#define TIMEOUT_DEFAULT_S 10
#define PID_MAX 4194304 /* the kernel's own; the clock of a larger one would be another's */

/* The requests that have a name. NULL: not to be had over that protocol. */
static const struct preset {
    const char *name, *resp, *http, *body;
} presets[] = {
    {"throttle", "CL.THROTTLE key:{key} 15 30 60", NULL, NULL},
    {"check", "WEIR.CHECK method GET path / client.ip {ip}", "POST /v1/check",
     "{\"method\":\"GET\",\"path\":\"/\",\"ip\":\"{ip}\"}"},
    {"auth", NULL, "GET /v1/auth", NULL},
    {"get", "GET key:{key}", NULL, NULL},
    {"incr", "INCR key:{key}", NULL, NULL},
    {"ping", "PING", NULL, NULL},
};
static const char *const auth_headers[] = {"X-Forwarded-Method: GET", "X-Forwarded-Uri: /",
                                           "X-Forwarded-For: {ip}"};
static const char *const check_headers[] = {"Content-Type: application/json"};

/* What the options said of the request, before it is made. */
struct wording {
    const char *target, *command, *resp, *http, *body, *denied;
    const char *headers[BENCH_HEADERS_MAX];
    size_t header_count;
};

/* What the command line is read into. */
struct bench_line {
    struct bench_options options;
    struct wording wording;
    uint64_t burst;
};

static int wrong(const char *option, const char *wanted, const char *value)
{
    return cli_usage_error("bench", "--%s: %s, not '%s'", option, wanted, value);
}

static bool take_header(void *field, char *value, struct weir_reason *reason)
{
    struct wording *wording = field;
    if (wording->header_count == BENCH_HEADERS_MAX) {
        reason_text(reason, "at most ");
        reason_number(reason, BENCH_HEADERS_MAX);
        reason_text(reason, " of them");
        return false;
    }
    wording->headers[wording->header_count++] = value;
    return true;
}

static bool take_distribution(void *field, char *value, struct weir_reason *reason)
{
    struct bench_options *options = field;
    options->labels.distribution = value;
    return bench_distribution_parse(value, &options->plan.keyspace) ||
           cli_refuse(reason, "uniform, zipf, zipf:EXPONENT, hot or sequential", value);
}

static bool take_rate(void *field, char *value, struct weir_reason *reason)
{
    return cli_parse_number(value, false, RATE_MAX, field) ||
           cli_refuse(reason, "a number of requests a second above 0", value);
}

static bool take_pid(void *field, char *value, struct weir_reason *reason)
{
    uint64_t pid;
    if (!cli_parse_count(value, PID_MAX, &pid) || pid == 0)
        return cli_refuse(reason, "a process id", value);
    *(pid_t *)field = (pid_t)pid;
    return true;
}

static bool take_expected(void *field, char *value, struct weir_reason *reason)
{
    struct bench_expected *expected = field;
    expected->given = true;
    return cli_parse_count(value, INT64_MAX, &expected->allowed) ||
           cli_refuse(reason, "a number of requests", value);
}

/* "5" or "5%" */
static bool take_tolerance(void *field, char *value, struct weir_reason *reason)
{
    struct bench_expected *expected = field;
    size_t size = strlen(value);
    expected->percent = size > 0 && value[size - 1] == '%';
    if (expected->percent)
        value[size - 1] = '\0';
    bool good = cli_parse_number(value, true, expected->percent ? 100 : 1e15, &expected->tolerance);
    if (expected->percent)
        value[size - 1] = '%';
    return good || cli_refuse(reason, "a number of requests, or of percent such as 5%", value);
}

#define AT(field) .at = offsetof(struct bench_line, field)

static const struct cli_option options_table[] = {
    CLI_HEADING("The requests:"),
    CLI_OPTION(0, "target", "TARGET",
               "redis://HOST:PORT, http://HOST:PORT, unix:/PATH (Redis protocol) or\n"
               "http+unix:/PATH (redis://127.0.0.1:6380)",
               .kind = CLI_TEXT, AT(wording.target)),
    CLI_OPTION(0, "command", "NAME",
               "throttle (CL.THROTTLE, the default), check (WEIR.CHECK, or\n"
               "POST /v1/check over HTTP), auth (/v1/auth), get, incr, ping",
               .kind = CLI_TEXT, AT(wording.command)),
    CLI_OPTION(0, "resp", "LINE", "any command line instead: \"INCR key:{key}\"", .kind = CLI_TEXT,
               AT(wording.resp)),
    CLI_OPTION(0, "http", "START", "any HTTP request instead: \"GET /path\"", .kind = CLI_TEXT,
               AT(wording.http)),
    CLI_OPTION(0, "header", "FIELD", "\"Name: value\" for HTTP; may be given again",
               .kind = CLI_TAKEN, .take = take_header, AT(wording)),
    CLI_OPTION(0, "body", "TEXT", "of an HTTP request", .kind = CLI_TEXT, AT(wording.body)),
    CLI_OPTION(0, "denied", "I=V",
               "a reply whose element I is the integer V is a denial; known of\n"
               "CL.THROTTLE, THROTTLE, GCRA, INCREX, WEIR.CHECK and WEIR.CHECKALL",
               .kind = CLI_TEXT, AT(wording.denied)),
    CLI_OPTION(0, "resp3", NULL, "use RESP3", .kind = CLI_FLAG, AT(options.plan.resp3)),
    CLI_OPTION(0, "password", "TEXT",
               "of AUTH; WEIR_BENCH_PASSWORD in the environment does the same", .kind = CLI_TEXT,
               AT(options.plan.password)),
    CLI_OPTION(0, "keys", "N", "{key} and {ip} take N values (1000000)", .kind = CLI_U64, .min = 1,
               .max = BENCH_KEYS_MAX, AT(options.plan.keyspace.count)),
    CLI_OPTION(0, "distribution", "D",
               "uniform (the default), zipf, zipf:EXPONENT, hot, sequential", .kind = CLI_TAKEN,
               .take = take_distribution, AT(options)),
    CLI_OPTION(0, "seed", "N", "of the keys (1)", .kind = CLI_U64, .max = UINT64_MAX,
               AT(options.plan.seed)),
    CLI_HEADING("The load:"),
    CLI_OPTION('t', "threads", "N", "(1)", .kind = CLI_U32, .min = 1, .max = BENCH_THREADS_MAX,
               AT(options.plan.threads)),
    CLI_OPTION('c', "connections", "N", "of all threads together (50)", .kind = CLI_U32, .min = 1,
               .max = BENCH_CONNECTIONS_MAX, AT(options.plan.connections)),
    CLI_OPTION('P', "pipeline", "N", "requests in flight on each connection (1)", .kind = CLI_U32,
               .min = 1, .max = BENCH_PIPELINE_MAX, AT(options.plan.pipeline)),
    CLI_OPTION(0, "rate", "R",
               "requests a second, whatever the server does (open loop); without it\n"
               "each reply makes the next request (closed loop)",
               .kind = CLI_TAKEN, .take = take_rate, AT(options.plan.rate)),
    CLI_OPTION(0, "expected-interval", "SECONDS",
               "correct a closed loop's latencies for coordinated omission", .kind = CLI_SECONDS,
               .min = 1, AT(options.plan.expected_interval_ns)),
    CLI_OPTION(0, "spin", NULL, "do not sleep between the requests of an open loop",
               .kind = CLI_FLAG, AT(options.plan.spin)),
    CLI_OPTION('d', "duration", "SECONDS", "(10)", .kind = CLI_SECONDS, .min = 1,
               AT(options.timing.duration_ns)),
    CLI_OPTION(0, "warmup", "SECONDS", "before it, not measured (0)", .kind = CLI_SECONDS,
               AT(options.timing.warmup_ns)),
    CLI_OPTION('n', "requests", "N", "send so many instead", .kind = CLI_U64, .min = 1,
               .max = INT64_MAX, AT(options.plan.requests)),
    CLI_OPTION(0, "burst", "N",
               "send N requests of one key as fast as they go (--requests N --keys 1)",
               .kind = CLI_U64, .min = 1, .max = INT64_MAX, AT(burst)),
    CLI_OPTION(0, "timeout", "SECONDS", "give up when no reply comes for so long (10)",
               .kind = CLI_SECONDS, .min = 1, AT(options.plan.timeout_ns)),
    CLI_HEADING("The result:"),
    CLI_OPTION(0, "expect-allowed", "M",
               "exit with 3 unless M requests are allowed: neither denied nor failed",
               .kind = CLI_TAKEN, .take = take_expected, AT(options.expected)),
    CLI_OPTION(0, "tolerance", "N", "or N%: by how much that may differ (0)", .kind = CLI_TAKEN,
               .take = take_tolerance, AT(options.expected)),
    CLI_OPTION(0, "pid", "PID", "of the server: shows its CPU time a request", .kind = CLI_TAKEN,
               .take = take_pid, AT(options.timing.pid)),
    CLI_OPTION(0, "json", NULL, "print JSON", .kind = CLI_FLAG, AT(options.json)),
};

static const struct cli_syntax syntax = {
    .command = "bench",
    .usage =
        "Usage: weir bench [OPTION]...\n"
        "Put load on a server, weir or another, and measure how many requests it answers, how\n"
        "fast, and at what cost.\n",
    .notes =
        "{key} stands for the number of a key in 12 digits, {ip} for an IPv6 address of its "
        "own /64.\n"
        "Exit status: 0; 1 where requests failed or found no answer; 2 wrong usage; 3 where "
        "others were\nallowed than --expect-allowed says, which takes what failed for denied.\n",
    .options = options_table,
    .count = sizeof options_table / sizeof *options_table,
};

static const struct preset *find_preset(const char *name)
{
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}

/* Fills in what a named command means over the target's protocol. Returns 0 or an exit status. */
static int choose_preset(struct wording *wording, enum bench_protocol protocol)
{
    const struct preset *preset = find_preset(wording->command);
    if (!preset)
        return wrong("command", "throttle, check, auth, get, incr or ping", wording->command);
    if (protocol == BENCH_RESP ? !preset->resp : !preset->http)
        return cli_usage_error("bench", "--command: %s cannot be asked over %s", preset->name,
                               protocol == BENCH_RESP ? "the Redis protocol" : "HTTP");
    if (protocol == BENCH_RESP) {
        wording->resp = preset->resp;
        return 0;
    }
    bool auth = !preset->body;
    size_t count = auth ? sizeof auth_headers / sizeof auth_headers[0]
                        : sizeof check_headers / sizeof check_headers[0];
    if (wording->header_count + count > BENCH_HEADERS_MAX)
        return cli_usage_error("bench", "--header: too many of them");
    memcpy(wording->headers + wording->header_count, auth ? auth_headers : check_headers,
           count * sizeof *wording->headers);
    wording->header_count += count;
    wording->http = preset->http;
    if (!wording->body)
        wording->body = preset->body;
    return 0;
}

/* Whether the target, the command and their options go together. Returns 0 or an exit status. */
static int settle_wording(struct wording *wording, struct bench_options *options)
{
    struct weir_reason reason;
    bool web = wording->http || (wording->command && strcmp(wording->command, "auth") == 0);
    if ((wording->command != NULL) + (wording->resp != NULL) + (wording->http != NULL) > 1)
        return cli_usage_error("bench", "give one of --command, --resp and --http");
    if (!wording->target)
        wording->target = web ? "http://127.0.0.1:8080" : "redis://127.0.0.1:6380";
    if (!wording->command)
        wording->command = "throttle";
    int error = bench_target_parse(&options->plan.target, wording->target, &reason);
    if (error == WEIR_ERR_SYNTAX)
        return cli_usage_error("bench", "--target: %s", reason.text);
    if (error < 0) {
        cli_error("%s", reason.text);
        return EXIT_FAILURE;
    }
    bool http = options->plan.target.protocol == BENCH_HTTP;
    if (http ? wording->resp : wording->http)
        return cli_usage_error("bench", "--%s: the target speaks %s", http ? "resp" : "http",
                               http ? "HTTP" : "the Redis protocol");
    if (!http && (wording->body || wording->header_count > 0))
        return cli_usage_error("bench", "--header and --body are for HTTP");
    return !wording->resp && !wording->http ? choose_preset(wording, options->plan.target.protocol)
                                            : 0;
}

/* Makes the request. Returns 0 or an exit status. */
static int make_request(const struct wording *wording, struct bench_options *options)
{
    struct bench_plan *plan = &options->plan;
    bool http = plan->target.protocol == BENCH_HTTP;
    options->labels.target = wording->target;
    options->labels.command = http ? wording->http : wording->resp;
    if (!http)
        plan->denial = bench_denial_of(wording->resp);
    if (wording->denied && (http || !bench_denial_parse(wording->denied, &plan->denial)))
        return http ? cli_usage_error("bench", "--denied is for the Redis protocol")
                    : wrong("denied", "ELEMENT=INTEGER, as in 0=1", wording->denied);
    int error = http ? bench_request_http(&plan->request, plan->target.host, wording->http,
                                          wording->headers, wording->header_count, wording->body)
                     : bench_request_resp(&plan->request, wording->resp);
    if (error == WEIR_ERR_SYNTAX)
        return cli_usage_error("bench", "not a request: '%s'", options->labels.command);
    if (error < 0) {
        cli_error("the request: %s", weir_error_text(error));
        return EXIT_FAILURE;
    }
    if (plan->request.size <= BENCH_PIPELINE_BYTES_MAX / plan->pipeline)
        return 0;
    bench_request_free(&plan->request);
    return cli_usage_error("bench", "--pipeline: more than 16 MiB of requests in flight");
}

/* What a burst, or its absence, means for the amounts. Returns 0 or an exit status. */
static int settle_burst(struct bench_plan *plan, uint64_t burst)
{
    if (burst > 0 && (plan->requests > 0 || plan->rate > 0))
        return cli_usage_error("bench", "--burst does not go with --requests or --rate");
    if (burst > 0)
        plan->requests = burst;
    if (plan->keyspace.count == 0)
        plan->keyspace.count = burst > 0 ? 1 : KEYS_DEFAULT;
    if (plan->connections == 0)
        plan->connections =
            burst > 0 && burst < CONNECTIONS_DEFAULT ? (uint32_t)burst : CONNECTIONS_DEFAULT;
    return 0;
}

/* Whether the amounts go together. Returns 0 or an exit status. */
static int settle_amounts(const struct bench_options *options, bool has_duration)
{
    const struct bench_plan *plan = &options->plan;
    if (plan->requests > 0 && (has_duration || options->timing.warmup_ns > 0))
        return cli_usage_error("bench", "--requests does not go with --duration or --warmup");
    if (plan->rate > 0 && plan->expected_interval_ns > 0)
        return cli_usage_error("bench", "--expected-interval corrects a closed loop; an open one "
                                        "(--rate) measures from when requests are due");
    if (plan->connections < plan->threads)
        return cli_usage_error("bench", "--connections: at least one for each thread");
    return 0;
}

int bench_options_read(struct bench_options *options, int argc, char **argv, bool *help)
{
    int status;
    struct bench_line line = {
        .options = {.plan = {.keyspace = {.distribution = BENCH_UNIFORM},
                             .password = getenv("WEIR_BENCH_PASSWORD"),
                             .seed = 1,
                             .threads = 1,
                             .pipeline = 1,
                             .timeout_ns = TIMEOUT_DEFAULT_S * UINT64_C(1000000000)},
                    .labels = {.distribution = "uniform"}}};
    *help = false;
    if (cli_read_options(&syntax, argc, argv, &line, &status) < 0) {
        *help = status == EXIT_SUCCESS;
        return status;
    }
    *options = line.options;
    if (options->expected.tolerance > 0 && !options->expected.given)
        return cli_usage_error("bench", "--tolerance needs --expect-allowed");
    status = settle_burst(&options->plan, line.burst);
    if (status == 0)
        status = settle_amounts(options, options->timing.duration_ns > 0);
    if (options->timing.duration_ns == 0)
        options->timing.duration_ns = DURATION_DEFAULT_S * UINT64_C(1000000000);
    if (status == 0)
        status = settle_wording(&line.wording, options);
    return status != 0 ? status : make_request(&line.wording, options);
}
