/* SPDX-License-Identifier: Apache-2.0 */
/* see suggest.h: reading */
#include "cli/suggest/suggest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/replay/lines.h"
#include "cli/replay/request.h"
#include "cli/replay/stop.h"
#include "cli/replay/trace/reading.h"
#include "cli/suggest/plan.h"
#include "cli/suggest/print.h"
#include "rules/match/checks.h"

#define RULES_MAX 512 /* bytes of the rules that read the key */

struct suggest {
    struct suggest_trace summary;
    struct weir_rules *rules; /* one limit, whose key is the one asked for */
    struct replay_trace *trace;
    struct suggest_demand *demand;
    struct suggest_routes *routes;
    struct suggest_about *about;
    uint64_t now_ns;
    struct replay_request request; /* the current line's */
    struct replay_clients clients;
    uint64_t lines; /* read */
    bool stopped;   /* by Ctrl-C */
    struct weir_scratch scratch;
};

/* So that samples are the same in every run. */
static const uint64_t key_secret[2] = {UINT64_C(0x7765697220737567), UINT64_C(0x6765737420206b65)};

/* --- Counting --------------------------------------------------------------------------------- */

/* Puts a key in its place among those that asked for most; what it asked for only ever rises. Of
 * equals the one that was there first goes first. */
static void note_top(struct suggest_top top[SUGGEST_TOP], uint64_t hash, uint32_t most,
                     struct weir_bytes text)
{
    struct suggest_top noted = {.hash = hash, .most = most};
    int at = SUGGEST_TOP - 1;

    for (int i = 0; i < SUGGEST_TOP; i++)
        if (top[i].hash == hash && top[i].size > 0)
            at = i;
    if (most <= top[at].most)
        return;
    noted.size = (uint32_t)(text.size < SUGGEST_TEXT_MAX ? text.size : SUGGEST_TEXT_MAX);
    memcpy(noted.text, text.data, noted.size);
    while (at > 0 && top[at - 1].most < most) {
        top[at] = top[at - 1];
        at--;
    }
    top[at] = noted;
}

static int count_for(struct suggest *suggest, uint32_t about, const struct weir_check *check)
{
    char name[REPLAY_NAME_MAX(WEIR_SCRATCH_BYTES)];
    struct suggest_about *to = &suggest->about[about];
    const struct suggest_key *key;

    to->requests++;
    if (suggest_demand_add(suggest->demand, about, check->hash, suggest->now_ns, check->cost,
                           &key) < 0)
        return WEIR_ERR_MEMORY;
    for (int w = 0; key && w < SUGGEST_WINDOWS; w++)
        if (key->most[w] > to->top[w][SUGGEST_TOP - 1].most)
            note_top(to->top[w], check->hash[0], key->most[w],
                     replay_request_name(&suggest->request, check->key, name));
    return 0;
}

static int count_request(struct suggest *suggest, const struct weir_check *check)
{
    struct suggest_totals *totals = &suggest->summary.totals;
    const struct weir_request *request = &suggest->request.request;
    int route = suggest_routes_find(suggest->routes, request->values[WEIR_ATTR_METHOD],
                                    request->values[WEIR_ATTR_PATH]);

    totals->routeless += route < 0;
    totals->has_costs |= check->cost != 1;
    if (count_for(suggest, 0, check) < 0)
        return WEIR_ERR_MEMORY;
    return route < 0 ? 0 : count_for(suggest, (uint32_t)route + 1, check);
}

static void move_time(struct suggest *suggest, uint64_t t_ns)
{
    struct suggest_totals *totals = &suggest->summary.totals;

    if (totals->requests++ == 0)
        totals->first_ns = t_ns;
    if (t_ns > suggest->now_ns)
        suggest->now_ns = t_ns;
    totals->last_ns = suggest->now_ns;
}

/* --- Reading ---------------------------------------------------------------------------------- */

