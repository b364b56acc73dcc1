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
#include "test.h"

static char file[] = "weir.yaml", wrong[] = "wrong";

TEST("each error is a line that says where it is")
{
    struct weir_problem list[] = {{.file = file, .line = 3, .column = 14, .message = wrong},
                                  {.file = file, .message = wrong}};
    struct weir_problems problems = {.list = list, .count = 2};
    char *text = weir_rules_problems_text(&problems);
    assert_string_equal(text, "weir.yaml:3:14: wrong\nweir.yaml: wrong\n");
    free(text);
}

TEST("without errors there is no text")
{
    const struct weir_problems problems = {0};
    assert_null(weir_rules_problems_text(&problems));
}

TEST("errors beyond the bound are counted")
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

RUN_TESTS()
