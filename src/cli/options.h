/* SPDX-License-Identifier: Apache-2.0 */
/* What all subcommands share: how they speak to the user and how they end.
 *
 * The manner is that of GNU tools. `--help` goes to stdout and ends with 0; a usage error goes to
 * stderr with a pointer to --help and ends with 2; a failure is one line `weir: …` on stderr and
 * ends with 1. What a command prints is its result, so that an output that cannot be written (a
 * full disk, a closed pipe) is a failure too.
 *
 * Threads: the main thread only; the output streams belong to the process.
 */
#ifndef WEIR_CLI_OPTIONS_H
#define WEIR_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/commands.h"

/* Prints "weir: …" and a newline on stderr, after what is buffered for stdout. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As cli_error for a wrong use of `command` ("replay"; NULL: weir itself), then "Try 'weir replay
 * --help' for more information.". Returns WEIR_EXIT_USAGE. */
int cli_usage_error(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* After getopt_long has complained by itself: only the pointer to --help. Returns
 * WEIR_EXIT_USAGE. */
int cli_try_help(const char *command);

/* Prints a help text on stdout. Returns what the command exits with. */
int cli_help(const char *text);

/* Ends a command's output: `status`, or EXIT_FAILURE with a message when stdout could not be
 * written. */
int cli_finish(int status);

/* "4096", "64KiB", "64MiB", "1GiB", "64K", "64M", "1G": bytes. False when malformed or beyond 64
 * bits. */
bool cli_parse_size(const char *text, uint64_t *bytes);

/* A decimal number of 0..max and nothing else. */
bool cli_parse_count(const char *text, uint64_t max, uint64_t *count);

/* Prints bytes that came from outside, at most `limit` of them (then "..."), with everything that
 * a terminal could take for a command, or that is not ASCII, as \xNN. */
void cli_print_text(FILE *stream, const char *text, size_t size, size_t limit);

/* The same for the text of a key; the one key of a limit with `key: []` is shown as "[]". */
void cli_print_key(FILE *stream, const char *text, size_t size, size_t limit);

#endif