/* A replay_lines_fn. */
static int take_line(void *context, const struct replay_line *line, struct weir_reason *reason)
{
    struct suggest *suggest = context;
    struct replay_request *request = &suggest->request;
    struct weir_check checks[WEIR_CHECKS_MAX];

    if (replay_request_parse(request, line, reason) < 0)
        return REPLAY_MALFORMED;
    if (request->dry_run)
        return 0;
    suggest->scratch.used = 0;

    const struct weir_rules_query query = {.rules = suggest->rules,
                                           .request = &request->request,
                                           .secret = key_secret,
                                           .scratch = &suggest->scratch,
                                           .reason = reason};
    int count = weir_rules_checks(&query, checks);

    if (count < 0)
        return REPLAY_MALFORMED;
    move_time(suggest, request->t_ns);
    suggest->summary.totals.keyless += count == 0;
    return count == 0 ? 0 : count_request(suggest, &checks[0]);
}

/* --- The whole -------------------------------------------------------------------------------- */

/* Rules of one limit without a number, whose check has the key that was asked for. */
static int read_key(struct suggest *suggest, const char *key)
{
    struct weir_problems problems = {0};
    char text[RULES_MAX];
    int size =
        snprintf(text, sizeof text, "limits: [{name: key, key: [%s], rate: unlimited}]\n", key);
    int error = size < RULES_MAX
                    ? weir_rules_parse(&suggest->rules, "--key", ".", text, (size_t)size, &problems)
                    : WEIR_ERR_TOO_LARGE;

    if (error < 0)
        cli_error("--key %s: %s", key,
                  problems.count > 0 ? problems.list[0].message : weir_error_text(error));
    weir_problems_free(&problems);
    return error;
}

static int open_suggest(struct suggest *suggest)
{
    const struct replay_options *options = suggest->summary.options;

    if (read_key(suggest, suggest->summary.key) < 0)
        return -1;
    const struct replay_trace_options trace = {.files = options->traces,
                                               .count = options->trace_count,
                                               .format = options->format,
                                               .disorder = options->disorder};
    suggest->trace = replay_trace_open(&trace);
    replay_clients_init(&suggest->clients, &options->proxies, NULL);
    replay_request_begin(&suggest->request, suggest->rules, &suggest->clients);
    suggest->demand = suggest_demand_open(options->keys_max);
    suggest->routes = suggest_routes_open();
    suggest->about = calloc(1 + ROUTES_MAX, sizeof *suggest->about);
    if (suggest->trace && suggest->demand && suggest->routes && suggest->about)
        return 0;
    cli_error("%s", weir_error_text(WEIR_ERR_MEMORY));
    return -1;
}

static void close_suggest(struct suggest *suggest)
{
    free(suggest->about);
    suggest_routes_close(suggest->routes);
    suggest_demand_close(suggest->demand);
    replay_trace_close(suggest->trace);
    weir_rules_unref(suggest->rules);
    free(suggest);
}

/* --- Reading again ---------------------------------------------------------------------------- */

/* Keeps what comes through a pipe in a file that takes its place. */
static int keep_standard_input(void)
{
    char buffer[65536];
    FILE *file = tmpfile();
    size_t got;

    if (!file)
        return -1;
    while ((got = fread(buffer, 1, sizeof buffer, stdin)) > 0)
        if (fwrite(buffer, 1, got, file) < got)
            break;

    bool good =
        !ferror(stdin) && feof(stdin) && fflush(file) == 0 && dup2(fileno(file), STDIN_FILENO) >= 0;

    fclose(file);
    return good ? 0 : -1;
}

/* What has been read of a pipe is gone. */
static bool can_be_read_again(const struct replay_options *options)
{
    struct stat file;

    for (size_t i = 0; i < options->trace_count; i++) {
        bool input = strcmp(options->traces[i], "-") == 0;

        if ((input ? fstat(STDIN_FILENO, &file) : stat(options->traces[i], &file)) != 0 ||
            !S_ISREG(file.st_mode))
            return false;
    }
    return true;
}

/* --- One run ---------------------------------------------------------------------------------- */

/* Where standard input is when it begins; it may be a file that somebody has read from. */
static void rewind_input(off_t start)
{
    if (start >= 0)
        (void)lseek(STDIN_FILENO, start, SEEK_SET);
}

