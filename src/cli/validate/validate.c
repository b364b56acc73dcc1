/* SPDX-License-Identifier: Apache-2.0 */
/* see validate.h */
#include "cli/validate/validate.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/rules_file.h"
#include "cli/validate/fix.h"
#include "feature/envoy/cli/check.h"
#include "feature/identity/rules/forgeable.h"
#include "rules/charge/scale.h"
#include "rules/load/schema.h"
#include "server/daemon/server.h"
#include "server/daemon/services/list.h"
#include "store/redis/client/url.h"
#include "store/redis/script/script.h"

#define HINT_SMALL 20 /* one request more or less counts */
#define HINT_SEGMENTS 10
#define HINT_NAMES 5 /* that are listed */

struct validate_options {
    const char *envoy_config;
    bool merge_domains, quiet, strict, fix, schema, keys_schema, keywords;
};

#define AT(field) .at = offsetof(struct validate_options, field)

static const struct cli_option options_table[] = {
    CLI_OPTION(0, "envoy-config", "DIR",
               "check the configuration of Envoy's rate limit service instead", .kind = CLI_TEXT,
               AT(envoy_config)),
    CLI_OPTION(0, "merge-domains", NULL, "as MERGE_DOMAIN_CONFIG: files may share a domain",
               .kind = CLI_FLAG, AT(merge_domains)),
    CLI_OPTION(0, "strict", NULL, "what a later version refuses makes the exit status 1, too",
               .kind = CLI_FLAG, AT(strict)),
    CLI_OPTION(0, "fix", NULL,
               "first change the files so that they say what they mean: declare\n"
               "attributes, put a backslash before what looks like an expression",
               .kind = CLI_FLAG, AT(fix)),
    CLI_OPTION(0, "schema", NULL, "print the JSON Schema of rules files, for editors",
               .kind = CLI_FLAG, AT(schema)),
    CLI_OPTION(0, "keys-schema", NULL, "print that of keys files", .kind = CLI_FLAG,
               AT(keys_schema)),
    CLI_OPTION(0, "keywords", NULL,
               "print every keyword of rules files, tab-separated: place, kind, least,\n"
               "most, words, another word, default, in words, meaning, reason",
               .kind = CLI_FLAG, AT(keywords)),
    CLI_OPTION('q', "quiet", NULL, "print nothing about files without problems", .kind = CLI_FLAG,
               AT(quiet)),
};

static const struct cli_syntax syntax = {
    .command = "validate",
    .usage =
        "Usage: weir validate [OPTION]... FILE...\n"
        "       weir validate --envoy-config=DIR [--merge-domains]\n"
        "       weir validate --schema | --keys-schema | --keywords\n"
        "Check rules files, the files that they name, and whether `weir serve` would start with "
        "them.\n"
        "Every problem is one line on standard error, FILE:LINE:COLUMN: MESSAGE, and makes the "
        "exit\n"
        "status 1. What a later version refuses is a line, too, and makes it 1 with --strict "
        "only.\n"
        "Hints go to standard output: limits that are less exact than they look, and limits for "
        "fewer\n"
        "than 10,000 of whose keys the state has room.\n",
    .options = options_table,
    .count = sizeof options_table / sizeof *options_table,
    .takes_arguments = true,
};

/* What only the store can tell: whether it can be reached by that URL, and can hold the limits. */
static int check_limit(void *context, struct weir_limit *limit, const char *name)
{
    const char *path = context;
    struct weir_reason reason = {{0}};
    int error = redis_script_accepts(limit, &reason);
    if (error < 0)
        cli_error("%s: limit %s: %s", path, name, reason.text);
    return error;
}

static int check_url(const char *path, const char *setting, const char *text)
{
    struct redis_url url;
    struct weir_reason reason = {{0}};
    int error = text ? redis_url_parse(&url, text, &reason) : 0;
    if (error < 0)
        cli_error("%s: %s: %s", path, setting, reason.text);
    return error;
}

static int check_store(char *path, struct weir_rules *rules)
{
    const struct weir_settings *settings = weir_rules_settings(rules);
    int error = check_url(path, "identities.redis", settings->identities.redis.url);
    if (error == 0)
        error = check_url(path, "store.redis", settings->store.redis.url);
    for (uint32_t i = 0; error == 0 && i < settings->sticky.count; i++)
        error = check_url(path, "sticky.peers", settings->sticky.peers[i].url);
    if (error < 0 || !settings->store.redis.url)
        return error;
    return weir_rules_prepare(rules, check_limit, path);
}

