/* SPDX-License-Identifier: Apache-2.0 */
/* see doctor.h */
#include "cli/doctor/doctor.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/addresses.h"
#include "cli/doctor/files.h"
#include "cli/doctor/findings.h"
#include "cli/doctor/machine.h"
#include "cli/doctor/peers.h"
#include "cli/doctor/redis.h"
#include "cli/doctor/running.h"
#include "cli/doctor/sharing.h"
#include "cli/options.h"
#include "cli/times.h"
#include "server/daemon/clock.h"
#include "server/daemon/server.h"
#include "server/daemon/services/list.h"

#define EXIT_WARNINGS 3   /* only warnings were found */
#define PROBLEMS_SHOWN 20 /* of a rules file; `weir validate` shows all */

struct doctor_options {
    const char *config;
    bool json, utc;
};

#define AT(field) .at = offsetof(struct doctor_options, field)

static const struct cli_option options_table[] = {
    CLI_OPTION('c', "config", "FILE", "rules file; without one only the machine is examined",
               .kind = CLI_TEXT, AT(config)),
    CLI_OPTION(0, "json", NULL, "print one JSON object", .kind = CLI_FLAG, AT(json)),
    CLI_UTC_OPTION(offsetof(struct doctor_options, utc)),
};

static const struct cli_syntax syntax = {
    .command = "doctor",
    .usage = "Usage: weir doctor [OPTION]...\n"
             "Look for what would keep the server from starting or from deciding well, and say how "
             "to\n"
             "fix it: rules, addresses, permissions, open files, memory, Redis, other nodes, "
             "kernel,\n"
             "clock. Run it as the user of the service.\n",
    .notes = "Exit status: 0 without findings, 1 with an error, 3 with warnings only.\n",
    .options = options_table,
    .count = sizeof options_table / sizeof *options_table,
};

static const char fix_rules[] =
    "correct the line; `weir validate FILE` shows all problems, `man weir.yaml` all keys";

static const char fix_deprecated[] =
    "correct the line before the version that refuses it; `weir validate --fix FILE` does what can "
    "be done by itself";

/* NULL: there are none, and the findings say why. */
static struct weir_rules *load(struct findings *findings, const char *path)
{
    struct weir_problems problems = {.has = weir_services_have};
    struct weir_rules *rules = NULL;
    int error = weir_rules_load(&rules, path, &problems);
    for (uint32_t i = 0; i < problems.count && i < PROBLEMS_SHOWN; i++) {
        const struct weir_problem *problem = &problems.list[i];
        if (problem->refused_from)
            findings_add(findings, FINDING_WARNING, "rules_deprecated", fix_deprecated,
                         "%s:%u:%u: %s", problem->file, problem->line, problem->column,
                         problem->message);
        else if (problem->line > 0)
            findings_add(findings, FINDING_ERROR, "rules", fix_rules, "%s:%u:%u: %s", problem->file,
                         problem->line, problem->column, problem->message);
        else
            findings_add(findings, FINDING_ERROR, "rules", fix_rules, "%s: %s", problem->file,
                         problem->message);
    }
    if (error < 0 && problems.count == 0)
        findings_add(findings, FINDING_ERROR, "rules", fix_rules, "%s: %s", path,
                     weir_error_text(error));
    weir_problems_free(&problems);
    return rules;
}

/* What `weir validate` would refuse beyond the rules. */
static void check_server(struct findings *findings, struct weir_rules *rules)
{
    struct weir_reason reason;
    int error = weir_server_check(rules, &reason);
    const char *text = reason.text[0] ? reason.text : weir_error_text(error);
    if (error == 0)
        return;
    if (error == WEIR_ERR_DAMAGED || error == WEIR_ERR_FORMAT)
        findings_add(findings, FINDING_ERROR, "state_damaged",
                     "restore a copy of the file, or start once with --reset-state, which forgets "
                     "all counts",
                     "%s", text);
    else if (!strncmp(text, "state", 5))
        findings_add(findings, FINDING_ERROR, "state_size",
                     "raise state.size as the text says, or remove limits", "%s", text);
    else
        findings_add(findings, FINDING_ERROR, "settings",
                     "correct the setting, or the file that it names", "%s", text);
}

static void check_few_keys(struct findings *findings, const struct weir_rules *rules)
{
    struct weir_few_keys few;
    if (weir_server_few_keys(rules, &few) < 0)
        return; /* check_server has said why */
    for (uint32_t i = 0; i < few.listed; i++) {
        char text[WEIR_FEW_KEYS_TEXT_MAX];
        weir_few_keys_text(&few, i, text);
        findings_add(findings, FINDING_WARNING, "few_keys",
                     "raise state.size or state.spans (docs/state.md)", "limit %s: %s",
                     few.list[i].name, text);
    }
}

static void examine(struct findings *findings, const char *config)
{
    struct machine_facts facts;
    struct machine_wants wants;
    struct weir_rules *rules = config ? load(findings, config) : NULL;
    bool known = rules || !config; /* of rules with problems, nothing is known */
    machine_read(&facts);
    machine_want(&wants, rules);
    machine_judge(findings, &facts, &wants);
    if (known)
        addresses_judge(findings, rules);
    if (!rules)
        return;
    check_server(findings, rules);
    check_few_keys(findings, rules);
    files_judge(findings, config, rules, weir_clock_wall_s());
    sharing_judge(findings, rules);
    redis_examine(findings, rules);
    peers_examine(findings, rules);
    running_examine(findings, rules);
    weir_rules_unref(rules);
}

int weir_command_doctor(int argc, char **argv)
{
    struct doctor_options options = {0};
    int status;
    if (cli_read_options(&syntax, argc, argv, &options, &status) < 0)
        return status;
    cli_time_choose(options.utc);
    struct findings *findings = calloc(1, sizeof *findings);
    if (!findings) {
        cli_error("%s", weir_error_text(WEIR_ERR_MEMORY));
        return EXIT_FAILURE;
    }
    signal(SIGPIPE, SIG_IGN); /* a Redis that closes is a finding */
    examine(findings, options.config);
    status = findings->errors > 0     ? EXIT_FAILURE
             : findings->warnings > 0 ? EXIT_WARNINGS
                                      : EXIT_SUCCESS;
    if (!options.json)
        findings_print(findings, options.config);
    else if (!findings_print_json(findings, options.config))
        status = EXIT_FAILURE;
    free(findings);
    return cli_finish(status);
}
