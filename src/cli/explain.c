/* SPDX-License-Identifier: Apache-2.0 */
/* see explain.h */
#include "cli/explain.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/explain/names.h"
#include "cli/options.h"
#include "cli/rules_file.h"
#include "cli/times.h"
#include "core/bytes.h"
#include "core/text/reason.h"
#include "engine/engine.h"
#include "engine/open.h"
#include "feature/standing/cli/standing_map.h"
#include "server/daemon/clock.h"
#include "server/daemon/limits.h"
#include "server/explain/caller.h"
#include "server/explain/limits.h"
#include "table/table.h"
#include "wire/json/check.h"

struct explain_options {
    const char *config;
    const char *state;            /* a state file to peek into; NULL: fresh states */
    struct weir_check_json check; /* the request; its values are borrowed */
    const char *cost;
    char *json;
    bool names, exit_code, utc;
};

struct explain {
    const struct explain_options *options;
    struct weir_rules *rules;
    struct weir_standing *standing; /* what callers have; NULL: all are good */
    struct weir_table *table;
    struct weir_store *store;
    struct weir_engine *engine;
    struct weir_explained *explained;
    bool decided, denied;
};

static int fail(const char *what, int error, const struct weir_reason *reason)
{
    const char *text = reason->text[0] != '\0' ? reason->text : weir_error_text(error);
    if (what)
        cli_error("%s: %s", what, text);
    else
        cli_error("%s", text);
    return -1;
}

/* Opens the table: the given state file as large as it is, or fresh private memory. */
static int open_table(struct explain *explain)
{
    struct weir_table_options options = {.wall_ns = weir_clock_wall_ns(),
                                         .boot_ns = weir_clock_boot_ns(),
                                         .patience_ns = WEIR_STATE_PATIENCE_NS};
    const char *path = explain->options->state;
    struct stat file;
    if (path) {
        if (stat(path, &file) < 0) { /* explaining makes no state file */
            cli_error("%s: %s", path, strerror(errno));
            return -1;
        }
        if (!S_ISREG(file.st_mode) || (uint64_t)file.st_size < WEIR_TABLE_BYTES_MIN) {
            cli_error("%s: not a state file of weir", path);
            return -1;
        }
        options.path = path;
        options.bytes = (uint64_t)file.st_size;
    }
    struct weir_reason reason = {{0}};
    int error = weir_table_open(&explain->table, &options, &reason);
    return error < 0 ? fail(path, error, &reason) : 0;
}

static int prepare_limit(void *context, struct weir_limit *limit, const char *name)
{
    struct weir_store *store = context;
    struct weir_reason reason;
    return store->ops->prepare(store, limit, &reason);
}

static void take_decision(void *context, struct weir_decision *decision)
{
    struct explain *explain = context;
    explain->decided = true;
}

static uint64_t table_clock(void *context)
{
    return weir_table_time(context, weir_clock_boot_ns());
}

/* NULL: the rules keep no callers in Redis. */
static struct weir_directory *directory_of(struct explain *explain)
{
    return weir_rules_settings(explain->rules)->identities.redis.url
               ? &explain->explained->looked_up.base
               : NULL;
}

static int open_engine(struct explain *explain)
{
    struct weir_reason none = {{0}};
    int error = weir_store_embedded_open(&explain->store, explain->table);
    if (error == 0)
        error = weir_rules_prepare(explain->rules, prepare_limit, explain->store);
    if (error == 0) {
        struct weir_engine_options options = {.store = explain->store,
                                              .rules = explain->rules,
                                              .directory = directory_of(explain),
                                              .standing = explain->standing,
                                              .secret = weir_table_secret(explain->table),
                                              .decisions = 1 + WEIR_CHECKS_MAX, /* and candidates */
                                              .done = take_decision,
                                              .done_context = explain,
                                              .clock = table_clock,
                                              .clock_context = explain->table,
                                              .text_keys = true};
        error = weir_engine_open(&explain->engine, &options);
    }
    return error < 0 ? fail(explain->options->state, error, &none) : 0;
}

/* Has the engine decide without charging. */
static void peek(struct explain *explain, struct weir_decision *decision, uint64_t now_ns)
{
    decision->op = WEIR_OP_PEEK;
    weir_engine_queue(explain->engine, decision);
    weir_engine_run(explain->engine, now_ns);
}

