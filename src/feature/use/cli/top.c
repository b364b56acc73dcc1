/* SPDX-License-Identifier: Apache-2.0 */
/* see top.h */
#include "feature/use/cli/top.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/admin_access.h"
#include "cli/options.h"
#include "cli/times.h"
#include "feature/use/cli/top_screen.h"
#include "rules/string_map.h"
#include "server/daemon/clock.h"
#include "server/daemon/server.h"
#include "server/text/print.h"

#define KEYS_DEFAULT 5
#define KEYS_MAX 1000 /* the server's own limit */
#define INTERVAL_DEFAULT_S 2
#define INTERVAL_MAX_S 86400
#define NAME_WIDTH 24
#define KEY_TEXT_MAX 100
#define SHORT_MAX 10 /* limits that are named whose keys find no room */

struct top_options {
    struct admin_access access;
    uint64_t interval_s, keys;
    bool once, json, utc;
};

#define AT(field) .at = offsetof(struct top_options, field)

static const struct cli_option options_table[] = {
    ADMIN_ACCESS_OPTIONS(offsetof(struct top_options, access)),
    CLI_OPTION('i', "interval", "SECONDS", "(2)", .kind = CLI_U64, .min = 1, .max = INTERVAL_MAX_S,
               AT(interval_s)),
    CLI_OPTION('n', "count", "N", "most denied keys of each limit (5)", .kind = CLI_U64,
               .max = KEYS_MAX, AT(keys)),
    CLI_OPTION(0, "once", NULL, "print once and exit", .kind = CLI_FLAG, AT(once)),
    CLI_OPTION(0, "json", NULL, "one JSON object a line each time", .kind = CLI_FLAG, AT(json)),
    CLI_UTC_OPTION(offsetof(struct top_options, utc)),
};

static const struct cli_syntax syntax = {
    .command = "top",
    .usage = "Usage: weir top [OPTION]...\n"
             "Watch the limits of a running server, the keys that are denied most, and the limits "
             "whose\n"
             "keys find no room in its state.\n",
    .options = options_table,
    .count = sizeof options_table / sizeof *options_table,
};

/* What the server said at one moment, and its limits by name. */
struct round {
    struct admin_answer answer;
    struct rules_string_map names;
};

/* Returns false when memory is out. */
static bool round_index(struct round *round)
{
    const struct admin_answer *answer = &round->answer;
    for (size_t i = 0; i < answer->limit_count; i++) {
        const char *name = answer->limits[i].name;
        if (!rules_string_map_add(&round->names, 0, name, strlen(name), (uint32_t)i))
            return false;
    }
    return true;
}

static void round_free(struct round *round)
{
    rules_string_map_free(&round->names);
    admin_answer_free(&round->answer);
    *round = (struct round){0};
}

/* The limit of this name in the round before; NULL when it is new. */
static const struct admin_limit *find_before(const struct round *before, const char *name)
{
    size_t size = strlen(name);
    uint32_t i = rules_string_map_find(&before->names, 0, rules_text_hash(name, size), name, size);
    return i != RULES_NONE ? &before->answer.limits[i] : NULL;
}

/* A rate a second since `before`; "-" when there is none (the first round, a restart). */
static void print_rate(uint64_t now, uint64_t before, bool known, double elapsed_s)
{
    if (known && now >= before)
        printf(" %10.1f", (double)(now - before) / elapsed_s);
    else
        printf(" %10s", "-");
}

static void print_limits(const struct admin_answer *answer, const struct round *before,
                         double elapsed_s)
{
    printf("%-*s %-16s %12s %12s %10s %10s\n", NAME_WIDTH, "LIMIT", "ALGORITHM", "ALLOWED",
           "DENIED", "ALLOWED/s", "DENIED/s");
    for (size_t i = 0; i < answer->limit_count; i++) {
        const struct admin_limit *limit = &answer->limits[i];
        const struct admin_limit *old = find_before(before, limit->name);
        int width = printf("%s%s", limit->name, limit->shadow ? "*" : "");
        printf("%*s %-16s %12" PRIu64 " %12" PRIu64, width < NAME_WIDTH ? NAME_WIDTH - width : 0,
               "", limit->algorithm, limit->allowed, limit->denied);
        print_rate(limit->allowed, old ? old->allowed : 0, old, elapsed_s);
        print_rate(limit->denied, old ? old->denied : 0, old, elapsed_s);
        putchar('\n');
    }
}

static void print_borrowed(const struct admin_answer *answer)
{
    bool any = false;
    for (size_t i = 0; i < answer->limit_count; i++) {
        const struct admin_limit *limit = &answer->limits[i];
        if (limit->pool[0] == '\0')
            continue;
        if (!any)
            printf("\n%-*s %12s  %s\n", NAME_WIDTH, "BORROWED BY", "REQUESTS", "POOL");
        any = true;
        printf("%-*s %12" PRIu64 "  %s\n", NAME_WIDTH, limit->name, limit->borrowed, limit->pool);
    }
}

