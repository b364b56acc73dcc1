/* SPDX-License-Identifier: Apache-2.0 */
/* The errors of a rules file as the dashboard shows them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "feature/dashboard/server/rules_api.h"

static char file[] = "weir.yaml", wrong[] = "wrong";

static void each_error_is_a_line_that_says_where_it_is(void **state)
{
    struct weir_problem list[] = {{.file = file, .line = 3, .column = 14, .message = wrong},
                                  {.file = file, .message = wrong}};
    struct weir_problems problems = {.list = list, .count = 2};
    char *text = weir_rules_problems_text(&problems);
    assert_string_equal(text, "weir.yaml:3:14: wrong\nweir.yaml: wrong\n");
    free(text);
}

static void without_errors_there_is_no_text(void **state)
{
    const struct weir_problems problems = {0};
    assert_null(weir_rules_problems_text(&problems));
}

static void errors_beyond_the_bound_are_counted(void **state)
{
    static struct weir_problem list[WEIR_RULES_PROBLEMS_MAX + 1];
    struct weir_problems problems = {.list = list, .count = WEIR_RULES_PROBLEMS_MAX};
    for (unsigned i = 0; i <= WEIR_RULES_PROBLEMS_MAX; i++)
        list[i] = (struct weir_problem){.file = file, .line = 1, .column = i, .message = wrong};
    char *text = weir_rules_problems_text(&problems);
    assert_null(strstr(text, "more errors"));
    free(text);
    problems.count++;
    problems.dropped = 7;
    text = weir_rules_problems_text(&problems);
    assert_non_null(strstr(text, "\n8 more errors\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_error_is_a_line_that_says_where_it_is),
        cmocka_unit_test(without_errors_there_is_no_text),
        cmocka_unit_test(errors_beyond_the_bound_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
