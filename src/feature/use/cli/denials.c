/* SPDX-License-Identifier: Apache-2.0 */
/* see denials.h */
#include "feature/use/cli/denials.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/admin_access.h"
#include "cli/admin_client.h"
#include "cli/times.h"
#include "core/bytes.h"
#include "feature/use/server/denial_file.h"
#include "server/daemon/clock.h"
#include "server/text/durations.h"
#include "server/text/print.h"

#define S UINT64_C(1000000000)
#define COUNT_DEFAULT 20
#define COUNT_MAX 10000
#define TEXT_LIMIT 100
#define WAIT_S "5" /* of one question for new ones: below the patience of the client */
#define RETRY_S 1  /* before the next question, where the server cannot make us wait */

struct denials_options {
    struct admin_access access;
    const char *key, *limit, *since, *until, *file;
    const char *user, *org, *address;
    uint64_t count;
    uint64_t since_ns, until_ns; /* 0: not given */
    bool follow, json, utc;
};

#define AT(field) .at = offsetof(struct denials_options, field)

static const struct cli_option options_table[] = {
    CLI_OPTION('k', "key", "KEY",
               "only of this key, with this value in it, or asked for by it:\nuser=ann, or ann",
               .kind = CLI_TEXT, AT(key)),
    CLI_OPTION('u', "user", "USER", "only asked for by this user, whatever limit denied",
               .kind = CLI_TEXT, AT(user)),
    CLI_OPTION(0, "org", "ORG", "only asked for by this organisation", .kind = CLI_TEXT, AT(org)),
    CLI_OPTION(0, "address", "ADDRESS", "only asked for from this address", .kind = CLI_TEXT,
               AT(address)),
    CLI_OPTION('l', "limit", "NAME", "only of this limit", .kind = CLI_TEXT, AT(limit)),
    CLI_OPTION('s', "since", "TIME",
               "only from then on: 14:03, 2026-11-23T14:03:07+01:00, or how\n"
               "long ago: 10min, 2h, 1d",
               .kind = CLI_TEXT, AT(since)),
    CLI_OPTION(0, "until", "TIME", "only up to then", .kind = CLI_TEXT, AT(until)),
    CLI_UTC_OPTION(offsetof(struct denials_options, utc)),
    CLI_OPTION('n', "count", "N", "the newest N at most (20)", .kind = CLI_U64, .min = 1,
               .max = COUNT_MAX, AT(count)),
    CLI_OPTION('f', "follow", NULL, "go on, and print denials as they come", .kind = CLI_FLAG,
               AT(follow)),
    CLI_OPTION(0, "json", NULL, "one JSON object a line", .kind = CLI_FLAG, AT(json)),
    CLI_OPTION(0, "file", "PATH", "read the file of denials instead of asking a server",
               .kind = CLI_TEXT, AT(file)),
    ADMIN_ACCESS_OPTIONS(offsetof(struct denials_options, access)),
};

static const struct cli_syntax syntax = {
    .command = "denials",
    .usage = "Usage: weir denials [OPTION]...\n"
             "Show which requests a running server has denied, by which limit, with its numbers, "
             "and\n"
             "with --key what has used it up.\n",
    .options = options_table,
    .count = sizeof options_table / sizeof *options_table,
};

/* --- Printing --------------------------------------------------------------------------------- */

static const char *text_of(const json_t *json, const char *name, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text ? text : otherwise;
}

static json_int_t number_of(const json_t *json, const char *name)
{
    return json_integer_value(json_object_get(json, name));
}

static void print_time(const json_t *denial, bool utc)
{
    char text[WEIR_MOMENT_MAX];
    fputs(weir_moment_text(text, (uint64_t)number_of(denial, "time_ns"), utc), stdout);
}

static void print_wait(const json_t *denial, const char *name, const char *never)
{
    char text[WEIR_DURATION_MAX];
    const json_t *ms = json_object_get(denial, name);
    if (json_is_integer(ms))
        printf("in %s", weir_duration(text, (uint64_t)json_integer_value(ms)));
    else
        fputs(never, stdout);
}

/* What a file or a server says, which may be anything: without bytes that a terminal obeys. */
static void print_outside(const char *text)
{
    weir_print_text(stdout, text, strlen(text), TEXT_LIMIT);
}

