/* SPDX-License-Identifier: Apache-2.0 */
/* see options.h */
#include "cli/bench/options.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"

#define NS_PER_S 1e9
#define SECONDS_MAX (366.0 * 86400)
#define RATE_MAX 1e9 /* one request a nanosecond: the resolution of the clock */
#define CONNECTIONS_DEFAULT 50
#define KEYS_DEFAULT 1000000
#define DURATION_DEFAULT_S 10
#define TIMEOUT_DEFAULT_S 10
#define PID_MAX 4194304 /* the kernel's own; the clock of a larger one would be another's */

static const char help_text[] =
    "Usage: weir bench [OPTION]...\n"
    "Load a server, weir or another, and measure how much it answers, how soon, and what it "
    "costs.\n"
    "\n"
    "What is asked:\n"
    "      --target=TARGET     redis://HOST:PORT, http://HOST:PORT, unix:/PATH (Redis protocol) "
    "or\n"
    "                          http+unix:/PATH (redis://127.0.0.1:6380)\n"
    "      --command=NAME      throttle (CL.THROTTLE, the default), check (WEIR.CHECK, or\n"
    "                          POST /v1/check over HTTP), auth (/v1/auth), get, incr, ping\n"
    "      --resp=LINE         any command line instead: \"INCR key:{key}\"\n"
    "      --http=START        any HTTP request instead: \"GET /path\"\n"
    "      --header=FIELD      \"Name: value\" for HTTP; may be given again\n"
    "      --body=TEXT         of an HTTP request\n"
    "      --denied=I=V        element I of the reply being the integer V is a denial; known of\n"
    "                          CL.THROTTLE, THROTTLE, GCRA, INCREX, WEIR.CHECK and WEIR.CHECKALL\n"
    "      --resp3             speak RESP3\n"
    "      --password=TEXT     of AUTH; WEIR_BENCH_PASSWORD in the environment does the same\n"
    "      --keys=N            {key} and {ip} take N values (1000000)\n"
    "      --distribution=D    uniform (the default), zipf, zipf:EXPONENT, hot, sequential\n"
    "      --seed=N            of the keys (1)\n"
    "\n"
    "How much:\n"
    "  -t, --threads=N         (1)\n"
    "  -c, --connections=N     of all threads together (50)\n"
    "  -P, --pipeline=N        requests under way on each connection (1)\n"
    "      --rate=R            requests a second, whatever the server does (open loop); without "
    "it\n"
    "                          each reply makes the next request (closed loop)\n"
    "      --expected-interval=SECONDS\n"
    "                          correct a closed loop's latencies for coordinated omission\n"
    "      --spin              do not sleep between the requests of an open loop\n"
    "  -d, --duration=SECONDS  (10)\n"
    "      --warmup=SECONDS    before it, not measured (0)\n"
    "  -n, --requests=N        send so many instead\n"
    "      --timeout=SECONDS   give up when no reply comes for so long (10)\n"
    "\n"
    "What is told:\n"
    "      --pid=PID           of the server: tells its CPU time a request\n"
    "      --json              as JSON\n"
    "  -h, --help              print this and exit\n"
    "\n"
    "{key} stands for the number of a key in 12 digits, {ip} for an IPv6 address of its own /64.\n";

enum {
    OPT_TARGET = 256,
    OPT_COMMAND,
    OPT_RESP,
    OPT_HTTP,
    OPT_HEADER,
    OPT_BODY,
    OPT_DENIED,
    OPT_RESP3,
    OPT_PASSWORD,
    OPT_KEYS,
    OPT_DISTRIBUTION,
    OPT_SEED,
    OPT_RATE,
    OPT_EXPECTED_INTERVAL,
    OPT_SPIN,
    OPT_WARMUP,
    OPT_TIMEOUT,
    OPT_PID,
    OPT_JSON,
};

static const struct option long_options[] = {
    {"target", required_argument, NULL, OPT_TARGET},
    {"command", required_argument, NULL, OPT_COMMAND},
    {"resp", required_argument, NULL, OPT_RESP},
    {"http", required_argument, NULL, OPT_HTTP},
    {"header", required_argument, NULL, OPT_HEADER},
    {"body", required_argument, NULL, OPT_BODY},
    {"denied", required_argument, NULL, OPT_DENIED},
    {"resp3", no_argument, NULL, OPT_RESP3},
    {"password", required_argument, NULL, OPT_PASSWORD},
    {"keys", required_argument, NULL, OPT_KEYS},
    {"distribution", required_argument, NULL, OPT_DISTRIBUTION},
    {"seed", required_argument, NULL, OPT_SEED},
    {"threads", required_argument, NULL, 't'},
    {"connections", required_argument, NULL, 'c'},
    {"pipeline", required_argument, NULL, 'P'},
    {"rate", required_argument, NULL, OPT_RATE},
    {"expected-interval", required_argument, NULL, OPT_EXPECTED_INTERVAL},
    {"spin", no_argument, NULL, OPT_SPIN},
    {"duration", required_argument, NULL, 'd'},
    {"warmup", required_argument, NULL, OPT_WARMUP},
    {"requests", required_argument, NULL, 'n'},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"pid", required_argument, NULL, OPT_PID},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

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

