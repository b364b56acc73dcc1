/* SPDX-License-Identifier: Apache-2.0 */
/* see options.h */
#include "cli/options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/reason.h"

#define HELP_COLUMN 26
#define SECONDS_MAX (366.0 * 86400)
#define NS_PER_S 1e9
#define LONG_OPTION 256 /* getopt_long gives an option this and its index */

static void print_error(const char *format, va_list arguments)
    __attribute__((format(printf, 1, 0)));

static void print_error(const char *format, va_list arguments)
{
    fflush(stdout);
    fputs("weir: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

void cli_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_error(format, arguments);
    va_end(arguments);
}

static int try_help(const char *command)
{
    if (command)
        fprintf(stderr, "Try 'weir %s --help' for more information.\n", command);
    else
        fputs("Try 'weir --help' for more information.\n", stderr);
    return WEIR_EXIT_USAGE;
}

int cli_usage_error(const char *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_error(format, arguments);
    va_end(arguments);
    return try_help(command);
}

int cli_finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "weir: cannot write to standard output: %s\n", strerror(errno));
    return EXIT_FAILURE;
}

bool cli_parse_count(const char *text, uint64_t max, uint64_t *count)
{
    uint64_t value = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        uint64_t digit = (uint64_t)(*text - '0');
        if (digit > max || value > (max - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *count = value;
    return true;
}

bool cli_parse_size(const char *text, uint64_t *bytes)
{
    static const struct {
        const char *suffix;
        unsigned shift;
    } units[] = {{"", 0},     {"K", 10},   {"M", 20},   {"G", 30},  {"T", 40},
                 {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
    char digits[24];
    size_t length = strspn(text, "0123456789");
    if (length >= sizeof digits)
        return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    uint64_t value;
    if (!cli_parse_count(digits, UINT64_MAX, &value))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(text + length, units[i].suffix) != 0)
            continue;
        if (value > UINT64_MAX >> units[i].shift)
            return false;
        *bytes = value << units[i].shift;
        return true;
    }
    return false;
}

/* --- The table of options --------------------------------------------------------------------- */

bool cli_refuse(struct weir_reason *reason, const char *wanted, const char *value)
{
    reason_text(reason, wanted);
    reason_text(reason, ", not '");
    reason_text(reason, value);
    reason_text(reason, "'");
    return false;
}

static bool take_number(const struct cli_option *option, const char *value, uint64_t *number,
                        struct weir_reason *reason)
{
    char wanted[80];
    if (option->kind == CLI_AUTO && strcmp(value, "auto") == 0) {
        *number = 0;
        return true;
    }
    if (cli_parse_count(value, option->max, number) && *number >= option->min)
        return true;
    snprintf(
        wanted, sizeof wanted, option->max >= INT64_MAX ? "%s" : "%s from %" PRIu64 " to %" PRIu64,
        option->kind == CLI_AUTO ? "'auto' or a number" : "a number", option->min, option->max);
    return cli_refuse(reason, wanted, value);
}

static bool take_size(const struct cli_option *option, const char *value, uint64_t *bytes,
                      struct weir_reason *reason)
{
    if (cli_parse_size(value, bytes) && *bytes >= option->min && *bytes <= option->max)
        return true;
    return cli_refuse(reason, "a number of bytes in the range that --help names", value);
}

bool cli_parse_number(const char *text, bool zero, double max, double *number)
{
    char *end;
    if (strspn(text, "0123456789.") != strlen(text) || *text == '\0')
        return false;
    *number = strtod(text, &end);
    return *end == '\0' && *number <= max && (zero ? *number >= 0 : *number > 0);
}

static bool take_seconds(const struct cli_option *option, const char *value, uint64_t *ns,
                         struct weir_reason *reason)
{
    double seconds;
    bool zero = option->min == 0;
    if (!cli_parse_number(value, zero, SECONDS_MAX, &seconds) || (!zero && seconds * NS_PER_S < 1))
        return cli_refuse(reason, "a number of seconds", value);
    *ns = (uint64_t)llround(seconds * NS_PER_S);
    return true;
}

static bool take_value(const struct cli_option *option, char *value, char *fields,
                       struct weir_reason *reason)
{
    void *field = fields + option->at;
    uint64_t number;
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)field = true;
        return true;
    case CLI_TEXT:
        *(const char **)field = value;
        return true;
    case CLI_U32:
    case CLI_AUTO:
        if (!take_number(option, value, &number, reason))
            return false;
        *(uint32_t *)field = (uint32_t)number;
        return true;
    case CLI_U64:
        return take_number(option, value, field, reason);
    case CLI_SIZE:
        return take_size(option, value, field, reason);
    case CLI_SECONDS:
        return take_seconds(option, value, field, reason);
    default:
        return option->take(field, value, reason);
    }
}

