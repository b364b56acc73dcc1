/* SPDX-License-Identifier: Apache-2.0 */
/* The core beside its slow models: tests/lib/model_trace.h.
 *
 * Usage: test_model ALGORITHM [OPERATIONS [SEED]]; ALGORITHM is a name of rules files, or
 * "segments" for a sliding_window of many, or "leaky_queue". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model_trace.h"

static struct model_trace trace = {.operations = 100000, .seed = 20240229};

static void the_core_decides_as_its_model_over_random_limits_and_times(void **state)
{
    const struct model_trace_counts *counts = &model_trace_counts;
    bool bucket = trace.algorithm >= WEIR_TOKEN_BUCKET && trace.algorithm <= WEIR_LEAKY_QUEUE;

    assert_true(model_trace_run(&trace));
    print_message("%llu operations on %llu limits: %llu allowed, %llu denied (%llu for ever), "
                  "%llu delayed, %llu steps backwards, %llu limits changed\n",
                  (unsigned long long)counts->operations, (unsigned long long)counts->limits,
                  (unsigned long long)counts->allowed, (unsigned long long)counts->denied,
                  (unsigned long long)counts->never, (unsigned long long)counts->delays,
                  (unsigned long long)counts->backwards, (unsigned long long)counts->converted);

    /* No kind may have been missed. */
    assert_int_equal(counts->operations, trace.operations);
    assert_true(counts->allowed > trace.operations / 20);
    assert_true(counts->denied > trace.operations / 20);
    assert_true(counts->never > trace.operations / 1000);
    assert_true(counts->finite_retry > trace.operations / 100);
    assert_true(counts->backwards > trace.operations / 100);
    assert_true(counts->converted > trace.operations / 2000);
    assert_true(counts->scaled > trace.operations / 3);
    assert_true((counts->delays > 0) == (trace.algorithm == WEIR_LEAKY_QUEUE));
    /* As log.h and concurrency.h say; segments.h: test_span.c. */
    if (trace.algorithm == WEIR_SLIDING_LOG)
        assert_int_equal(counts->most_edits, 4);
    if (trace.algorithm == WEIR_CONCURRENCY)
        assert_int_equal(counts->most_edits, 10);
    if (trace.algorithm == WEIR_SLIDING_LOG || trace.algorithm == WEIR_CONCURRENCY)
        assert_true(counts->resized > trace.operations / 200);
    if (bucket || trace.algorithm == WEIR_FIXED_WINDOW)
        assert_true(counts->packed > trace.operations / 20);
}

static bool find_algorithm(const char *name)
{
    if (strcmp(name, "segments") == 0) {
        trace.algorithm = WEIR_SLIDING_WINDOW;
        trace.segments = true;
        return true;
    }
    if (strcmp(name, "leaky_queue") == 0) {
        trace.algorithm = WEIR_LEAKY_QUEUE;
        return true;
    }
    for (int i = 0; i <= WEIR_CONCURRENCY; i++) {
        if (strcmp(name, weir_algorithm_name((enum weir_algorithm)i)) == 0) {
            trace.algorithm = (enum weir_algorithm)i;
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_core_decides_as_its_model_over_random_limits_and_times),
    };

    if (argc < 2 || !find_algorithm(argv[1])) {
        fprintf(stderr, "usage: test_model ALGORITHM [OPERATIONS [SEED]]\n");
        return 2;
    }
    if (argc > 2)
        trace.operations = strtoull(argv[2], NULL, 10);
    if (argc > 3)
        trace.seed = strtoull(argv[3], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
