/* `weir validate`: says everything that is wrong with rules files, and nothing else. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/rules_file.h"

static const char help[] =
    "Usage: weir validate [OPTION]... FILE...\n"
    "Check rules files, and the keys files that they name. Every problem is one line on standard\n"
    "error, FILE:LINE:COLUMN: MESSAGE, and makes the exit status 1.\n"
    "\n"
    "  -q, --quiet             print nothing about files without problems\n"
    "  -h, --help              print this and exit\n";

static const struct option long_options[] = {
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

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
    if (store->redis_url != NULL)
        printf(", in Redis: %" PRIu32 " exact, %" PRIu32 " leased", count - leased, leased);
    putchar('\n');
}

int weir_command_validate(int argc, char **argv)
{
    bool quiet = false;
    static char program[] = "weir"; /* what getopt puts before its messages */
    argv[0] = program;
    int option;
    while ((option = getopt_long(argc, argv, "qh", long_options, NULL)) != -1) {
        if (option == 'h')
            return cli_help(help);
        if (option != 'q')
            return cli_try_help("validate");
        quiet = true;
    }
    if (optind == argc)
        return cli_usage_error("validate", "no file was given");
    int status = EXIT_SUCCESS;
    for (int i = optind; i < argc; i++) {
        struct weir_rules *rules;
        if (cli_load_rules(&rules, argv[i]) < 0) {
            status = EXIT_FAILURE;
            continue;
        }
        if (!quiet)
            print_summary(argv[i], rules);
        weir_rules_unref(rules);
    }
    return cli_finish(status);
}
