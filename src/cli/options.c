/* SPDX-License-Identifier: Apache-2.0 */
/* see options.h */
#include "cli/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int cli_usage_error(const char *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_error(format, arguments);
    va_end(arguments);
    return cli_try_help(command);
}

int cli_try_help(const char *command)
{
    if (command != NULL)
        fprintf(stderr, "Try 'weir %s --help' for more information.\n", command);
    else
        fputs("Try 'weir --help' for more information.\n", stderr);
    return WEIR_EXIT_USAGE;
}

int cli_help(const char *text)
{
    fputs(text, stdout);
    return cli_finish(EXIT_SUCCESS);
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

void cli_print_text(FILE *stream, const char *text, size_t size, size_t limit)
{
    for (size_t i = 0; i < size && i < limit; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte >= 0x20 && byte < 0x7f)
            fputc(byte, stream);
        else
            fprintf(stream, "\\x%02x", byte);
    }
    if (size > limit)
        fputs("...", stream);
}

void cli_print_key(FILE *stream, const char *text, size_t size, size_t limit)
{
    if (size == 0)
        fputs("[]", stream);
    else
        cli_print_text(stream, text, size, limit);
}
