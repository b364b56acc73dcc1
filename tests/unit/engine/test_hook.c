/* SPDX-License-Identifier: Apache-2.0 */
/* Request hooks: the masks of steps are those of the hooks' own tables. */
#include "engine/hook.h"
#include "test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

TEST("the masks of steps name the hooks that have them")
{
    uint32_t again = 0, decided = 0, counted = 0, told = 0;
    for (unsigned i = 0; i < WEIR_HOOKS; i++) {
        const struct weir_hook *hook = weir_hook_at((enum weir_hook_number)i);
        assert_non_null(hook);
        again |= hook->again ? 1U << i : 0;
        decided |= hook->decided ? 1U << i : 0;
        counted |= hook->counted ? 1U << i : 0;
        told |= hook->told ? 1U << i : 0;
    }
    assert_int_equal(again, WEIR_HOOKS_AGAIN);
    assert_int_equal(decided, WEIR_HOOKS_DECIDED);
    assert_int_equal(counted, WEIR_HOOKS_COUNTED);
    assert_int_equal(told, WEIR_HOOKS_TOLD);
}

RUN_TESTS()
