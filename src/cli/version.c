/* SPDX-License-Identifier: Apache-2.0 */
/* `weir version`: which weir this is. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/options.h"

static const char help[] = "Usage: weir version [OPTION]\n"
                           "Print the version.\n"
                           "\n"
                           "  -h, --help              print this and exit\n";

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

int weir_command_version(int argc, char **argv)
{
    int option = getopt_long(argc, argv, "h", long_options, NULL);
    if (option == 'h')
        return cli_help(help);
    if (option != -1)
        return cli_try_help("version");
    if (optind < argc)
        return cli_usage_error("version", "unexpected argument '%s'", argv[optind]);
    puts("weir " WEIR_VERSION);
    return cli_finish(EXIT_SUCCESS);
}
