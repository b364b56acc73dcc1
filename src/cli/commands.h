/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of `weir`: one file each, found through the table in main.c.
 *
 * A command parses its own options with getopt_long, prints its answer to stdout and its errors to
 * stderr as "weir: …", and returns the exit status: 0, 1 for an error, WEIR_EXIT_USAGE for a wrong
 * command line. argv[0] is "weir", whatever the program was called as.
 */
#ifndef WEIR_CLI_COMMANDS_H
#define WEIR_CLI_COMMANDS_H

#define WEIR_EXIT_USAGE 2

struct weir_command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
};

int weir_command_serve(int argc, char **argv);
int weir_command_validate(int argc, char **argv);
int weir_command_replay(int argc, char **argv);
int weir_command_explain(int argc, char **argv);
int weir_command_envoy(int argc, char **argv);
int weir_command_bench(int argc, char **argv);
int weir_command_top(int argc, char **argv);
int weir_command_grant(int argc, char **argv);
int weir_command_version(int argc, char **argv);

#endif
