/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "feature/use/windows.h"
#include "test.h"

#define S UINT64_C(1000000000)
#define NOON (UINT64_C(1700006400) * S) /* a whole hour */

static struct weir_heavy *batch, *out;

static void setup(struct weir_windows **windows)
{
    assert_int_equal(weir_windows_open(windows, 64), 0);
    assert_int_equal(weir_heavy_open(&batch, 64), 0);
    assert_int_equal(weir_heavy_open(&out, 64), 0);
}

static void done(struct weir_windows *windows)
{
    weir_windows_close(windows);
    weir_heavy_close(batch);
    weir_heavy_close(out);
}

static void add(struct weir_windows *windows, uint64_t weight, uint64_t at_ns)
{
    bool fresh;
    weir_heavy_clear(batch);
    (void)weir_heavy_count(batch, (const uint64_t[2]){1, 2}, weight, &fresh);
    assert_int_equal(weir_windows_add(windows, batch, at_ns), 0);
}

static uint64_t read(struct weir_windows *windows, enum weir_window window, uint64_t at_ns)
{
    struct weir_heavy_entry entry = {.count = 0};
    assert_int_equal(weir_windows_read(windows, window, at_ns, out), 0);
    if (weir_heavy_used(out) > 0)
        weir_heavy_get(out, 0, &entry);
    assert_int_equal(entry.count, weir_heavy_weight(out));
    return entry.count;
}

TEST("each window has what was within it")
{
    struct weir_windows *w;
    setup(&w);
    add(w, 1, NOON);
    add(w, 2, NOON + 5 * S);
    add(w, 4, NOON + 30 * S);
    assert_int_equal(read(w, WEIR_WINDOW_MINUTE, NOON + 30 * S), 7);
    assert_int_equal(read(w, WEIR_WINDOW_HOUR, NOON + 30 * S), 7);
    assert_int_equal(read(w, WEIR_WINDOW_DAY, NOON + 30 * S), 7);
    assert_int_equal(read(w, WEIR_WINDOW_MINUTE, NOON + 69 * S), 7);
    assert_int_equal(read(w, WEIR_WINDOW_MINUTE, NOON + 70 * S), 4);
    assert_int_equal(read(w, WEIR_WINDOW_MINUTE, NOON + 100 * S), 0);
    assert_int_equal(read(w, WEIR_WINDOW_HOUR, NOON + 100 * S), 7);
    add(w, 8, NOON + 3600 * S);
    assert_int_equal(read(w, WEIR_WINDOW_HOUR, NOON + 3600 * S), 15);
    assert_int_equal(read(w, WEIR_WINDOW_HOUR, NOON + 3900 * S), 8);
    assert_int_equal(read(w, WEIR_WINDOW_DAY, NOON + 3900 * S), 15);
    assert_int_equal(read(w, WEIR_WINDOW_DAY, NOON + 86400 * S), 15);
    assert_int_equal(read(w, WEIR_WINDOW_DAY, NOON + 90000 * S), 8);
    done(w);
}

TEST("nothing is lost or counted twice over a day")
{
    struct weir_windows *w;
    uint64_t total = 0;
    setup(&w);
    for (uint64_t s = 0; s < 86400; s += 7) {
        add(w, 1, NOON + s * S);
        total++;
        if (s % 997 == 0) /* reading changes nothing */
            assert_int_equal(read(w, WEIR_WINDOW_DAY, NOON + s * S), total);
    }
    assert_int_equal(read(w, WEIR_WINDOW_DAY, NOON + 86399 * S), total);
    done(w);
}

TEST("after a pause of days nothing old is shown")
{
    struct weir_windows *w;
    setup(&w);
    add(w, 5, NOON);
    uint64_t later = NOON + 25 * 7 * UINT64_C(3600) * S; /* the same slots again */
    assert_int_equal(read(w, WEIR_WINDOW_DAY, later), 0);
    add(w, 1, later);
    assert_int_equal(read(w, WEIR_WINDOW_MINUTE, later), 1);
    assert_int_equal(read(w, WEIR_WINDOW_HOUR, later), 1);
    assert_int_equal(read(w, WEIR_WINDOW_DAY, later), 1);
    done(w);
}

RUN_TESTS()