static void print_member(const char *before, const json_t *json, const char *name,
                         const char *otherwise)
{
    fputs(before, stdout);
    print_outside(text_of(json, name, otherwise));
}

/* "5;w=60" as "5 in 1min". */
static void print_policy(const json_t *denial)
{
    char text[WEIR_DURATION_MAX];
    uint64_t rate, window_s;
    if (weir_denial_policy_read(text_of(denial, "policy", ""), &rate, &window_s) &&
        window_s < UINT64_MAX / 1000) {
        print_member("", denial, "algorithm", "?");
        printf(", %" PRIu64 " in %s", rate, weir_duration(text, window_s * 1000));
    } else {
        fputs("standing", stdout);
    }
}

/* One value: "user=ann". */
static void print_value(const char *before, const json_t *value)
{
    const char *kind = text_of(value, "kind", "?"), *text = text_of(value, "value", NULL);
    const char *begins = text_of(value, "begins", text_of(value, "encoded", NULL));
    const char *digest = text_of(value, "sha256", NULL);
    fputs(before, stdout);
    print_outside(kind);
    putchar('=');
    if (text || begins)
        print_outside(text ? text : begins);
    else if (digest)
        printf("sha256:%.16s", digest);
    if (!text && begins)
        fputs("...", stdout);
}

/* Whether a list has the same value. */
static bool has_value(const json_t *list, const json_t *value)
{
    size_t i;
    const json_t *other;
    json_array_foreach(list, i, other)
    {
        if (json_equal(other, value))
            return true;
    }
    return false;
}

/* Who asked, as far as the key does not say it. */
static void print_caller(const json_t *denial)
{
    const json_t *value, *key = json_object_get(denial, "values");
    const char *before = "  asked by ";
    size_t i;
    json_array_foreach(json_object_get(denial, "caller"), i, value)
    {
        if (has_value(key, value))
            continue;
        print_value(before, value);
        before = ", ";
    }
}

static void print_name(const json_t *item)
{
    char *name = admin_key_name(item);
    if (name)
        weir_print_key(stdout, name, strlen(name), TEXT_LIMIT);
    free(name);
}

/* Not of a standing, which counts nothing. */
static void print_count(const json_t *denial)
{
    if (json_is_null(json_object_get(denial, "algorithm")))
        return;
    printf("asked for %" JSON_INTEGER_FORMAT " with %" JSON_INTEGER_FORMAT
           " of %" JSON_INTEGER_FORMAT " left; ",
           number_of(denial, "cost"), number_of(denial, "remaining"),
           number_of(denial, "capacity"));
}

static void print_denial(const json_t *denial, bool utc)
{
    const char *plan = text_of(denial, "plan", NULL);
    print_time(denial, utc);
    print_member("  ", denial, "limit", "?");
    fputs("  ", stdout);
    print_name(denial);
    print_member("  ", denial, "route", "-");
    print_caller(denial);
    fputs("\n    ", stdout);
    print_count(denial);
    fputs("admitted ", stdout);
    print_wait(denial, "retry_after_ms", "never");
    fputs(", all free ", stdout);
    print_wait(denial, "reset_after_ms", "never");
    fputs("\n    ", stdout);
    print_policy(denial);
    if (plan)
        print_member("; plan ", denial, "plan", "");
    print_member("; ", denial, "action", "reject");
    if (strcmp(text_of(denial, "standing", "good"), "good") != 0)
        print_member("; standing ", denial, "standing", "");
    if (strcmp(text_of(denial, "source", "store"), "store") != 0)
        print_member("; by on_store_error: ", denial, "source", "");
    if (number_of(denial, "more") > 0)
        printf("; and %" JSON_INTEGER_FORMAT " before it", number_of(denial, "more"));
    print_member("; node ", denial, "node", "?");
    putchar('\n');
}

