/* SPDX-License-Identifier: Apache-2.0 */
/* What subcommands share: numbers, sizes, and text that came from outside. */
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/options.h"
#include "server/text/print.h"
#include "test.h"

TEST("a count is digits up to its maximum and nothing else")
{
    uint64_t count = 7;
    assert_true(cli_parse_count("0", 10, &count));
    assert_int_equal(count, 0);
    assert_true(cli_parse_count("10", 10, &count));
    assert_int_equal(count, 10);
    assert_true(cli_parse_count("18446744073709551615", UINT64_MAX, &count));
    assert_true(count == UINT64_MAX);
    count = 7;
    const char *const bad[] = {
        "", "11", "-1", "+1", " 1", "1 ", "1x", "0x1", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(cli_parse_count(bad[i], 10, &count));
    assert_false(cli_parse_count("18446744073709551616", UINT64_MAX, &count));
    assert_false(cli_parse_count("5", 4, &count));
    assert_int_equal(count, 7); /* a refused text changes nothing */
}

TEST("a size is a number with a binary unit")
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"4096", 4096},
                {"1K", 1024},
                {"64KiB", 65536},
                {"64MiB", UINT64_C(64) << 20},
                {"2G", UINT64_C(2) << 30},
                {"16777215TiB", UINT64_C(16777215) << 40}};
    uint64_t bytes = 7;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(cli_parse_size(good[i].text, &bytes));
        assert_true(bytes == good[i].bytes);
    }
    const char *const bad[] = {"",
                               "K",
                               "1KB",
                               "1kib",
                               "1 MiB",
                               "-1M",
                               "16777216TiB",
                               "1.5G",
                               "111111111111111111111111111111"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(cli_parse_size(bad[i], &bytes));
}

TEST("text from outside cannot command the terminal")
{
    char printed[128] = {0};
    FILE *out = fmemopen(printed, sizeof printed, "w");
    assert_non_null(out);
    weir_print_text(out, "a\x1b[2J\n\xff", 7, 100);
    weir_print_text(out, "|abcdef", 7, 4);
    weir_print_key(out, "|user=a", 7, 100);
    weir_print_key(out, NULL, 0, 100);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(printed, "a\\x1b[2J\\x0a\\xff|abc...|user=a[]");
}

/* --- The table of options --------------------------------------------------------------------- */

struct fields {
    const char *text;
    bool flag;
    uint32_t small, automatic;
    uint64_t large, bytes, ns;
    char taken;
};

static bool take_letter(void *field, char *value, struct weir_reason *reason)
{
    if (value[0] == '\0' || value[1] != '\0')
        return cli_refuse(reason, "one letter", value);
    *(char *)field = value[0];
    return true;
}

#define AT(field) .at = offsetof(struct fields, field)

static const struct cli_option table[] = {
    CLI_HEADING("Some:"),
    CLI_OPTION('t', "text", "TEXT", "a text", .kind = CLI_TEXT, AT(text)),
    CLI_OPTION('f', "flag", NULL, "a flag\nof two lines", .kind = CLI_FLAG, AT(flag)),
    CLI_OPTION(0, "small", "N", "", .kind = CLI_U32, .min = 1, .max = 9, AT(small)),
    CLI_OPTION(0, "auto", "N", "", .kind = CLI_AUTO, .min = 1, .max = 9, AT(automatic)),
    CLI_HEADING("Others:"),
    CLI_OPTION(0, "large-and-of-a-long-name", "N", "wrapped", .kind = CLI_U64, .max = UINT64_MAX,
               AT(large)),
    CLI_OPTION(0, "bytes", "SIZE", "", .kind = CLI_SIZE, .min = 1, .max = 4096, AT(bytes)),
    CLI_OPTION(0, "time", "SECONDS", "", .kind = CLI_SECONDS, .min = 1, AT(ns)),
    CLI_OPTION(0, "letter", "L", "", .kind = CLI_TAKEN, .take = take_letter, AT(taken)),
};

/* Reads a line of words; returns the first argument's index, or -1. What is printed goes to
 * `printed`. */