static void print_candidates(const struct admin_answer *answer)
{
    bool any = false;
    for (size_t i = 0; i < answer->limit_count; i++) {
        const struct admin_limit *limit = &answer->limits[i];
        const struct admin_candidate *candidate = &limit->candidate;
        if (!limit->tries)
            continue;
        if (!any)
            printf("\n%-*s %12s %12s %12s %10s\n", NAME_WIDTH, "CANDIDATE OF", "SAME", "STRICTER",
                   "LOOSER", "SKIPPED");
        any = true;
        printf("%-*s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %10" PRIu64 "\n", NAME_WIDTH,
               limit->name, candidate->same, candidate->stricter, candidate->looser,
               candidate->skipped);
    }
}

/* The member of a limit; NULL: the server says nothing of the kind, or not as an object. */
static const json_t *member_of(const struct admin_limit *limit, const char *name)
{
    const json_t *object = json_object_get(limit->json, name);
    return json_is_object(object) ? object : NULL;
}

/* ", mark 12": the members of an object, those that `differ` from a number where that is not
 * negative. Returns how many were printed. */
static unsigned print_members(const json_t *object, json_int_t differ, const char *unit)
{
    unsigned printed = 0;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        if (json_integer_value(value) == differ)
            continue;
        printf("%s%s %" JSON_INTEGER_FORMAT "%s", printed++ > 0 ? ", " : "", name,
               json_integer_value(value), unit);
    }
    return printed;
}

/* The limits that follow health: their scale, the lowest of the last hour, and why. */
static void print_scales(const struct admin_answer *answer)
{
    bool any = false;
    for (size_t i = 0; i < answer->limit_count; i++) {
        const struct admin_limit *limit = &answer->limits[i];
        const char *controller = json_string_value(json_object_get(limit->json, "controller"));
        json_int_t scale = json_integer_value(json_object_get(limit->json, "scale_percent"));
        json_int_t lowest =
            json_integer_value(json_object_get(limit->json, "lowest_percent_of_hour"));
        const json_t *causes = member_of(limit, "scale_causes_percent");
        if (!controller)
            continue;
        if (!any)
            printf("\n%-*s %8s %12s  %s\n", NAME_WIDTH, "ADAPTIVE", "SCALE", "LOWEST/HOUR",
                   "CONTROLLER");
        any = true;
        printf("%-*s %7" JSON_INTEGER_FORMAT "%% %11" JSON_INTEGER_FORMAT "%%  ", NAME_WIDTH,
               limit->name, scale, lowest);
        weir_print_text(stdout, controller, strlen(controller), NAME_WIDTH);
        if (causes && scale < 100) {
            fputs(": ", stdout);
            if (print_members(causes, 100, "%") == 0)
                fputs("rising", stdout); /* hysteresis */
        }
        putchar('\n');
    }
}

/* A table of counts by name, of the limits that have one. */
static void print_counts(const struct admin_answer *answer, const char *name, const char *title)
{
    bool any = false;
    for (size_t i = 0; i < answer->limit_count; i++) {
        const json_t *counts = member_of(&answer->limits[i], name);
        if (!counts)
            continue;
        if (!any)
            printf("\n%s\n", title);
        any = true;
        printf("%-*s ", NAME_WIDTH, answer->limits[i].name);
        if (print_members(counts, 0, "") == 0)
            putchar('-');
        putchar('\n');
    }
}

/* Requests by the class of their client's score. */
static void print_classes(const struct admin_answer *answer, const struct admin_answer *before,
                          double elapsed_s)
{
    uint64_t all = 0;
    for (int i = 0; i < WEIR_CLASSES; i++)
        all += answer->classes[i];
    if (!answer->scores)
        return;
    printf("\n%-*s %12s %7s %10s\n", NAME_WIDTH, "CLASS OF SCORE", "REQUESTS", "SHARE",
           "REQUESTS/s");
    for (int i = 0; i < WEIR_CLASSES; i++) {
        double share = all > 0 ? 100.0 * (double)answer->classes[i] / (double)all : 0;
        printf("%-*s %12" PRIu64 " %6.1f%%", NAME_WIDTH, weir_class_name((uint8_t)i),
               answer->classes[i], share);
        print_rate(answer->classes[i], before->classes[i], before->scores, elapsed_s);
        putchar('\n');
    }
}

/* How much a counter has grown since `before`; all of it where that is not known. */
static uint64_t growth(uint64_t now, uint64_t before)
{
    return now >= before ? now - before : now;
}

