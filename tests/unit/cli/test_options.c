/* SPDX-License-Identifier: Apache-2.0 */
/* What subcommands share: numbers, sizes, and text that came from outside. */
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

static void a_count_is_digits_up_to_its_maximum_and_nothing_else(void **state)
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

static void a_size_is_a_number_with_a_binary_unit(void **state)
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

static void text_from_outside_cannot_command_the_terminal(void **state)
{
    char printed[128] = {0};
    FILE *out = fmemopen(printed, sizeof printed, "w");
    assert_non_null(out);
    cli_print_text(out, "a\x1b[2J\n\xff", 7, 100);
    cli_print_text(out, "|abcdef", 7, 4);
    cli_print_key(out, "|user=a", 7, 100);
    cli_print_key(out, NULL, 0, 100);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(printed, "a\\x1b[2J\\x0a\\xff|abc...|user=a[]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_count_is_digits_up_to_its_maximum_and_nothing_else),
        cmocka_unit_test(a_size_is_a_number_with_a_binary_unit),
        cmocka_unit_test(text_from_outside_cannot_command_the_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