static int peek_request(struct explain *explain)
{
    struct weir_reason reason = {{0}};
    struct weir_decision *decision = weir_engine_take(explain->engine);
    if (!decision)
        return fail(NULL, WEIR_ERR_MEMORY, &reason);
    int error =
        weir_engine_apply_rules(explain->engine, decision, &explain->explained->request, &reason);
    if (error < 0)
        return fail("request", error, &reason);
    peek(explain, decision, weir_table_time(explain->table, weir_clock_boot_ns()));
    if (!explain->decided)
        return fail(NULL, WEIR_ERR_STORE, &reason);
    explain->explained->decision = decision;
    if (decision->error == 0)
        return 0;
    snprintf(reason.text, sizeof reason.text,
             "a process that shares the file is stopped and keeps this request's state locked: let "
             "it go on (SIGCONT) or end it");
    return fail(explain->options->state, decision->error, &reason);
}

static int match(struct explain *explain)
{
    struct weir_reason reason = {{0}};
    const struct weir_explained_with with = {
        .secret = weir_table_secret(explain->table),
        .map = explain->standing,
        .now_ns = weir_table_time(explain->table, weir_clock_boot_ns()),
    };
    int count = weir_explained_match(explain->explained, &with, &reason);
    return count < 0 ? fail("request", count, &reason) : count;
}

static void peek_candidates(struct explain *explain, int count)
{
    struct weir_explained *explained = explain->explained;
    struct weir_decision *decision;
    for (int i = 0; i < count && (decision = weir_engine_take(explain->engine)); i++) {
        if (weir_engine_apply_candidate(decision, explained->decision, &explained->checks[i])) {
            peek(explain, decision, explained->decision->now_ns);
            explained->candidates[i] = decision;
        } else {
            weir_engine_release(explain->engine, decision);
        }
    }
}

/* Explains the matching, and peeks at the states. */
static int evaluate(struct explain *explain)
{
    if (peek_request(explain) < 0)
        return -1;
    int count = match(explain);
    if (count < 0)
        return -1;
    peek_candidates(explain, count);
    return 0;
}

static void print_answer(struct explain *explain)
{
    struct weir_explained *explained = explain->explained;
    explained->to =
        (struct weir_print){.out = stdout, .utf8 = weir_print_utf8(), .utc = explain->options->utc};
    weir_explain_caller(explained);
    for (uint32_t i = 0; i < weir_rules_count(explain->rules); i++)
        weir_explain_limit(explained, i);
    weir_explain_strikes(explained);
    weir_explain_verdict(explained);
    explain->denied = weir_explained_denied(explained);
}

static void close_explain(struct explain *explain)
{
    if (explain->engine)
        weir_engine_close(explain->engine);
    if (explain->store)
        explain->store->ops->close(explain->store);
    if (explain->table)
        weir_table_close(explain->table);
    weir_standing_close(explain->standing);
    weir_explained_close(explain->explained);
    weir_rules_unref(explain->rules);
    free(explain);
}

static int explain_request(struct explain *explain)
{
    struct weir_reason reason = {{0}};
    if (cli_load_rules(&explain->rules, explain->options->config) < 0)
        return -1;
    int error =
        weir_explained_open(&explain->explained, explain->rules, &explain->options->check, &reason);
    if (error < 0)
        return fail(error == WEIR_ERR_MEMORY ? NULL : "request", error, &reason);
    if (cli_standing_open(&explain->standing, explain->rules, true) < 0)
        return -1;
    if (open_table(explain) < 0 || open_engine(explain) < 0 || evaluate(explain) < 0)
        return -1;
    print_answer(explain);
    return 0;
}