/* Prints an option at its column, and further lines of its text below it. */
static void print_option(const struct cli_option *option)
{
    int width = option->letter != 0 ? printf("  -%c, --%s", option->letter, option->name)
                                    : printf("      --%s", option->name);
    if (option->value)
        width += printf("=%s", option->value);
    if (width >= HELP_COLUMN) {
        putchar('\n');
        width = 0;
    }
    if (option->help[0] == '\0')
        putchar('\n');
    for (const char *line = option->help[0] != '\0' ? option->help : NULL; line; width = 0) {
        const char *end = strchr(line, '\n');
        printf("%*s%.*s\n", HELP_COLUMN - width, "", end ? (int)(end - line) : (int)strlen(line),
               line);
        line = end ? end + 1 : NULL;
    }
}

static int print_help(const struct cli_syntax *syntax)
{
    const struct cli_option help = {.letter = 'h', .name = "help", .help = "print this and exit"};
    puts(syntax->usage);
    for (size_t i = 0; i < syntax->count; i++)
        if (syntax->options[i].name)
            print_option(&syntax->options[i]);
        else
            printf("%s%s\n", i > 0 ? "\n" : "", syntax->options[i].help);
    print_option(&help);
    if (syntax->notes)
        printf("\n%s", syntax->notes);
    return cli_finish(EXIT_SUCCESS);
}

/* A field of a table for programs: a line's end and a tab are written as \\n and \\t. */
static void print_field(const char *text, char end)
{
    for (; text && *text != '\0'; text++)
        if (*text == '\n' || *text == '\t' || *text == '\\')
            printf("\\%c", *text == '\n' ? 'n' : *text == '\t' ? 't' : '\\');
        else
            putchar(*text);
    putchar(end);
}

void cli_print_fields(const char *const *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        print_field(fields[i], i + 1 < count ? '\t' : '\n');
}

static int print_table(const struct cli_syntax *syntax)
{
    cli_print_fields((const char *const[]){"usage", syntax->usage}, 2);
    for (size_t i = 0; i < syntax->count; i++) {
        const struct cli_option *option = &syntax->options[i];
        const char letter[2] = {option->letter, '\0'};
        if (option->name)
            cli_print_fields(
                (const char *const[]){"option", letter, option->name, option->value, option->help},
                5);
        else
            cli_print_fields((const char *const[]){"heading", option->help}, 2);
    }
    cli_print_fields((const char *const[]){"option", "h", "help", NULL, "print this and exit"}, 5);
    cli_print_fields((const char *const[]){"notes", syntax->notes}, 2);
    return cli_finish(EXIT_SUCCESS);
}

static int help_asked(const struct cli_syntax *syntax, const char *form)
{
    if (!form)
        return print_help(syntax);
    if (!strcmp(form, "tsv"))
        return print_table(syntax);
    return cli_usage_error(syntax->command, "--help: 'tsv' or nothing, not '%s'", form);
}

/* What getopt_long goes by: the long options, and the letters. */
struct getopt_tables {
    struct option options[CLI_OPTIONS_MAX + 2];
    char letters[2 * CLI_OPTIONS_MAX + 2];
};

static void make_tables(const struct cli_syntax *syntax, struct getopt_tables *tables)
{
    size_t count = 0, letters = 0;
    assert(syntax->count <= CLI_OPTIONS_MAX);
    for (size_t i = 0; i < syntax->count; i++) {
        const struct cli_option *option = &syntax->options[i];
        bool takes = option->kind != CLI_FLAG;
        if (!option->name)
            continue;
        tables->options[count++] = (struct option){
            option->name, takes ? required_argument : no_argument, NULL, LONG_OPTION + (int)i};
        if (option->letter != 0)
            tables->letters[letters++] = option->letter;
        if (option->letter != 0 && takes)
            tables->letters[letters++] = ':';
    }
    tables->options[count++] = (struct option){"help", optional_argument, NULL, 'h'};
    tables->options[count] = (struct option){NULL, 0, NULL, 0};
    tables->letters[letters++] = 'h';
    tables->letters[letters] = '\0';
}

/* By what getopt_long has returned; NULL: it has complained. */
static const struct cli_option *find_option(const struct cli_syntax *syntax, int found)
{
    if (found >= LONG_OPTION)
        return &syntax->options[found - LONG_OPTION];
    for (size_t i = 0; i < syntax->count; i++)
        if (syntax->options[i].name && syntax->options[i].letter == found)
            return &syntax->options[i];
    return NULL;
}

int cli_read_options(const struct cli_syntax *syntax, int argc, char **argv, void *fields,
                     int *status)
{
    struct getopt_tables tables;
    int found;
    make_tables(syntax, &tables);
    while ((found = getopt_long(argc, argv, tables.letters, tables.options, NULL)) != -1) {
        const struct cli_option *option = find_option(syntax, found);
        struct weir_reason reason = {{0}};
        if (found == 'h') {
            *status = help_asked(syntax, optarg);
            return -1;
        }
        if (!option) {
            *status = try_help(syntax->command);
            return -1;
        }
        if (!take_value(option, optarg, fields, &reason)) {
            *status = cli_usage_error(syntax->command, "--%s: %s", option->name, reason.text);
            return -1;
        }
    }
    if (optind < argc && !syntax->takes_arguments) {
        *status = cli_usage_error(syntax->command, "unexpected argument '%s'", argv[optind]);
        return -1;
    }
    return optind;
}