/* A limit that has had keys without room: how often since the round before, and in all. */
struct shortage {
    const struct admin_limit *limit, *old; /* old: a moment ago; NULL: not known */
    uint64_t now, all;
};

static int by_shortage(const void *left, const void *right)
{
    const struct shortage *a = left, *b = right;
    if (a->now != b->now)
        return a->now > b->now ? -1 : 1;
    if (a->all != b->all)
        return a->all > b->all ? -1 : 1;
    return strcmp(a->limit->name, b->limit->name);
}

/* Lists them, the busiest first. NULL: no memory. */
static struct shortage *find_shortages(const struct admin_answer *answer,
                                       const struct round *before, size_t *count)
{
    struct shortage *list = calloc(answer->limit_count + 1, sizeof *list);
    *count = 0;
    for (size_t i = 0; list && i < answer->limit_count; i++) {
        const struct admin_limit *limit = &answer->limits[i];
        if (limit->evictions + limit->overflows == 0)
            continue;
        const struct admin_limit *old = find_before(before, limit->name);
        list[(*count)++] = (struct shortage){limit, old,
                                             growth(limit->evictions, old ? old->evictions : 0) +
                                                 growth(limit->overflows, old ? old->overflows : 0),
                                             limit->evictions + limit->overflows};
    }
    if (*count > 1)
        qsort(list, *count, sizeof *list, by_shortage);
    return list;
}

static void print_short_line(const char *name, uint64_t evictions, uint64_t overflows)
{
    printf("%-*s %12" PRIu64 " %12" PRIu64, NAME_WIDTH, name, evictions, overflows);
}

static void print_short(const struct admin_answer *answer, const struct round *before,
                        double elapsed_s)
{
    bool known = before->answer.limit_count > 0;
    size_t count;
    if (answer->evictions + answer->overflows == 0)
        return;
    printf("\n%-*s %12s %12s %10s %10s\n", NAME_WIDTH, "NO ROOM FOR KEYS OF", "EVICTIONS",
           "OVERFLOWS", "EVICT./s", "OVERFL./s");
    print_short_line("(all)", answer->evictions, answer->overflows);
    print_rate(answer->evictions, before->answer.evictions, known, elapsed_s);
    print_rate(answer->overflows, before->answer.overflows, known, elapsed_s);
    putchar('\n');
    struct shortage *list = find_shortages(answer, before, &count);
    for (size_t i = 0; i < count && i < SHORT_MAX; i++) {
        const struct admin_limit *limit = list[i].limit, *old = list[i].old;
        print_short_line(limit->name, limit->evictions, limit->overflows);
        print_rate(limit->evictions, old ? old->evictions : 0, old, elapsed_s);
        print_rate(limit->overflows, old ? old->overflows : 0, old, elapsed_s);
        putchar('\n');
    }
    if (count > SHORT_MAX)
        printf("and %zu more limits\n", count - SHORT_MAX);
    free(list);
}

/* Whether a limit only says what it would deny: marked by "*". */
static bool is_shadow(const struct admin_answer *answer, const char *name)
{
    for (size_t i = 0; i < answer->limit_count; i++)
        if (!strcmp(answer->limits[i].name, name))
            return answer->limits[i].shadow;
    return false;
}

/* What refuses requests beside limits; standing is among them. */
static void print_refused(const struct admin_answer *answer)
{
    const char *name;
    json_t *count;
    bool any = false;
    json_object_foreach(answer->refused, name, count)
    {
        if (json_integer_value(count) == 0)
            continue;
        if (!any)
            printf("\n%-*s %12s\n", NAME_WIDTH, "REFUSED BY", "REQUESTS");
        any = true;
        printf("%-*s %12" JSON_INTEGER_FORMAT "\n", NAME_WIDTH, name, json_integer_value(count));
    }
}

static void print_keys(const struct admin_answer *answer)
{
    if (answer->key_count > 0)
        printf("\n%-*s %12s  %s\n", NAME_WIDTH, "MOST DENIED", "DENIED", "KEY");
    for (size_t i = 0; i < answer->key_count; i++) {
        const struct admin_key *key = &answer->keys[i];
        int width = printf("%s%s", key->limit, is_shadow(answer, key->limit) ? "*" : "");
        printf("%*s %12" PRIu64 "  ", width < NAME_WIDTH ? NAME_WIDTH - width : 0, "", key->denied);
        weir_print_key(stdout, key->key, strlen(key->key), KEY_TEXT_MAX);
        if (key->error > 0)
            printf(" (at most %" PRIu64 " too high)", key->error);
        putchar('\n');
    }
}

