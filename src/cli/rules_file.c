/* SPDX-License-Identifier: Apache-2.0 */
/* see rules_file.h */
#include "cli/rules_file.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/options.h"

static void print_problem(const struct weir_problem *problem)
{
    if (problem->line == 0)
        cli_error("%s: %s", problem->file, problem->message);
    else
        fprintf(stderr, "%s:%" PRIu32 ":%" PRIu32 ": %s\n", problem->file, problem->line,
                problem->column, problem->message);
}

void cli_print_problems(const char *path, const struct weir_problems *problems)
{
    fflush(stdout);
    for (uint32_t i = 0; i < problems->count; i++)
        print_problem(&problems->list[i]);
    if (problems->dropped > 0)
        cli_error("%s: %" PRIu32 " more problems", path, problems->dropped);
}

int cli_load_rules(struct weir_rules **rules, const char *path)
{
    struct weir_problems problems = {0};
    int error = weir_rules_load(rules, path, &problems);
    cli_print_problems(path, &problems);
    if (error < 0 && problems.count == 0)
        cli_error("%s: %s", path, weir_error_text(error));
    weir_problems_free(&problems);
    return error;
}
