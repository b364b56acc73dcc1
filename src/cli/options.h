/* SPDX-License-Identifier: Apache-2.0 */
/* What all subcommands share: their command lines, and how they speak to the user and end.
 *
 * The manner is that of GNU tools. `--help` goes to stdout and ends with 0; a usage error goes to
 * stderr with a pointer to --help and ends with 2; a failure is one line `weir: …` on stderr and
 * ends with 1. What a command prints is its result, so that an output that cannot be written (a
 * full disk, a closed pipe) is a failure too.
 *
 * A command describes its options in one table (struct cli_option). cli_read_options reads the
 * command line by it into a struct of the command's own, and makes `--help` from it. `--help=tsv`
 * prints the same table for the programs that make manual pages and completions: a line an entry,
 * fields separated by tabs (`usage TEXT`, `heading TEXT`, `option LETTER NAME VALUE HELP`,
 * `notes TEXT`), with \n, \t and \\ in texts.
 *
 * Threads: the main thread only; the output streams belong to the process.
 */
#ifndef WEIR_CLI_OPTIONS_H
#define WEIR_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/error.h>

#define WEIR_EXIT_USAGE 2

/* Prints "weir: …" and a newline on stderr, after what is buffered for stdout. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As cli_error for a wrong use of `command` ("replay"; NULL: weir itself), then "Try 'weir replay
 * --help' for more information.". Returns WEIR_EXIT_USAGE. */
int cli_usage_error(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

enum cli_kind {
    CLI_FLAG,    /* bool, becomes true; the option takes no value */
    CLI_TEXT,    /* const char *, points into the command line */
    CLI_U32,     /* uint32_t, from min to max */
    CLI_U64,     /* uint64_t, likewise */
    CLI_AUTO,    /* uint32_t, likewise, or 0 for 'auto' */
    CLI_SIZE,    /* uint64_t, bytes, as cli_parse_size */
    CLI_SECONDS, /* uint64_t, in nanoseconds; 0 only if min is 0 */
    CLI_TAKEN,   /* what `take` makes of the value */
};

struct cli_option {
    const char *name;  /* NULL: `help` is a heading in the help text */
    const char *value; /* as --help shows the value */
    const char *help;  /* further lines after '\n' */
    char letter;       /* 0: none */
    enum cli_kind kind;
    size_t at; /* offset of its field in the command's struct */
    uint64_t min, max;
    /* Takes a value into the field. False: it is wrong, for the reason given. */
    bool (*take)(void *field, char *value, struct weir_reason *reason);
};

/* `letter` and `value` may be 0 and NULL; then come the other members. */
#define CLI_OPTION(letter_, name_, value_, help_, ...)                                             \
    {                                                                                              \
        .letter = letter_, .name = name_, .value = value_, .help = help_, __VA_ARGS__              \
    }
#define CLI_HEADING(text_)                                                                         \
    {                                                                                              \
        .help = (text_)                                                                            \
    }

struct cli_syntax {
    const char *command;
    const char *usage;                /* the first lines of --help, up to the options */
    const char *notes;                /* the last lines of --help; NULL: none */
    const struct cli_option *options; /* at most CLI_OPTIONS_MAX; --help is added to them */
    size_t count;
    bool takes_arguments; /* else an argument that is no option is an error */
};
#define CLI_OPTIONS_MAX 40

/* Reads a command line into `fields`. Returns the index of the first argument that is no option,
 * behind which only such are. -1: the command ends with *status, after its help or an error. */
int cli_read_options(const struct cli_syntax *syntax, int argc, char **argv, void *fields,
                     int *status) __attribute__((warn_unused_result));

/* Appends "WANTED, not 'VALUE'" to a reason. Returns false. */
bool cli_refuse(struct weir_reason *reason, const char *wanted, const char *value);

/* Prints one line of such a table. NULL is an empty field. */
void cli_print_fields(const char *const *fields, size_t count);

/* Ends a command's output: `status`, or EXIT_FAILURE with a message when stdout could not be
 * written. */
int cli_finish(int status);

/* "4096", "64KiB", "64MiB", "1GiB", "64K", "64M", "1G": bytes. False when malformed or beyond 64
 * bits. */
bool cli_parse_size(const char *text, uint64_t *bytes);

/* A decimal number of 0..max and nothing else. */
bool cli_parse_count(const char *text, uint64_t max, uint64_t *count);

/* A decimal number up to `max`, above 0 or, with `zero`, from 0 on. */
bool cli_parse_number(const char *text, bool zero, double max, double *number);

#endif