/* What else would keep `weir serve` from starting. */
static int check_server(const char *path, struct weir_rules *rules)
{
    struct weir_reason reason;
    int error = weir_server_check(rules, &reason);
    if (error < 0)
        cli_error("%s: %s", path, reason.text[0] ? reason.text : weir_error_text(error));
    return error;
}

/* How much of the state is for spans, where a limit needs any or the file says it. */
static void print_spans(const struct weir_rules *rules)
{
    uint32_t given = weir_rules_settings(rules)->state_spans;
    uint32_t suits = weir_rules_span_percent(rules);
    if (given > 0)
        printf(", %" PRIu32 "%% of the state for spans (%" PRIu32 "%% would suit)", given, suits);
    else if (suits > WEIR_RULES_SPAN_PERCENT_MIN)
        printf(", %" PRIu32 "%% of a new state for spans", suits);
}

static void print_summary(const char *path, const struct weir_rules *rules)
{
    const struct weir_store_settings *store = &weir_rules_settings(rules)->store;
    uint32_t count = weir_rules_count(rules), shadows = 0, leased = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct weir_rule_info info;
        weir_rules_info(rules, i, &info);
        shadows += info.shadow;
        leased += info.leased;
    }
    printf("%s: OK, %" PRIu32 " limit%s", path, count, count == 1 ? "" : "s");
    if (shadows > 0)
        printf(" (%" PRIu32 " shadow)", shadows);
    if (store->redis.url)
        printf(", in Redis: %" PRIu32 " exact, %" PRIu32 " leased", count - leased, leased);
    print_spans(rules);
    putchar('\n');
}

/* Whether a limit is a sliding window that admits more than N where requests come in bursts: so few
 * segments that what left the window is taken for spread evenly. */
static bool is_rough(const struct weir_limit *limit)
{
    const struct weir_limit_spec *spec = &limit->spec;
    return spec->algorithm == WEIR_SLIDING_WINDOW && !spec->strict &&
           spec->segments < HINT_SEGMENTS && spec->rate > 0;
}

static bool is_rough_and_small(const struct weir_limit *limit)
{
    return is_rough(limit) && limit->spec.rate <= HINT_SMALL;
}

static bool is_fixed(const struct weir_limit *limit)
{
    return limit->spec.algorithm == WEIR_FIXED_WINDOW && limit->spec.rate > 0;
}

static bool has_any(const struct weir_rule_info *info, bool (*is)(const struct weir_limit *))
{
    for (uint32_t i = 0; i < info->limit_count; i++)
        if (is(&info->limit[i]))
            return true;
    return false;
}

/* Prints the limits that a hint is about, and the hint: those with one that `is`, and none that
 * `is_no` holds for (may be NULL). */
static void print_hint(const char *path, const struct weir_rules *rules,
                       bool (*is)(const struct weir_limit *),
                       bool (*is_no)(const struct weir_limit *), const char *hint)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < weir_rules_count(rules); i++) {
        struct weir_rule_info info;
        weir_rules_info(rules, i, &info);
        if (!has_any(&info, is) || (is_no && has_any(&info, is_no)))
            continue;
        if (count == 0)
            printf("%s: hint: ", path);
        if (count < HINT_NAMES)
            printf("%s%s", count > 0 ? ", " : "", info.name);
        count++;
    }
    if (count > HINT_NAMES)
        printf(" and %" PRIu32 " more", count - HINT_NAMES);
    if (count > 0)
        printf(": %s\n", hint);
}

/* The limits for whose keys the state has little room. */
static void print_few_keys(const char *path, const struct weir_rules *rules)
{
    struct weir_few_keys few;
    if (weir_server_few_keys(rules, &few) < 0)
        return; /* check_server has said why */
    for (uint32_t i = 0; i < few.listed; i++) {
        char text[WEIR_FEW_KEYS_TEXT_MAX];
        weir_few_keys_text(&few, i, text);
        printf("%s: hint: %s: %s\n", path, few.list[i].name, text);
    }
    if (few.count > few.listed)
        printf("%s: hint: %" PRIu32 " more limits have room for fewer than %d keys\n", path,
               few.count - few.listed, WEIR_FEW_KEYS);
}

