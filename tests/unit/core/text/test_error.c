/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <weir/error.h>
#include <weir/version.h>

#include "core/text/reason.h"
#include "test.h"

TEST("every error has its own text")
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

TEST("any other number is an unknown error")
{
    assert_string_equal(weir_error_text(0), "unknown error");
    assert_string_equal(weir_error_text(1), "unknown error");
    assert_string_equal(weir_error_text(-1000), "unknown error");
}

TEST("only faults of the state are not of request or program")
{
    static const int faults[] = {WEIR_ERR_IO,   WEIR_ERR_FORMAT, WEIR_ERR_DAMAGED, WEIR_ERR_BUSY,
                                 WEIR_ERR_FULL, WEIR_ERR_STORE,  WEIR_ERR_DEADLINE};
    for (int err = -30; err < 2; err++) {
        bool of_state = false;
        for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
            of_state |= err == faults[i];
        assert_int_equal(weir_error_fault(err) == WEIR_FAULT_STATE, of_state);
    }
    assert_int_equal(weir_error_fault(WEIR_ERR_SYNTAX), WEIR_FAULT_REQUEST);
    assert_int_equal(weir_error_fault(WEIR_ERR_RULES), WEIR_FAULT_PROGRAM);
    assert_int_equal(weir_error_fault(0), WEIR_FAULT_PROGRAM);
}

TEST("versions are compared by their numbers")
{
    assert_true(weir_version_before("0.2.0", "0.5.0"));
    assert_true(weir_version_before("0.4.99", "0.5.0"));
    assert_true(weir_version_before("0.9.0", "0.10.0"));
    assert_true(weir_version_before("0.5", "0.5.1"));
    assert_false(weir_version_before("0.5.0", "0.5.0"));
    assert_false(weir_version_before("0.5.0", "0.5"));
    assert_false(weir_version_before("0.10.0", "0.9.0"));
    assert_false(weir_version_before("1.0.0", "0.5.0"));
}

TEST("what is deprecated is taken before its version only")
{
    assert_true(weir_still_takes("99.0.0"));
    assert_false(weir_still_takes("0.0.1"));
    assert_false(weir_still_takes(WEIR_VERSION));
    assert_int_equal(weir_still_takes(WEIR_REFUSED_FROM),
                     weir_version_before(WEIR_VERSION, WEIR_REFUSED_FROM));
}

TEST("a reason is made of texts and numbers")
{
    struct weir_reason reason = {""};

    reason_text(&reason, "rate is ");
    reason_number(&reason, 0);
    reason_text(&reason, ", not ");
    reason_number(&reason, UINT64_MAX);
    assert_string_equal(reason.text, "rate is 0, not 18446744073709551615");
}

TEST("a reason that is too long is cut and terminated")
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

TEST("nobody needs to ask for a reason")
{
    reason_text(NULL, "text");
    reason_number(NULL, 1);
}

RUN_TESTS()