static int read_line(const char *words, bool arguments, struct fields *fields, int *status,
                     char printed[1024])
{
    const struct cli_syntax syntax = {.command = "thing",
                                      .usage = "Usage: weir thing\n",
                                      .notes = "The end.\n",
                                      .options = table,
                                      .count = sizeof table / sizeof *table,
                                      .takes_arguments = arguments};
    static char copy[256];
    char *argv[16] = {0};
    int argc = 0;
    FILE *out = stdout, *err = stderr;
    snprintf(copy, sizeof copy, "weir %s", words);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    memset(printed, 0, 1024);
    *fields = (struct fields){.small = 77};
    *status = -7;
    stdout = stderr = fmemopen(printed, 1024, "w");
    optind = 0; /* another command line: see getopt(3) */
    int first = cli_read_options(&syntax, argc, argv, fields, status);
    fclose(stdout);
    stdout = out;
    stderr = err;
    return first;
}

TEST("options go where the table says")
{
    char printed[1024];
    struct fields fields;
    int status;
    int first =
        read_line("-t a --flag --small=9 --auto 3 --large-and-of-a-long-name=18446744073709551615 "
                  "--bytes=4K --time=0.5 --letter=x b c",
                  true, &fields, &status, printed);
    assert_int_equal(first, 11);
    assert_string_equal(printed, "");
    assert_string_equal(fields.text, "a");
    assert_true(fields.flag && fields.small == 9 && fields.automatic == 3);
    assert_true(fields.large == UINT64_MAX && fields.bytes == 4096 && fields.ns == 500000000);
    assert_int_equal(fields.taken, 'x');
    assert_int_equal(read_line("--auto=auto", false, &fields, &status, printed), 2);
    assert_int_equal(fields.automatic, 0);
    assert_int_equal(fields.small, 77); /* an option that is not given changes nothing */
}

TEST("a wrong value is a usage error that says what is right")
{
    static const struct {
        const char *words, *result;
    } wrong[] = {
        {"--small=0", "--small: a number from 1 to 9, not '0'"},
        {"--small=10", "--small: a number from 1 to 9, not '10'"},
        {"--auto=x", "--auto: 'auto' or a number from 1 to 9, not 'x'"},
        {"--large-and-of-a-long-name=-1", "--large-and-of-a-long-name: a number, not '-1'"},
        {"--bytes=8K", "--bytes: a number of bytes in the range that --help names, not '8K'"},
        {"--time=0", "--time: a number of seconds, not '0'"},
        {"--time=1s", "--time: a number of seconds, not '1s'"},
        {"--letter=xy", "--letter: one letter, not 'xy'"},
        {"extra", "unexpected argument 'extra'"},
        {"--nonsense", "unrecognized option '--nonsense'"},
        {"--text", "option '--text' requires an argument"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char printed[1024], expected[256];
        struct fields fields;
        int status;
        assert_int_equal(read_line(wrong[i].words, false, &fields, &status, printed), -1);
        assert_int_equal(status, WEIR_EXIT_USAGE);
        snprintf(expected, sizeof expected,
                 "weir: %s\nTry 'weir thing --help' for more information.\n", wrong[i].result);
        assert_string_equal(printed, expected);
    }
}

TEST("help is made from the table")
{
    char printed[1024], again[1024];
    struct fields fields;
    int status;
    assert_int_equal(read_line("--help", false, &fields, &status, printed), -1);
    assert_int_equal(status, EXIT_SUCCESS);
    assert_string_equal(printed, "Usage: weir thing\n\n"
                                 "Some:\n"
                                 "  -t, --text=TEXT         a text\n"
                                 "  -f, --flag              a flag\n"
                                 "                          of two lines\n"
                                 "      --small=N\n"
                                 "      --auto=N\n"
                                 "\nOthers:\n"
                                 "      --large-and-of-a-long-name=N\n"
                                 "                          wrapped\n"
                                 "      --bytes=SIZE\n"
                                 "      --time=SECONDS\n"
                                 "      --letter=L\n"
                                 "  -h, --help              print this and exit\n"
                                 "\nThe end.\n");
    assert_int_equal(read_line("--flag -h extra", false, &fields, &status, again), -1);
    assert_string_equal(again, printed);
}

RUN_TESTS()
