/* SPDX-License-Identifier: Apache-2.0 */
/* see xdp.h */
#include "feature/xdp/cli/xdp.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "feature/xdp/cli/commands.h"

#define PINS_DEFAULT "/sys/fs/bpf/weir"

#define AT(field) .at = offsetof(struct xdp_options, field)

static const struct cli_option options_table[] = {
    CLI_OPTION('c', "config", "FILE",
               "the rules file; its section kernel.xdp names the\n"
               "interface and the limits (attach)",
               .kind = CLI_TEXT, AT(config)),
    CLI_OPTION('i', "interface", "NAME", "the interface, instead of the one in the file",
               .kind = CLI_TEXT, AT(interface)),
    CLI_OPTION(0, "dry-run", NULL, "count what would be dropped, and drop nothing (attach)",
               .kind = CLI_FLAG, AT(dry_run)),
    CLI_OPTION(0, "json", NULL, "print JSON (status)", .kind = CLI_FLAG, AT(json)),
    CLI_OPTION('n', "count", "N", "how many sources (10; top)", .kind = CLI_U64, .min = 1,
               .max = 512, AT(count)),
    CLI_OPTION(0, "interval", "SECONDS", "(2; top)", .kind = CLI_U64, .min = 1, .max = 86400,
               AT(interval_s)),
    CLI_OPTION(0, "once", NULL, "print once and exit (top)", .kind = CLI_FLAG, AT(once)),
    CLI_OPTION(0, "pins", "DIR",
               "where the filter is pinned, on a bpf file system\n"
               "(" PINS_DEFAULT ")",
               .kind = CLI_TEXT, AT(pins)),
};

static const struct cli_syntax syntax = {
    .command = "xdp",
    .usage = "Usage: weir xdp attach --config=FILE [OPTION]...\n"
             "  or:  weir xdp status [--interface=NAME | --config=FILE] [OPTION]...\n"
             "  or:  weir xdp top [--interface=NAME | --config=FILE] [OPTION]...\n"
             "  or:  weir xdp detach [--interface=NAME | --config=FILE] [OPTION]...\n"
             "Limit packets by their source in the kernel, before they reach any program.\n",
    .notes = "attach puts the filter onto an interface, or replaces the one that is there in one "
             "step;\nit keeps what sources have used. The filter stays until detach, also without "
             "weir.\n",
    .options = options_table,
    .count = sizeof options_table / sizeof *options_table,
    .takes_arguments = true,
};

#ifdef WEIR_WITH_XDP
static int run(const char *name, const struct xdp_options *options)
{
    static const struct {
        const char *name;
        int (*run)(const struct xdp_options *options);
    } commands[] = {
        {"attach", xdp_attach}, {"detach", xdp_detach}, {"status", xdp_status}, {"top", xdp_top}};

    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(name, commands[i].name))
            return commands[i].run(options);
    return cli_usage_error("xdp", "unknown command '%s'", name);
}
#else
static int run(const char *name, const struct xdp_options *options)
{
    (void)name;
    (void)options;
    cli_error("this weir was built without the filter for packets: build it where clang and libbpf "
              "(libbpf-dev) are installed");
    return EXIT_FAILURE;
}
#endif

int weir_command_xdp(int argc, char **argv)
{
    struct xdp_options options = {.pins = PINS_DEFAULT, .count = 10, .interval_s = 2};
    int status;
    int first = cli_read_options(&syntax, argc, argv, &options, &status);

    if (first < 0)
        return status;
    if (argc - first != 1)
        return cli_usage_error("xdp", "name one of attach, status, top and detach");
    return run(argv[first], &options);
}