static int wrong(const char *option, const char *wanted, const char *value)
{
    return cli_usage_error("bench", "--%s: %s, not '%s'", option, wanted, value);
}

/* A number of seconds, or of anything: positive, or 0 where that is allowed. */
static bool parse_number(const char *text, bool zero, double max, double *number)
{
    char *end;
    if (strspn(text, "0123456789.") != strlen(text) || *text == '\0')
        return false;
    *number = strtod(text, &end);
    return *end == '\0' && *number <= max && (zero ? *number >= 0 : *number > 0);
}

static int take_seconds(const char *option, const char *value, bool zero, uint64_t *ns)
{
    double seconds;
    if (!parse_number(value, zero, SECONDS_MAX, &seconds) || (!zero && seconds * NS_PER_S < 1))
        return wrong(option, "a number of seconds", value);
    *ns = (uint64_t)llround(seconds * NS_PER_S);
    return 0;
}

static int take_count(const char *option, const char *value, uint32_t max, uint32_t *count)
{
    uint64_t number;
    if (!cli_parse_count(value, max, &number) || number == 0)
        return cli_usage_error("bench", "--%s: a number from 1 to %lu, not '%s'", option,
                               (unsigned long)max, value);
    *count = (uint32_t)number;
    return 0;
}

/* Options about the request. Returns 0, an exit status, or -1 for an option of another kind. */
static int take_wording(int option, const char *value, struct wording *wording)
{
    switch (option) {
    case OPT_TARGET:
        wording->target = value;
        return 0;
    case OPT_COMMAND:
        wording->command = value;
        return 0;
    case OPT_RESP:
        wording->resp = value;
        return 0;
    case OPT_HTTP:
        wording->http = value;
        return 0;
    case OPT_BODY:
        wording->body = value;
        return 0;
    case OPT_DENIED:
        wording->denied = value;
        return 0;
    case OPT_HEADER:
        if (wording->header_count == BENCH_HEADERS_MAX)
            return cli_usage_error("bench", "--header: at most %d of them", BENCH_HEADERS_MAX);
        wording->headers[wording->header_count++] = value;
        return 0;
    default:
        return -1;
    }
}

/* Options about the amount. As take_wording. */
static int take_amount(int option, const char *value, struct bench_options *options)
{
    struct bench_plan *plan = &options->plan;
    switch (option) {
    case 't':
        return take_count("threads", value, BENCH_THREADS_MAX, &plan->threads);
    case 'c':
        return take_count("connections", value, BENCH_CONNECTIONS_MAX, &plan->connections);
    case 'P':
        return take_count("pipeline", value, BENCH_PIPELINE_MAX, &plan->pipeline);
    case 'd':
        return take_seconds("duration", value, false, &options->timing.duration_ns);
    case OPT_WARMUP:
        return take_seconds("warmup", value, true, &options->timing.warmup_ns);
    case OPT_TIMEOUT:
        return take_seconds("timeout", value, false, &plan->timeout_ns);
    case OPT_EXPECTED_INTERVAL:
        return take_seconds("expected-interval", value, false, &plan->expected_interval_ns);
    case OPT_SPIN:
        plan->spin = true;
        return 0;
    case 'n':
        if (!cli_parse_count(value, INT64_MAX, &plan->requests) || plan->requests == 0)
            return wrong("requests", "a number above 0", value);
        return 0;
    case OPT_RATE:
        if (!parse_number(value, false, RATE_MAX, &plan->rate))
            return wrong("rate", "a number of requests a second above 0", value);
        return 0;
    default:
        return -1;
    }
}

