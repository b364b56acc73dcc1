/* SPDX-License-Identifier: Apache-2.0 */
/* A decision in Redis allocates nothing, once as many have been in flight at a time. */
#include "allocations.h"
#include "store_rig.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define TURN 200

static struct store_rig rig;
static struct rig_decision decisions[TURN];

/* A turn of decisions of one or two checks on many keys, a denial among them now and then. */
static void turn(const struct weir_limit *limit, uint32_t number, uint8_t flags)
{
    uint32_t finished = rig.finished, pending = 0;

    for (uint32_t i = 0; i < TURN; i++) {
        char key[32];

        store_rig_begin(&decisions[i], WEIR_OP_DECIDE);
        snprintf(key, sizeof key, "key %u", (number * 7 + i) % 97);
        store_rig_add(&decisions[i], limit, key, i % 11 == 0 ? 1000 : 1)->flags = flags;
        if (i % 3 == 0) {
            snprintf(key, sizeof key, "other %u", (number + i) % 89);
            store_rig_add(&decisions[i], limit, key, 1)->flags = flags;
        }
        pending += store_rig_submit(&rig, &decisions[i]);
    }
    rig.store->ops->flush(rig.store);
    STORE_UNTIL(&rig, rig.finished == finished + pending);
}

/* Whether 100 turns in a row allocate nothing, in the first 2,000 turns: how many are needed until
 * pools are as large as the most decisions at one time depends on how slow the machine is. */
static bool settles(const struct weir_limit *limit, uint8_t flags)
{
    for (uint32_t round = 0; round < 20; round++) {
        uint64_t before = allocations;

        for (uint32_t i = 0; i < 100; i++)
            turn(limit, i, flags);
        if (allocations == before)
            return true;
    }
    return false;
}

static void run(uint8_t flags)
{
    struct weir_store_redis_options options;
    struct weir_limit limit = store_rig_limit(WEIR_GCRA, 1000, 10 * SECOND);

    store_rig_start(&rig);
    options = store_rig_options(&rig);
    store_rig_open(&rig, &options);
    for (uint32_t i = 0; i < 50; i++)
        turn(&limit, i, flags);
    assert_true(allocations > 0); /* they are counted */
    assert_true(settles(&limit, flags));
    assert_int_equal(rig.stats->errors, 0);
    store_rig_end(&rig);
}

TEST("exact decisions allocate nothing")
{
    run(0);
    assert_true(rig.finished > 100 * TURN / 2);
}

TEST("decisions from shares allocate nothing")
{
    run(WEIR_CHECK_LEASED);
}

RUN_TESTS()
