/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's texts: what they say, and that anything else is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "feature/adaptive/machine.h"
#include "test.h"

static struct weir_bytes text(const char *content)
{
    return weir_bytes_of(content);
}

TEST("cpu time is all but idle and waiting")
{
    struct weir_cpu_time before, now;

    assert_true(weir_machine_cpu(
        text("cpu  100 10 50 800 40 0 0 0 0 0\ncpu0 100 10 50 800 40 0 0 0 0 0\n"), &before));
    assert_int_equal(before.busy, 160);
    assert_int_equal(before.whole, 1000);
    assert_true(weir_machine_cpu(text("cpu  300 10 150 850 90 0 0 100 0 0\n"), &now));
    assert_int_equal(weir_machine_cpu_used(&before, &now), 8000);
    assert_int_equal(weir_machine_cpu_used(&now, &before), 0);
    assert_int_equal(weir_machine_cpu_used(&now, &now), 0);
}

TEST("a cgroup is measured by its quota")
{
    struct weir_cpu_time before = {1000000, 0}, now;

    assert_true(weir_machine_cgroup_cpu(text("usage_usec 1250000\nuser_usec 1\n"),
                                        text("50000 100000\n"), 1000000000, &now));
    assert_int_equal(weir_machine_cpu_used(&before, &now), 5000);
    assert_false(weir_machine_cgroup_cpu(text("usage_usec 1\n"), text("max 100000\n"), 1000, &now));
    assert_false(weir_machine_cgroup_cpu(text("usage_usec 1\n"), text("5 0\n"), 1000, &now));
    assert_false(weir_machine_cgroup_cpu(text("user_usec 1\n"), text("5 10\n"), 1000, &now));
}

TEST("memory in use is what is not available")
{
    uint32_t used = 7;

    assert_true(weir_machine_memory(
        text("MemTotal:       8000000 kB\nMemFree:  100 kB\nMemAvailable:    2000000 kB\n"),
        &used));
    assert_int_equal(used, 7500);
    assert_false(weir_machine_memory(text("MemTotal: 8000000 kB\n"), &used));
    assert_false(weir_machine_memory(text("MemTotal: 1 kB\nMemAvailable: 2 kB\n"), &used));
    assert_true(weir_machine_cgroup_memory(text("750\n"), text("1000\n"), &used));
    assert_int_equal(used, 7500);
    assert_true(weir_machine_cgroup_memory(text("2000\n"), text("1000\n"), &used));
    assert_int_equal(used, 10000);
    assert_false(weir_machine_cgroup_memory(text("750\n"), text("max\n"), &used));
}

TEST("pressure is the part in which some waited")
{
    uint32_t waiting = 7;

    assert_true(weir_machine_pressure(
        text("some avg10=12.34 avg60=0.00 avg300=0.00 total=5\nfull avg10=0.00 total=1\n"),
        &waiting));
    assert_int_equal(waiting, 1234);
    assert_true(weir_machine_pressure(text("some avg10=100.00 avg60"), &waiting));
    assert_int_equal(waiting, 10000);
    assert_false(weir_machine_pressure(text("some avg10=100.01 avg60"), &waiting));
    assert_int_equal(waiting, 10000);
    assert_false(weir_machine_pressure(text("full avg10=1.00\n"), &waiting));
}

TEST("other texts are refused and change nothing")
{
    static const char *const texts[] = {
        "",
        "cpu",
        "cpu ",
        "cpu  1 2 3",
        "cpu  1 2 3 x",
        "cpu0 1 2 3 4 5",
        "cpu  18446744073709551615 1 1 1 1",
        "cpu  99999999999999999999 1 1 1 1",
    };
    struct weir_cpu_time time = {1, 2};
    uint32_t number = 7;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_false(weir_machine_cpu(text(texts[i]), &time));
        assert_false(weir_machine_memory(text(texts[i]), &number));
        assert_false(weir_machine_pressure(text(texts[i]), &number));
    }
    assert_int_equal(time.busy, 1);
    assert_int_equal(time.whole, 2);
    assert_int_equal(number, 7);
}

RUN_TESTS()
