/* SPDX-License-Identifier: Apache-2.0 */
/* see reload.h */
#include "cli/reload/reload.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/admin_access.h"
#include "cli/reload/pid_file.h"
#include "server/text/durations.h"

#define POLL_MS 50
#define POLLS_MAX (120 * 1000 / POLL_MS) /* a file of the largest size takes seconds */

struct reload_options {
    struct admin_access access;
    const char *pid_file;
};

#define AT(field) .at = offsetof(struct reload_options, field)

static const struct cli_option options_table[] = {
    ADMIN_ACCESS_OPTIONS(offsetof(struct reload_options, access)),
    CLI_OPTION(0, "pid-file", "PATH", "the pid file of the server, in place of its listener",
               .kind = CLI_TEXT, AT(pid_file)),
};

static const struct cli_syntax syntax = {
    .command = "reload",
    .usage = "Usage: weir reload [OPTION]...\n"
             "Have a running server read its rules file again. Counts are kept; a file with errors "
             "changes\n"
             "nothing.\n",
    .notes = "Over the admin listener it waits, and prints the errors of the file. That needs the "
             "token,\nor a Unix socket. With --pid-file it sends SIGHUP to the server alone; the "
             "log says how it went.\n",
    .options = options_table,
    .count = sizeof options_table / sizeof *options_table,
};

/* --- By the pid file -------------------------------------------------------------------------- */

static int by_pid_file(const char *path)
{
    struct weir_reason reason = {{0}};
    pid_t server;
    if (cli_pid_file_holder(path, &server, &reason) < 0) {
        cli_error("%s", reason.text);
        return EXIT_FAILURE;
    }
    if (kill(server, SIGHUP) < 0) {
        cli_error("process %ld: %s", (long)server, strerror(errno));
        return EXIT_FAILURE;
    }
    printf("process %ld reads its rules again; its log says how that went\n", (long)server);
    return cli_finish(EXIT_SUCCESS);
}

/* --- By the admin listener -------------------------------------------------------------------- */

static json_int_t number_of(const json_t *json, const char *name)
{
    return json_integer_value(json_object_get(json, name));
}

static int look(struct admin_client *client, json_t **rules, struct weir_reason *reason)
{
    return admin_client_call(client, "GET", "/v1/rules", NULL, 0, NULL, rules, reason);
}

/* Prints how a reload went. Returns 0, or WEIR_ERR_SYNTAX where the file has errors. */
static int print_result(const json_t *rules, bool failed, struct weir_reason *reason)
{
    char text[WEIR_DURATION_MAX];
    const char *errors = json_string_value(json_object_get(rules, "errors"));
    const char *file = json_string_value(json_object_get(rules, "file"));
    if (failed) {
        fflush(stdout);
        fputs(errors ? errors : "", stderr);
        snprintf(reason->text, sizeof reason->text, "the rules before stay in use");
        return WEIR_ERR_SYNTAX;
    }
    printf("%s: %" JSON_INTEGER_FORMAT " %s in use; it took %s\n", file ? file : "the environment",
           number_of(rules, "limits"), number_of(rules, "limits") == 1 ? "limit is" : "limits are",
           weir_duration(text, (uint64_t)number_of(rules, "took_ms")));
    return 0;
}

/* Wants a reload, and waits until it is done. */
static int reload(struct admin_client *client, void *context, struct weir_reason *reason)
{
    json_t *before, *now = NULL, *wanted = NULL;
    int err = look(client, &before, reason);
    if (err == 0)
        err = admin_client_call(client, "POST", "/v1/rules/reload", NULL, 0, NULL, &wanted, reason);
    json_decref(wanted);
    bool done = false, failed = false;
    for (unsigned i = 0; i < POLLS_MAX && err == 0 && !done; i++) {
        nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
        json_decref(now);
        err = look(client, &now, reason);
        failed = number_of(now, "failed_reloads") > number_of(before, "failed_reloads");
        done = failed || number_of(now, "reloads") > number_of(before, "reloads");
    }
    if (err == 0 && !done) {
        snprintf(reason->text, sizeof reason->text, "the server has not read its rules yet");
        err = WEIR_ERR_DEADLINE;
    } else if (err == 0) {
        err = print_result(now, failed, reason);
    }
    json_decref(before);
    json_decref(now);
    return err;
}

int weir_command_reload(int argc, char **argv)
{
    struct reload_options options = {.access = admin_access_default()};
    int status;
    if (cli_read_options(&syntax, argc, argv, &options, &status) < 0)
        return status;
    if (options.pid_file)
        return by_pid_file(options.pid_file);
    return cli_finish(admin_access_call(&options.access, reload, NULL));
}
