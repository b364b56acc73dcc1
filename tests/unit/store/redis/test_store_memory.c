/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis store and memory that runs out: it does not open, or a decision fails; then it
 * continues.
 */
#include "failing_memory.h"
#include "store_rig.h"
#include "test.h"

#include <string.h>

static struct store_rig rig;

static int set_up(void **state)
{
    store_rig_start(&rig);
    return 0;
}

static int tear_down(void **state)
{
    store_rig_end(&rig);
    return 0;
}

TEST_WITH(set_up, tear_down, "any allocation of opening may fail")
{
    struct weir_store_redis_options options = store_rig_options(&rig);
    struct weir_reason reason;
    int err = WEIR_ERR_MEMORY;

    for (long n = 0; err != 0; n++) {
        failing_memory_after(n);
        err = weir_store_redis_open(&rig.store, &options, &reason);
        failing_memory_stop();
        assert_true(err == 0 || err == WEIR_ERR_MEMORY);
        for (int i = 0; i < 3; i++)
            uv_run(&rig.loop, UV_RUN_NOWAIT); /* handles close */
        assert_true(n < 100);
    }
    rig.store->done = NULL;
    rig.closed = false;
}

/* Decides one, with the n-th allocation failing. Returns whether one failed. */
static bool decide_with(const struct weir_limit *limit, long n, uint8_t flags)
{
    struct rig_decision decision;
    char key[32];
    bool failed;

    store_rig_begin(&decision, WEIR_OP_DECIDE);
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = '\0';
    store_rig_add(&decision, limit, key, 1)->flags = flags;
    failing_memory_after(n);

    bool pending = store_rig_submit(&rig, &decision);

    rig.store->ops->flush(rig.store);
    failed = failing_memory_stop() != 0;
    if (pending && decision.decision.store_data == NULL && !decision.done)
        rig.store->ops->cancel(rig.store, &decision.decision); /* the engine's deadline */
    else if (pending)
        STORE_UNTIL(&rig, decision.done);
    assert_true(decision.error == 0 || decision.error == WEIR_ERR_FULL ||
                decision.error == WEIR_ERR_STORE);
    return failed;
}

TEST_WITH(set_up, tear_down, "a decision that finds no memory fails and the next does not")
{
    struct weir_limit limit = store_rig_limit(WEIR_GCRA, 1000000, 10 * SECOND);
    struct weir_store_redis_options options = store_rig_options(&rig);

    for (uint8_t leased = 0; leased < 2; leased++) {
        bool failed = true;

        for (long n = 0; failed; n++) {
            store_rig_open(&rig, &options);
            failed = false;
            for (int i = 0; i < 20; i++)
                failed |= decide_with(&limit, n, leased != 0 ? WEIR_CHECK_LEASED : 0);
            assert_int_equal(store_rig_take(&rig, &limit, "a", 1), WEIR_ALLOWED);
            store_rig_close(&rig);
            assert_true(n < 100);
        }
    }
}

RUN_TESTS()