/* Limits that a caller with a low scale is not slowed by. */
static void print_fillable(const char *path, const struct weir_rules *rules)
{
    for (uint32_t i = 0; i < weir_rules_count(rules); i++) {
        struct weir_rule_info info;
        uint64_t burst;
        weir_rules_info(rules, i, &info);
        if (weir_rules_one_fills(rules, i, &burst))
            printf("%s: warning: %s: one throttled caller can fill this for all: its key does not "
                   "contain the caller, and its burst is too small to slow one down; add the "
                   "caller to `key`, or set a burst of at least %" PRIu64 "\n",
                   path, info.name, burst);
    }
}

/* Keys by what a client writes itself. */
static void print_forgeable(const char *path, const struct weir_rules *rules)
{
    for (uint32_t i = 0; i < weir_rules_count(rules); i++) {
        struct weir_rule_info info;
        struct weir_bytes name;
        weir_rules_info(rules, i, &info);
        enum weir_forgeable kind = weir_rules_forgeable(rules, i, &name);
        if (kind == WEIR_FORGEABLE_ADDRESS)
            printf("%s: warning: %s: clients write %.*s themselves; use `client.ip`, which is what "
                   "`server.trusted_proxies` say\n",
                   path, info.name, (int)name.size, name.data);
        else if (kind == WEIR_FORGEABLE_FIELD)
            printf("%s: hint: %s: a client can send another %.*s with each request; let `identify` "
                   "read it, or add a limit by `client.ip`\n",
                   path, info.name, (int)name.size, name.data);
    }
}

static void print_hints(const char *path, const struct weir_rules *rules)
{
    print_forgeable(path, rules);
    print_fillable(path, rules);
    print_few_keys(path, rules);
    print_hint(path, rules, is_rough_and_small, NULL,
               "sliding_window admits up to twice such a small rate; for exactly so many use "
               "`algorithm: sliding_log` or `strict: true`");
    print_hint(path, rules, is_rough, is_rough_and_small,
               "with `segments: 10`, bursts pass the rate by a few and not by half");
    print_hint(path, rules, is_fixed, NULL,
               "a fixed window of N admits up to 2N around its border, N before it and N after it; "
               "`algorithm: sliding_window` bounds any window");
}

/* What a file may say; returns the status. */
static int print_grammar(const struct validate_options *options)
{
    if (options->keywords) {
        rules_print_keywords(stdout);
        return EXIT_SUCCESS;
    }
    json_t *schema = rules_schema(options->keys_schema, weir_services_have);
    int error = schema ? json_dumpf(schema, stdout, JSON_INDENT(1)) : -1;
    putchar('\n');
    json_decref(schema);
    return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int weir_command_validate(int argc, char **argv)
{
    struct validate_options options = {0};
    int status;
    int first = cli_read_options(&syntax, argc, argv, &options, &status);
    if (first < 0)
        return status;
    if (options.envoy_config && first < argc)
        return cli_usage_error("validate", "--envoy-config takes no other files");
    if (options.envoy_config)
        return cli_finish(
            cli_envoy_check(options.envoy_config, options.merge_domains, options.quiet));
    if (options.schema || options.keys_schema || options.keywords)
        return first < argc ? cli_usage_error("validate", "this option takes no files")
                            : cli_finish(print_grammar(&options));
    if (first == argc)
        return cli_usage_error("validate", "no file was given");
    status = EXIT_SUCCESS;
    for (int i = first; i < argc; i++) {
        struct weir_rules *rules;
        if (options.fix && cli_fix_rules(argv[i]) < 0)
            status = EXIT_FAILURE;
        if (cli_load_rules(&rules, argv[i]) < 0) {
            if (cli_envoy_is_config(argv[i]))
                cli_error("%s: this is a file of Envoy's rate limit service (lyft/ratelimit): "
                          "weir validate --envoy-config DIR checks its folder",
                          argv[i]);
            status = EXIT_FAILURE;
            continue;
        }
        if (options.strict && weir_rules_deprecated(rules) > 0)
            status = EXIT_FAILURE;
        if (check_store(argv[i], rules) < 0 || check_server(argv[i], rules) < 0)
            status = EXIT_FAILURE;
        else if (!options.quiet) {
            print_summary(argv[i], rules);
            print_hints(argv[i], rules);
        }
        weir_rules_unref(rules);
    }
    return cli_finish(status);
}
