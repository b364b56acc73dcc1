/* SPDX-License-Identifier: Apache-2.0 */
/* see rules_file.h */
#include "cli/rules_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options.h"
#include "server/daemon/services/list.h"

#define LINE_SHOWN 160 /* bytes of a line; one whose place lies behind them is not shown */

/* Reads a line of a file, without its end. False: there is none, or it is not a plain file. */
static bool read_line(const char *path, uint32_t number, char *line, size_t room)
{
    struct stat status;
    FILE *file = stat(path, &status) == 0 && S_ISREG(status.st_mode) ? fopen(path, "r") : NULL;
    bool found = file != NULL;
    size_t size = 0;
    char *text = NULL;
    for (uint32_t i = 0; i < number && found; i++)
        found = getline(&text, &size, file) >= 0;
    if (found) {
        text[strcspn(text, "\r\n")] = '\0';
        snprintf(line, room, "%s", text);
    }
    free(text);
    if (file)
        fclose(file);
    return found;
}

/* At a terminal: the line that a problem is in, and a caret below its place. Lines with other bytes
 * than printable ASCII and tabs are left out: their columns are not places on a screen. */
static void print_place(const struct weir_problem *problem)
{
    const char *no_colour = getenv("NO_COLOR");
    bool colour = !(no_colour && *no_colour);
    char line[LINE_SHOWN + 1];
    if (problem->column == 0 || !read_line(problem->file, problem->line, line, sizeof line) ||
        problem->column > strlen(line) + 1)
        return;
    for (const char *c = line; *c; c++)
        if ((*c < 0x20 && *c != '\t') || *c >= 0x7f)
            return;
    fprintf(stderr, "    %s\n    ", line);
    for (uint32_t i = 0; i + 1 < problem->column; i++)
        fputc(line[i] == '\t' ? '\t' : ' ', stderr);
    fputs(colour ? "\033[1;31m^\033[0m\n" : "^\n", stderr);
}

static void print_problem(const struct weir_problem *problem)
{
    if (problem->line == 0)
        cli_error("%s: %s", problem->file, problem->message);
    else
        fprintf(stderr, "%s:%" PRIu32 ":%" PRIu32 ": %s\n", problem->file, problem->line,
                problem->column, problem->message);
    if (problem->line > 0 && isatty(STDERR_FILENO))
        print_place(problem); /* programs read one line a problem */
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
    struct weir_problems problems = {.has = weir_services_have};
    int error = weir_rules_load(rules, path, &problems);
    cli_print_problems(path, &problems);
    if (error < 0 && problems.count == 0)
        cli_error("%s: %s", path, weir_error_text(error));
    weir_problems_free(&problems);
    return error;
}