/* Prints rounds until the output fails or the server is gone. Returns the exit status. */
static int watch(struct admin_client *client, const struct top_options *options)
{
    struct round now, before = {0};
    struct weir_reason reason;
    bool terminal = isatty(STDOUT_FILENO);
    int status = EXIT_SUCCESS;
    uint64_t asked_ns = weir_clock_boot_ns();
    for (;;) {
        uint64_t now_ns = weir_clock_boot_ns(), elapsed_ns = now_ns - asked_ns;
        asked_ns = now_ns;
        now = (struct round){0};
        int err = admin_client_ask(client, options->keys, &now.answer, &reason);
        if (err == 0 && !round_index(&now))
            snprintf(reason.text, sizeof reason.text, "%s", weir_error_text(err = WEIR_ERR_MEMORY));
        if (err < 0) {
            round_free(&now);
            cli_error("%s: %s", options->access.address, reason.text);
            status = EXIT_FAILURE;
            break;
        }
        if (terminal && !options->once)
            fputs("\033[H\033[2J", stdout); /* to the top left corner of a clear screen */
        print_limits(&now.answer, &before, (double)elapsed_ns / 1e9);
        print_borrowed(&now.answer);
        print_candidates(&now.answer);
        print_scales(&now.answer);
        print_counts(&now.answer, "actions", "ACTIONS OF");
        print_counts(&now.answer, "denied_by_class", "DENIED BY CLASS OF");
        print_classes(&now.answer, &before.answer, (double)elapsed_ns / 1e9);
        print_short(&now.answer, &before, (double)elapsed_ns / 1e9);
        print_refused(&now.answer);
        print_keys(&now.answer);
        round_free(&before);
        before = now;
        if (options->once)
            break;
        if (!terminal)
            putchar('\n');
        if (fflush(stdout) != 0)
            break;
        nanosleep(&(struct timespec){.tv_sec = (time_t)options->interval_s}, NULL);
    }
    round_free(&before);
    return cli_finish(status);
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* Adds what the server answers to a call as a member. */
static int add_answer(struct admin_client *client, json_t *round, const char *name,
                      const char *path, const struct admin_parameter *parameters, size_t count,
                      struct weir_reason *reason)
{
    json_t *answer;
    int err = admin_client_call(client, "GET", path, parameters, count, NULL, &answer, reason);
    json_object_set_new(round, name, answer ? answer : json_null());
    return err;
}

/* One round: the limits with their counters, what is refused and why, keys and callers. */
static int print_json(struct admin_client *client, const struct top_options *options,
                      struct weir_reason *reason)
{
    char count[24];
    const struct admin_parameter last[] = {{"count", "1"}};
    const struct admin_parameter keys[] = {{"by", "denied"}, {"count", count}};
    json_t *round = json_object();
    snprintf(count, sizeof count, "%" PRIu64, options->keys);
    int err = add_answer(client, round, "limits", "/v1/limits", NULL, 0, reason);
    if (err == 0)
        err = add_answer(client, round, "last_second", "/v1/series", last, 1, reason);
    if (err == 0)
        err = add_answer(client, round, "keys", "/v1/use/top", keys, 2, reason);
    if (err == 0)
        err = add_answer(client, round, "callers", "/v1/use/callers", keys, 2, reason);
    if (err == 0) {
        json_dumpf(round, stdout, JSON_COMPACT);
        putchar('\n');
    }
    json_decref(round);
    return err;
}

static int watch_json(struct admin_client *client, const struct top_options *options)
{
    struct weir_reason reason;
    for (;;) {
        if (print_json(client, options, &reason) < 0) {
            cli_error("%s: %s", options->access.address, reason.text);
            return cli_finish(EXIT_FAILURE);
        }
        if (options->once || fflush(stdout) != 0)
            return cli_finish(EXIT_SUCCESS);
        nanosleep(&(struct timespec){.tv_sec = (time_t)options->interval_s}, NULL);
    }
}

int weir_command_top(int argc, char **argv)
{
    struct top_options options = {
        .access = admin_access_default(), .interval_s = INTERVAL_DEFAULT_S, .keys = KEYS_DEFAULT};
    int status;
    if (cli_read_options(&syntax, argc, argv, &options, &status) < 0)
        return status;
    struct admin_client *client;
    int error = admin_access_open(&client, &options.access);
    if (error < 0)
        return EXIT_FAILURE;
    const struct top_screen_options screen = {options.access.address, options.interval_s,
                                              options.utc};
    struct weir_reason reason = {{0}};
    error = WEIR_ERR_NOT_FOUND;
    if (options.json) {
        status = watch_json(client, &options);
        admin_client_close(client);
        return status;
    }
    if (!options.once && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO))
        error = top_screen_run(client, &screen, &reason);
    if (error == WEIR_ERR_NOT_FOUND) {
        status = watch(client, &options); /* no terminal, or an older server */
    } else {
        status = cli_finish(error < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
        if (error < 0)
            cli_error("%s: %s", options.access.address, reason.text);
    }
    admin_client_close(client);
    return status;
}
