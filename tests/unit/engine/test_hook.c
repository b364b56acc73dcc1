/* SPDX-License-Identifier: Apache-2.0 */
/* Request hooks: the masks of steps are those of the hooks' own tables. */
#include "engine/hook.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void the_masks_of_steps_name_the_hooks_that_have_them(void **state)
{
    uint32_t again = 0, decided = 0, counted = 0, told = 0;
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_masks_of_steps_name_the_hooks_that_have_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
