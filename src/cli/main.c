/* SPDX-License-Identifier: Apache-2.0 */
/* weir: finds the subcommand and runs it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench.h"
#include "cli/capacity.h"
#include "cli/doctor/doctor.h"
#include "cli/document/document.h"
#include "cli/explain.h"
#include "cli/fetch/fetch.h"
#include "cli/grant.h"
#include "cli/options.h"
#include "cli/reload/reload.h"
#include "cli/replay/command.h"
#include "cli/serve.h"
#include "cli/validate/validate.h"
#include "feature/envoy/cli/check.h"
#include "feature/envoy/cli/envoy.h"
#include "feature/kernel/cli/nft.h"
#include "feature/standing/cli/standing.h"
#include "feature/use/cli/denials.h"
#include "feature/use/cli/top.h"
#include "feature/xdp/cli/xdp.h"
#include "rules/problems.h"

/* A command prints its result to stdout and its errors to stderr as "weir: …". It returns the exit
 * status: 0, 1 for an error, WEIR_EXIT_USAGE for a wrong command line. argv[0] is "weir", whatever
 * the program was called as. */
struct weir_command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
};

static int weir_command_version(int argc, char **argv)
{
    static const struct cli_syntax syntax = {
        .command = "version",
        .usage = "Usage: weir version [OPTION]\n"
                 "Print the version.\n",
    };
    int status;
    if (cli_read_options(&syntax, argc, argv, NULL, &status) < 0)
        return status;
    puts("weir " WEIR_VERSION);
    return cli_finish(EXIT_SUCCESS);
}

/* In the order that --help shows them. */
static const struct weir_command commands[] = {
    {"serve", "run the server", weir_command_serve},
    {"envoy", "run the server in place of envoyproxy/ratelimit", weir_command_envoy},
    {"validate", "check rules files", weir_command_validate},
    {"doctor", "find what is wrong with a set-up, and how to fix it", weir_command_doctor},
    {"capacity", "show for how many keys a state has room", weir_command_capacity},
    {"replay", "run a recorded trace through the rules", weir_command_replay},
    {"explain", "show which limits a request meets, and why", weir_command_explain},
    {"document", "write the limits down for those whom they limit", weir_command_document},
    {"fetch", "fetch URLs and keep to the limits of their servers", weir_command_fetch},
    {"bench", "put load on a server and measure it", weir_command_bench},
    {"top", "watch a running server's limits and most denied keys", weir_command_top},
    {"denials", "show why requests were denied", weir_command_denials},
    {"reload", "have a running server read its rules file again", weir_command_reload},
    {"grant", "top up one key of a running server's limit", weir_command_grant},
    {"ban", "suspend an address or another caller, for a time or for ever", weir_command_ban},
    {"unban", "end what bans and penalties hold against a caller", weir_command_unban},
    {"allow", "exempt a trusted caller", weir_command_allow},
    {"standing", "list, show, set and clear the standing of callers", weir_command_standing},
    {"nft", "print or load the limits of the kernel as rules for nft", weir_command_nft},
    {"xdp", "limit packets in the kernel, before they reach any program", weir_command_xdp},
    {"version", "print the version", weir_command_version},
};
#define COMMANDS (sizeof commands / sizeof *commands)

static void print_usage(FILE *out)
{
    fputs("Usage: weir COMMAND [OPTION]...\n"
          "A rate limiter: exact algorithms, one rules file, many front ends.\n\n"
          "Commands:\n",
          out);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("\n'weir COMMAND --help' shows the options of a command.\n", out);
}

/* The same for programs: see options.h. */
static void print_commands(void)
{
    for (size_t i = 0; i < COMMANDS; i++)
        cli_print_fields((const char *const[]){"command", commands[i].name, commands[i].summary},
                         3);
}

/* Links to this program take the place of the programs of envoyproxy/ratelimit. */
static const struct weir_command other_names[] = {
    {"ratelimit", NULL, weir_command_envoy},
    {"ratelimit_config_check", NULL, weir_command_config_check},
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A socket or the state file must not take the number of a standard file that the caller has
 * closed: what is logged would go there. Opened the wrong way round, so that using it fails as
 * before. */
static void keep_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
            exit(EXIT_FAILURE); /* and nowhere to say so */
}

/* Runs a command. Its command line begins with "weir", which getopt puts before its messages. */
static int run(const struct weir_command *command, int argc, char **argv)
{
    static char program[] = "weir";
    argv[0] = program;
    return command->run(argc, argv);
}

static const struct weir_command *find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(name, commands[i].name))
            return &commands[i];
    return NULL;
}

static int refuse(const char *name)
{
    const char *names[COMMANDS + 1] = {[COMMANDS] = "help"};
    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    const char *near = rules_nearest(name, strlen(name), names, COMMANDS + 1);
    if (near)
        return cli_usage_error(NULL, "unknown command '%s'; did you mean '%s'?", name, near);
    return cli_usage_error(NULL, "unknown command '%s'", name);
}

/* `weir help COMMAND` is `weir COMMAND --help`. */
static int show_help(const char *name)
{
    static char option[] = "--help";
    char *arguments[] = {NULL, option, NULL};
    const struct weir_command *command = find(name);
    return command ? run(command, 2, arguments) : refuse(name);
}

int main(int argc, char **argv)
{
    keep_standard_files();
    for (size_t i = 0; argc > 0 && i < sizeof other_names / sizeof *other_names; i++)
        if (!strcmp(base_name(argv[0]), other_names[i].name))
            return run(&other_names[i], argc, argv);
    if (argc < 2) {
        print_usage(stderr);
        return WEIR_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (!strcmp(name, "help") && argc > 2)
        return show_help(argv[2]);
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        print_usage(stdout);
        return cli_finish(EXIT_SUCCESS);
    }
    if (!strcmp(name, "--help=tsv")) {
        print_commands();
        return cli_finish(EXIT_SUCCESS);
    }
    if (!strcmp(name, "--version") || !strcmp(name, "-V"))
        name = "version";
    const struct weir_command *command = find(name);
    return command ? run(command, argc - 1, argv + 1) : refuse(name);
}