static void print_one(const struct denials_options *options, const json_t *denial)
{
    if (!options->json) {
        print_denial(denial, options->utc);
        return;
    }
    json_dumpf(denial, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    putchar('\n');
}

/* --- From a server ---------------------------------------------------------------------------- */

/* "1795442587.214000000" */
static void seconds_text(char text[WEIR_MOMENT_MAX], uint64_t time_ns)
{
    snprintf(text, WEIR_MOMENT_MAX, "%" PRIu64 ".%09" PRIu64, time_ns / S, time_ns % S);
}

static int ask(struct admin_client *client, const struct denials_options *options, bool waits,
               json_int_t after, json_t **answer, struct weir_reason *reason)
{
    char count[24], id[24], since[WEIR_MOMENT_MAX], until[WEIR_MOMENT_MAX];
    seconds_text(since, options->since_ns);
    seconds_text(until, options->until_ns);
    snprintf(count, sizeof count, "%" PRIu64, waits ? COUNT_MAX : options->count);
    snprintf(id, sizeof id, "%" JSON_INTEGER_FORMAT, after);
    const struct admin_parameter parameters[] = {
        {"key", options->key},
        {"limit", options->limit},
        {"user", options->user},
        {"org", options->org},
        {"address", options->address},
        {"since", options->since ? since : NULL},
        {"until", options->until ? until : NULL},
        {"count", count},
        {"after", waits ? id : NULL},
        {"wait", waits ? WAIT_S : NULL},
    };
    return admin_client_call(client, "GET", "/v1/denials", parameters,
                             sizeof parameters / sizeof *parameters, NULL, answer, reason);
}

/* What the key has used, and where: from what the server counts of it. */
static void print_use(const json_t *key)
{
    size_t i;
    json_t *limit;
    static const char *const windows[] = {"minute", "hour", "day"};
    json_array_foreach(json_object_get(key, "limits"), i, limit)
    {
        const char *route = text_of(limit, "route", NULL);
        print_member(i == 0 ? "\nWhat uses it up:\n" : "", limit, "limit", "?");
        fputs("  ", stdout);
        print_name(limit);
        printf("  %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " used, all free ",
               number_of(limit, "used"), number_of(limit, "capacity"));
        print_wait(limit, "reset_after_ms", "never");
        fputs("\n    requests (denied): ", stdout);
        for (int w = 0; w < 3; w++) {
            const json_t *counts = json_object_get(limit, windows[w]);
            printf("%s%" JSON_INTEGER_FORMAT " (%" JSON_INTEGER_FORMAT ") in the last %s",
                   w > 0 ? ", " : "", number_of(counts, "requests"), number_of(counts, "denied"),
                   windows[w]);
        }
        if (route) {
            fputs("; most on ", stdout);
            print_outside(route);
        }
        putchar('\n');
    }
}

static int explain_use(struct admin_client *client, const struct denials_options *options,
                       struct weir_reason *reason)
{
    json_t *key;
    const struct admin_parameter parameters[] = {{"key", options->key}, {"count", "0"}};
    int err = admin_client_call(client, "GET", "/v1/use/key", parameters, 2, NULL, &key, reason);
    if (err == 0)
        print_use(key);
    json_decref(key);
    return err;
}

/* Prints what comes until the output or the server ends. */
static int follow(struct admin_client *client, const struct denials_options *options,
                  json_int_t last, struct weir_reason *reason)
{
    for (;;) {
        json_t *answer, *denial;
        size_t i;
        if (fflush(stdout) != 0)
            return 0;
        uint64_t asked_ns = weir_clock_boot_ns();
        int err = ask(client, options, true, last, &answer, reason);
        if (err < 0) {
            json_decref(answer);
            return err;
        }
        json_array_foreach(json_object_get(answer, "denials"), i, denial)
        {
            print_one(options, denial);
        }
        json_int_t now = number_of(answer, "last");
        bool idle = now == last && weir_clock_boot_ns() - asked_ns < S;
        last = now;
        json_decref(answer);
        if (idle)
            sleep(RETRY_S);
    }
}

/* Whether the server's rules have the limit that was asked for; if not, *reason says so. */
static bool knows_limit(const struct denials_options *options, const json_t *answer,
                        struct weir_reason *reason)
{
    const char *near = text_of(answer, "did_you_mean", NULL);
    if (!json_is_false(json_object_get(answer, "limit_known")))
        return true;
    snprintf(reason->text, sizeof reason->text, "the rules have no limit '%.64s'%s%.64s%s",
             options->limit, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return false;
}

static int show(struct admin_client *client, void *context, struct weir_reason *reason)
{
    const struct denials_options *options = context;
    json_t *answer;
    int err = ask(client, options, false, 0, &answer, reason);
    const json_t *list = json_object_get(answer, "denials");
    json_int_t last = number_of(answer, "last");
    for (size_t i = json_array_size(list); i-- > 0;) /* oldest first */
        print_one(options, json_array_get(list, i));
    if (err == 0 && !knows_limit(options, answer, reason)) {
        if (json_array_size(list) == 0) {
            json_decref(answer);
            return WEIR_ERR_NOT_FOUND;
        }
        cli_error("%s", reason->text); /* it had one, when these were denied */
    }
    if (err == 0 && json_array_size(list) == 0 && !options->json && !options->follow)
        puts("no denials");
    json_decref(answer);
    if (err == 0 && options->follow)
        return follow(client, options, last, reason);
    if (err == 0 && options->key && !options->json)
        return explain_use(client, options, reason);
    return err;
}

/* --- From a file ------------------------------------------------------------------------------ */

/* The newest denials so far, in a ring. */
struct newest {
    struct weir_denial *list;
    uint64_t room, count;
};

static void take(void *context, const struct weir_denial *denial)
{
    struct newest *newest = context;
    newest->list[newest->count++ % newest->room] = *denial;
}

static int show_file(const struct denials_options *options)
{
    struct weir_reason reason = {{0}};
    struct weir_denial_reading reading = {.found = take};
    if (options->key && !weir_asked_read(&reading.filter.key, weir_bytes_of(options->key))) {
        cli_error("--key must be one value, or at most %d with their kinds", WEIR_ASKED_VALUES_MAX);
        return EXIT_FAILURE;
    }
    struct newest newest = {calloc(options->count, sizeof *newest.list), options->count, 0};
    reading.context = &newest;
    if (options->user)
        weir_asked_read_kind(&reading.filter.callers[0], weir_bytes_of("user"),
                             weir_bytes_of(options->user));
    if (options->org)
        weir_asked_read_kind(&reading.filter.callers[1], weir_bytes_of("org"),
                             weir_bytes_of(options->org));
    if (options->address)
        weir_asked_read_kind(&reading.filter.callers[2], weir_bytes_of("client.ip"),
                             weir_bytes_of(options->address));
    if (options->limit)
        reading.filter.limit = weir_bytes_of(options->limit);
    reading.filter.since_ns = options->since_ns;
    reading.filter.until_ns = options->until_ns;
    int err =
        newest.list ? weir_denial_file_read(options->file, &reading, &reason) : WEIR_ERR_MEMORY;
    if (err < 0) {
        cli_error("%s", reason.text[0] ? reason.text : weir_error_text(err));
        free(newest.list);
        return EXIT_FAILURE;
    }
    uint64_t first = newest.count > newest.room ? newest.count - newest.room : 0;
    for (uint64_t i = first; i < newest.count; i++) {
        json_t *json = weir_denial_json(&newest.list[i % newest.room]);
        print_one(options, json);
        json_decref(json);
    }
    if (newest.count == 0 && !options->json)
        puts("no denials");
    if (reading.skipped > 0)
        cli_error("%s: %" PRIu64 " lines are no denials", options->file, reading.skipped);
    free(newest.list);
    return cli_finish(EXIT_SUCCESS);
}

int weir_command_denials(int argc, char **argv)
{
    struct denials_options options = {.access = admin_access_default(), .count = COUNT_DEFAULT};
    struct weir_reason reason;
    uint64_t now_ns = weir_clock_wall_ns();
    int status;
    if (cli_read_options(&syntax, argc, argv, &options, &status) < 0)
        return status;
    if (options.since &&
        cli_time_read(options.since, now_ns, 0, options.utc, &options.since_ns, &reason) < 0)
        return cli_usage_error("denials", "--since: %s", reason.text);
    if (options.until && cli_time_read(options.until, now_ns, options.since_ns, options.utc,
                                       &options.until_ns, &reason) < 0)
        return cli_usage_error("denials", "--until: %s", reason.text);
    if (options.file && options.follow)
        return cli_usage_error("denials", "--follow needs a server; a file does not go on");
    if (options.file)
        return show_file(&options);
    return cli_finish(admin_access_call(&options.access, show, &options));
}
