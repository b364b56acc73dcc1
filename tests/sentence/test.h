/* SPDX-License-Identifier: Apache-2.0 */
/* Tests with a sentence for a name, over cmocka:
 *
 *   TEST("a denied request is not charged")
 *   {
 *       assert_int_equal(...);
 *   }
 *
 *   RUN_TESTS()
 *
 * A program has one file with RUN_TESTS, which runs the tests of that file in their order there.
 * Setup and teardown are cmocka's, and what a setup puts into *state is *state in its test.
 * In a child that a test forks a failed assertion ends the child by SIGABRT: it would jump into
 * cmocka's loop otherwise, and run all tests that follow once more.
 */
#ifndef LIB_TEST_H
#define LIB_TEST_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define TESTS_MAX 256

static struct CMUnitTest tests_here[TESTS_MAX];
static size_t tests_here_count;

static inline void test_add(struct CMUnitTest test)
{
    if (tests_here_count < TESTS_MAX)
        tests_here[tests_here_count] = test;
    tests_here_count++;
}

static char *tests_abort; /* the value in the environment: a child changes it without allocating */

static inline void tests_abort_in_child(void)
{
    *tests_abort = '1';
}

static inline int tests_run(const char *file, CMFixtureFunction setup, CMFixtureFunction teardown)
{
    if (tests_here_count == 0 || tests_here_count > TESTS_MAX) {
        print_error("%s has %zu tests, not 1 to %d\n", file, tests_here_count, TESTS_MAX);
        return 1;
    }
    setenv("CMOCKA_TEST_ABORT", "0", 1);
    tests_abort = getenv("CMOCKA_TEST_ABORT");
    if (!tests_abort || pthread_atfork(NULL, NULL, tests_abort_in_child) != 0)
        return 1;
    return _cmocka_run_group_tests(file, tests_here, tests_here_count, setup, teardown);
}

/* Constructors of one file run in their order there. */
#define TEST_NUMBERED(n, setup, teardown, sentence)                                                \
    static void test_##n(void **state);                                                            \
    __attribute__((constructor)) static void test_add_##n(void)                                    \
    {                                                                                              \
        test_add((struct CMUnitTest){sentence, test_##n, setup, teardown, NULL});                  \
    }                                                                                              \
    static void test_##n(__attribute__((unused)) void **state)
#define TEST_EXPANDED(n, setup, teardown, sentence) TEST_NUMBERED(n, setup, teardown, sentence)

#define TEST(sentence) TEST_EXPANDED(__COUNTER__, NULL, NULL, sentence)
#define TEST_WITH(setup, teardown, sentence) TEST_EXPANDED(__COUNTER__, setup, teardown, sentence)

/* `setup` and `teardown` of the whole program. */
#define RUN_TESTS_WITH(setup, teardown)                                                            \
    int main(void)                                                                                 \
    {                                                                                              \
        return tests_run(__FILE__, setup, teardown);                                               \
    }
#define RUN_TESTS() RUN_TESTS_WITH(NULL, NULL)

#endif