/* The head of the file: what it was made from, and how that was read. */
static void print_reading(const struct suggest *suggest, FILE *out)
{
    struct replay_reading reading = replay_trace_reading(suggest->trace);
    if (suggest->stopped)
        replay_partial_print(&reading, suggest->lines, "# ", out);
    replay_reading_print(&reading, &suggest->clients, "# ", out);
}

/* Prints the file, and what it denies. */
static int print(struct suggest *suggest, const struct suggest_plan *plan, bool again, off_t start)
{
    struct replay_measured measured;
    char *rules = NULL;
    size_t size;
    FILE *text = open_memstream(&rules, &size);

    if (!text)
        return WEIR_ERR_MEMORY;
    print_reading(suggest, text);
    suggest_print_rules(&suggest->summary, plan, text);
    if (fclose(text) != 0) {
        free(rules);
        return WEIR_ERR_MEMORY;
    }
    rewind_input(start);

    bool run = again && !suggest->stopped &&
               replay_measure(suggest->summary.options, rules, size, &measured) == 0;

    fwrite(rules, 1, size, stdout);
    suggest_print_measured(run ? &measured : NULL, stdout);
    suggest_print_histograms(plan, stderr);
    free(rules);
    return 0;
}

static int plan_and_print(struct suggest *suggest, bool again, off_t start)
{
    suggest->summary.demand = suggest->demand;
    suggest->summary.routes = suggest->routes;
    suggest->summary.about = suggest->about;

    struct suggest_plan *plan = suggest_plan_make(&suggest->summary);
    int error = plan ? print(suggest, plan, again, start) : WEIR_ERR_MEMORY;

    suggest_plan_free(plan);
    if (error < 0)
        cli_error("%s", weir_error_text(error));
    return error;
}

/* Counts all lines. Returns 0 or -1 after telling why. */
static int read_lines(struct suggest *suggest)
{
    struct replay_lines lines = {.take = take_line, .context = suggest, .doing = "reading"};
    int error = replay_lines_each(suggest->trace, &lines);
    suggest->summary.totals.malformed = lines.malformed;
    suggest->lines = lines.read;
    suggest->stopped = lines.stopped;
    return error;
}

/* Returns the exit status, or -1 where no request has the key. */
static int suggest_by(const struct replay_options *options, const char *key, bool again,
                      off_t start)
{
    struct suggest *suggest = calloc(1, sizeof *suggest);
    int status = EXIT_FAILURE;

    if (!suggest) {
        cli_error("%s", weir_error_text(WEIR_ERR_MEMORY));
        return status;
    }
    suggest->summary.options = options;
    suggest->summary.key = key;
    rewind_input(start);
    if (open_suggest(suggest) == 0 && read_lines(suggest) == 0) {
        bool good = suggest->summary.totals.malformed == 0 || options->skip_bad;

        if (suggest->about[0].requests == 0)
            status = -1;
        else if (plan_and_print(suggest, again, start) == 0 && good)
            status = EXIT_SUCCESS;
        if (status >= 0 && replay_stop_asked())
            status = replay_stop_status();
    }
    close_suggest(suggest);
    return status;
}

int replay_suggest(const struct replay_options *options)
{
    const char *key = options->suggest_key;
    bool pipe = false;
    struct stat file;

    for (size_t i = 0; i < options->trace_count; i++)
        pipe |= strcmp(options->traces[i], "-") == 0 && fstat(STDIN_FILENO, &file) == 0 &&
                !S_ISREG(file.st_mode);
    if (pipe && keep_standard_input() < 0) {
        cli_error("standard input cannot be kept in a temporary file: %s", strerror(errno));
        return EXIT_FAILURE;
    }

    bool again = can_be_read_again(options);
    off_t start = pipe ? 0 : lseek(STDIN_FILENO, 0, SEEK_CUR);
    int status = suggest_by(options, key, again, start);

    if (status < 0 && again && !options->suggest_key_given)
        status = suggest_by(options, "", again, start);
    if (status < 0) {
        cli_error("no request of the trace has the key %s", key);
        status = EXIT_FAILURE;
    }
    return cli_finish(status);
}
