/* weir: finds the subcommand and runs it. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"

static int command_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("weir " WEIR_VERSION);
    return 0;
}

/* In the order that --help shows them. */
static const struct weir_command commands[] = {
    {"serve", "run the server", weir_command_serve},
    {"version", "print the version", command_version},
};

static void print_usage(FILE *out)
{
    fputs("Usage: weir COMMAND [OPTION]...\n"
          "A rate limiter: exact algorithms, one rules file, many front ends.\n\n"
          "Commands:\n",
          out);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("\n'weir COMMAND --help' tells more.\n", out);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return WEIR_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        print_usage(stdout);
        return 0;
    }
    if (!strcmp(name, "--version") || !strcmp(name, "-V"))
        name = "version";
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (!strcmp(name, commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    }
    fprintf(stderr, "weir: unknown command '%s'\nTry 'weir --help'.\n", name);
    return WEIR_EXIT_USAGE;
}