static int run(const struct explain_options *options)
{
    struct explain *explain = calloc(1, sizeof *explain);
    if (!explain) {
        cli_error("%s", weir_error_text(WEIR_ERR_MEMORY));
        return EXIT_FAILURE;
    }
    explain->options = options;
    int result = explain_request(explain);
    bool denied = options->exit_code && explain->denied;
    close_explain(explain);
    return cli_finish(result < 0 || denied ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* --- The command line ---------------------------------------------------------------------------
 */

/* Cuts "name<mark>value". */
static bool cut_pair(const char *text, char mark, struct weir_check_pair *pair)
{
    const char *at = strchr(text, mark);
    if (!at || at == text)
        return false;
    pair->name = (struct weir_bytes){text, (size_t)(at - text)};
    pair->value = weir_bytes_of(at + 1);
    return true;
}

static bool full(struct weir_reason *reason)
{
    reason_text(reason, "at most ");
    reason_number(reason, WEIR_CHECK_JSON_PAIRS_MAX);
    reason_text(reason, " of them");
    return false;
}

static bool take_header(void *field, char *value, struct weir_reason *reason)
{
    struct weir_check_json *check = field;
    struct weir_check_pair pair;
    if (!cut_pair(value, ':', &pair))
        return cli_refuse(reason, "'NAME: VALUE'", value);
    if (check->header_count == WEIR_CHECK_JSON_PAIRS_MAX)
        return full(reason);
    while (pair.value.size > 0 && (*pair.value.data == ' ' || *pair.value.data == '\t')) {
        pair.value.data++;
        pair.value.size--;
    }
    check->headers[check->header_count++] = pair;
    check->has_headers = true;
    return true;
}

static bool take_attribute(void *field, char *value, struct weir_reason *reason)
{
    struct weir_check_json *check = field;
    struct weir_check_pair pair;
    if (!cut_pair(value, '=', &pair))
        return cli_refuse(reason, "'NAME=VALUE'", value);
    if (check->attribute_count == WEIR_CHECK_JSON_PAIRS_MAX)
        return full(reason);
    check->attributes[check->attribute_count++] = pair;
    return true;
}

static bool take_bytes(void *field, char *value, struct weir_reason *reason)
{
    (void)reason;
    *(struct weir_bytes *)field = weir_bytes_of(value);
    return true;
}

#define AT(field) .at = offsetof(struct explain_options, field)

static const struct cli_option options_table[] = {
    CLI_OPTION('c', "config", "FILE", "the rules file", .kind = CLI_TEXT, AT(config)),
    CLI_OPTION('m', "method", "METHOD", "parts of the request", .kind = CLI_TAKEN,
               .take = take_bytes, AT(check.method)),
    CLI_OPTION('p', "path", "PATH", "", .kind = CLI_TAKEN, .take = take_bytes, AT(check.path)),
    CLI_OPTION(0, "host", "HOST", "", .kind = CLI_TAKEN, .take = take_bytes, AT(check.host)),
    CLI_OPTION(0, "ip", "ADDRESS", "", .kind = CLI_TAKEN, .take = take_bytes, AT(check.ip)),
    CLI_OPTION('H', "header", "'N: VALUE'", "a header; may be given again", .kind = CLI_TAKEN,
               .take = take_header, AT(check)),
    CLI_OPTION('a', "attribute", "N=VALUE",
               "any other attribute, as user=alice; may be given again", .kind = CLI_TAKEN,
               .take = take_attribute, AT(check)),
    CLI_OPTION(0, "cost", "N", "(1)", .kind = CLI_TEXT, AT(cost)),
    CLI_OPTION('j', "json", "REQUEST", "the request as for /v1/check, instead of the options above",
               .kind = CLI_TEXT, AT(json)),
    CLI_OPTION('s', "state", "FILE",
               "look into this state file, which a server may be using (without\n"
               "it, states are fresh)",
               .kind = CLI_TEXT, AT(state)),
    CLI_OPTION(0, "names", NULL, "list the attributes that every file has, instead",
               .kind = CLI_FLAG, AT(names)),
    CLI_UTC_OPTION(offsetof(struct explain_options, utc)),
    CLI_OPTION(0, "exit-code", NULL, "end with status 1 if the request is denied", .kind = CLI_FLAG,
               AT(exit_code)),
};

static const struct cli_syntax syntax = {
    .command = "explain",
    .usage = "Usage: weir explain --config=FILE [OPTION]...\n"
             "Show which limits a request meets, with which keys, why the others do not apply, and "
             "what\n"
             "they would decide now. Nothing is charged.\n",
    .options = options_table,
    .count = sizeof options_table / sizeof *options_table,
};

/* Whether an option gave a part of the request. */
static bool has_parts(const struct explain_options *options)
{
    const struct weir_check_json *check = &options->check;
    return check->method.data || check->path.data || check->host.data || check->ip.data ||
           check->header_count > 0 || check->attribute_count > 0 || options->cost;
}

/* `text` is an argument of ours, which may be written to. Returns 0 or the exit status. */
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

int weir_command_explain(int argc, char **argv)
{
    static struct explain_options options; /* large for the stack */
    int status;
    options.check.cost = 1;
    if (cli_read_options(&syntax, argc, argv, &options, &status) < 0)
        return status;
    if (options.names) {
        cli_explain_names();
        return cli_finish(EXIT_SUCCESS);
    }
    if (!options.config)
        return cli_usage_error("explain", "--config is required");
    if (options.json && has_parts(&options))
        return cli_usage_error("explain", "--json is the whole request: give no other part of it");
    if (options.cost && !cli_parse_count(options.cost, UINT64_MAX, &options.check.cost))
        return cli_usage_error("explain", "--cost: a number, not '%s'", options.cost);
    if (options.json && (status = parse_json(&options.check, options.json)) != 0)
        return status;
    return run(&options);
}