/* The rest. Returns 0 or an exit status. */
static int take_option(int option, const char *value, struct bench_options *options)
{
    struct bench_plan *plan = &options->plan;
    uint64_t pid;
    switch (option) {
    case OPT_RESP3:
        plan->resp3 = true;
        return 0;
    case OPT_PASSWORD:
        plan->password = value;
        return 0;
    case OPT_JSON:
        options->json = true;
        return 0;
    case OPT_KEYS:
        if (!cli_parse_count(value, BENCH_KEYS_MAX, &plan->keyspace.count) ||
            plan->keyspace.count == 0)
            return wrong("keys", "a number from 1 to 4294967296", value);
        return 0;
    case OPT_DISTRIBUTION:
        if (!bench_distribution_parse(value, &plan->keyspace))
            return wrong("distribution", "uniform, zipf, zipf:EXPONENT, hot or sequential", value);
        options->labels.distribution = value;
        return 0;
    case OPT_SEED:
        return cli_parse_count(value, UINT64_MAX, &plan->seed) ? 0
                                                               : wrong("seed", "a number", value);
    case OPT_PID:
        if (!cli_parse_count(value, PID_MAX, &pid) || pid == 0)
            return wrong("pid", "a process id", value);
        options->timing.pid = (pid_t)pid;
        return 0;
    default: /* getopt has said what is wrong */
        return cli_try_help("bench");
    }
}

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
    if (preset == NULL)
        return wrong("command", "throttle, check, auth, get, incr or ping", wording->command);
    if (protocol == BENCH_RESP ? preset->resp == NULL : preset->http == NULL)
        return cli_usage_error("bench", "--command: %s cannot be asked over %s", preset->name,
                               protocol == BENCH_RESP ? "the Redis protocol" : "HTTP");
    if (protocol == BENCH_RESP) {
        wording->resp = preset->resp;
        return 0;
    }
    bool auth = preset->body == NULL;
    size_t count = auth ? sizeof auth_headers / sizeof auth_headers[0]
                        : sizeof check_headers / sizeof check_headers[0];
    if (wording->header_count + count > BENCH_HEADERS_MAX)
        return cli_usage_error("bench", "--header: too many of them");
    memcpy(wording->headers + wording->header_count, auth ? auth_headers : check_headers,
           count * sizeof *wording->headers);
    wording->header_count += count;
    wording->http = preset->http;
    if (wording->body == NULL)
        wording->body = preset->body;
    return 0;
}

/* Whether the target, the command and their options go together. Returns 0 or an exit status. */
static int settle_wording(struct wording *wording, struct bench_options *options)
{
    struct weir_reason reason;
    bool web = wording->http != NULL ||
               (wording->command != NULL && strcmp(wording->command, "auth") == 0);
    if ((wording->command != NULL) + (wording->resp != NULL) + (wording->http != NULL) > 1)
        return cli_usage_error("bench", "give one of --command, --resp and --http");
    if (wording->target == NULL)
        wording->target = web ? "http://127.0.0.1:8080" : "redis://127.0.0.1:6380";
    if (wording->command == NULL)
        wording->command = "throttle";
    int error = bench_target_parse(&options->plan.target, wording->target, &reason);
    if (error == WEIR_ERR_SYNTAX)
        return cli_usage_error("bench", "--target: %s", reason.text);
    if (error < 0) {
        cli_error("%s", reason.text);
        return EXIT_FAILURE;
    }
    bool http = options->plan.target.protocol == BENCH_HTTP;
    if (http ? wording->resp != NULL : wording->http != NULL)
        return cli_usage_error("bench", "--%s: the target speaks %s", http ? "resp" : "http",
                               http ? "HTTP" : "the Redis protocol");
    if (!http && (wording->body != NULL || wording->header_count > 0))
        return cli_usage_error("bench", "--header and --body are for HTTP");
    return wording->resp == NULL && wording->http == NULL
               ? choose_preset(wording, options->plan.target.protocol)
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
    if (wording->denied != NULL && (http || !bench_denial_parse(wording->denied, &plan->denial)))
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
    return cli_usage_error("bench", "--pipeline: more than 16 MiB of requests under way");
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
    struct wording wording = {0};
    *help = false;
    *options = (struct bench_options){
        .plan = {.keyspace = {.distribution = BENCH_UNIFORM, .count = KEYS_DEFAULT},
                 .password = getenv("WEIR_BENCH_PASSWORD"),
                 .seed = 1,
                 .threads = 1,
                 .connections = CONNECTIONS_DEFAULT,
                 .pipeline = 1,
                 .timeout_ns = TIMEOUT_DEFAULT_S * UINT64_C(1000000000)},
        .labels = {.distribution = "uniform"}};
    int option;
    while ((option = getopt_long(argc, argv, "t:c:P:d:n:h", long_options, NULL)) != -1) {
        *help = option == 'h';
        if (*help)
            return cli_help(help_text);
        int status = take_wording(option, optarg, &wording);
        if (status < 0)
            status = take_amount(option, optarg, options);
        if (status < 0)
            status = take_option(option, optarg, options);
        if (status != 0)
            return status;
    }
    if (optind < argc)
        return cli_usage_error("bench", "unexpected argument '%s'", argv[optind]);
    int status = settle_amounts(options, options->timing.duration_ns > 0);
    if (options->timing.duration_ns == 0)
        options->timing.duration_ns = DURATION_DEFAULT_S * UINT64_C(1000000000);
    if (status == 0)
        status = settle_wording(&wording, options);
    return status != 0 ? status : make_request(&wording, options);
}
