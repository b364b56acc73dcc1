/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <weir/error.h>

#include "core/reason.h"

static void every_error_has_its_own_text(void **state)
{
    static const int all[] = {
#define TEST_CODE(code, name, text) name,
        WEIR_ERRORS(TEST_CODE)
#undef TEST_CODE
    };
    size_t count = sizeof(all) / sizeof(all[0]);

    for (size_t i = 0; i < count; i++) {
        assert_true(all[i] < 0);
        assert_true(strlen(weir_error_text(all[i])) > 0);
        assert_string_not_equal(weir_error_text(all[i]), "unknown error");
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(weir_error_text(all[i]), weir_error_text(all[j]));
    }
    assert_string_equal(weir_error_text(WEIR_ERR_RANGE), "a value is out of its range");
}

static void any_other_number_is_an_unknown_error(void **state)
{
    assert_string_equal(weir_error_text(0), "unknown error");
    assert_string_equal(weir_error_text(1), "unknown error");
    assert_string_equal(weir_error_text(-1000), "unknown error");
}

static void a_reason_is_made_of_texts_and_numbers(void **state)
{
    struct weir_reason reason = {""};

    reason_text(&reason, "rate is ");
    reason_number(&reason, 0);
    reason_text(&reason, ", not ");
    reason_number(&reason, UINT64_MAX);
    assert_string_equal(reason.text, "rate is 0, not 18446744073709551615");
}

static void a_reason_that_is_too_long_is_cut_and_terminated(void **state)
{
    struct {
        struct weir_reason reason;
        char after;
    } guarded = {{""}, 'x'};

    for (int i = 0; i < 100; i++)
        reason_text(&guarded.reason, "seven..");
    reason_number(&guarded.reason, 12345);
    assert_int_equal(strlen(guarded.reason.text), WEIR_REASON_MAX - 1);
    assert_int_equal(guarded.after, 'x');
}

static void nobody_needs_to_ask_for_a_reason(void **state)
{
    reason_text(NULL, "text");
    reason_number(NULL, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_its_own_text),
        cmocka_unit_test(any_other_number_is_an_unknown_error),
        cmocka_unit_test(a_reason_is_made_of_texts_and_numbers),
        cmocka_unit_test(a_reason_that_is_too_long_is_cut_and_terminated),
        cmocka_unit_test(nobody_needs_to_ask_for_a_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
