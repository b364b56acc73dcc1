/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of a map of standing while the writer changes it: what lasts is found at each look, what
 * moves is found whole, and lists change at one instant. Under the thread sanitizer, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>

#include "standing_test.h"
#include "test.h"

#ifdef MODEL_QUICK
#define ROUNDS 3000
#else
#define ROUNDS 100000
#endif

#define LASTING 50
#define MOVING 60
#define READERS 2

struct shared {
    struct weir_standing *map;
    atomic_bool done;
    atomic_int bad;
};

/* An entry whose fields all follow from its value and turn. */
static struct weir_standing_entry make(uint64_t number, uint64_t turn, uint8_t origin)
{
    struct weir_standing_entry one =
        entry((uint8_t)(1 + turn % 5), origin, 100 * S + turn * 1000 + number, "");

    one.since_ns = one.until_ns * 3;
    one.reason_size = (uint8_t)snprintf(one.reason, sizeof one.reason, "%llu-%llu-%0*d",
                                        (unsigned long long)number, (unsigned long long)turn % 7,
                                        (int)(turn % 50), 0);
    return one;
}

static bool is_whole(const struct weir_standing_entry *found, uint64_t number)
{
    uint64_t turn = (found->until_ns - 100 * S) / 1000;
    struct weir_standing_entry one = make(number, turn, found->origin);

    return found->until_ns == one.until_ns && found->since_ns == one.since_ns &&
           found->level == one.level && found->reason_size == one.reason_size &&
           memcmp(found->reason, one.reason, one.reason_size) == 0;
}

static void expect(struct shared *shared, bool holds)
{
    if (!holds)
        atomic_fetch_add(&shared->bad, 1);
}

static void look(struct shared *shared, uint64_t number)
{
    struct weir_standing_entry found;
    struct weir_address address = network_of(number).address;
    uint64_t id[2];
    bool any;

    address.bytes[3] = 7;
    user_id(shared->map, number, id);
    any = weir_standing_find(shared->map, id, S, &found);
    expect(shared, any || number >= LASTING);
    expect(shared, !any || is_whole(&found, number));
    any = weir_standing_find_address(shared->map, &address, S, &found);
    expect(shared, any || number >= LASTING);
    expect(shared, !any || is_whole(&found, number));
}

static void *read_all(void *data)
{
    struct shared *shared = data;

    for (uint64_t i = 0; !atomic_load(&shared->done); i++)
        look(shared, i % (LASTING + MOVING));
    return NULL;
}

/* The value `number` in the lists of an even turn is WARNED, of an odd one SUSPENDED: a reader that
 * finds neither saw the lists between two generations. */
static void *read_lists(void *data)
{
    struct shared *shared = data;

    while (!atomic_load(&shared->done))
        for (uint64_t i = 1000; i < 1010; i++)
            expect(shared, user_level(shared->map, i, S) > 0);
    return NULL;
}

static void set(struct shared *shared, uint64_t number, uint64_t turn, uint8_t origin)
{
    struct weir_standing_entry one = make(number, turn, origin);
    struct weir_cidr network = network_of(number);

    expect(shared, set_user(shared->map, number, one) == 0);
    expect(shared, weir_standing_set_network(shared->map, &network, &one) == 0);
}

static void set_lists(struct weir_standing *map, uint64_t turn)
{
    weir_standing_begin_lists(map);
    for (uint64_t i = 1000; i < 1010; i++) {
        struct weir_standing_entry one =
            entry(turn % 2 ? WEIR_STANDING_SUSPENDED : WEIR_STANDING_WARNED, WEIR_STANDING_BY_LIST,
                  WEIR_NEVER, "");

        assert_int_equal(set_user(map, i, one), 0);
    }
    weir_standing_end_lists(map);
}

static void change(struct shared *shared)
{
    for (uint64_t turn = 0; turn < ROUNDS; turn++) {
        uint64_t number = LASTING + turn * 7919 % MOVING, id[2];
        struct weir_cidr network = network_of(number);

        if (turn / 3 % 2) {
            user_id(shared->map, number, id);
            weir_standing_clear(shared->map, id, WEIR_STANDING_BY_PENALTY);
            weir_standing_clear_network(shared->map, &network, WEIR_STANDING_BY_PENALTY);
        } else {
            set(shared, number, turn, WEIR_STANDING_BY_PENALTY);
        }
        if (turn % 10 == 0)
            set(shared, turn / 10 % LASTING, turn, WEIR_STANDING_BY_OPERATOR);
        if (turn % 50 == 0)
            set_lists(shared->map, turn / 50);
    }
}

TEST("test readers see whole entries while the writer changes them")
{
    struct weir_standing_options options = {.entries_max = 1000, .secret = {1, 2}};
    struct shared shared = {.map = NULL};
    pthread_t readers[READERS], lists;

    assert_int_equal(weir_standing_create(&shared.map, &options, NULL), 0);
    for (uint64_t i = 0; i < LASTING; i++)
        set(&shared, i, 0, WEIR_STANDING_BY_OPERATOR);
    set_lists(shared.map, 0);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_all, &shared), 0);
    assert_int_equal(pthread_create(&lists, NULL, read_lists, &shared), 0);
    change(&shared);
    atomic_store(&shared.done, true);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_join(readers[i], NULL), 0);
    assert_int_equal(pthread_join(lists, NULL), 0);
    assert_int_equal(atomic_load(&shared.bad), 0);
    weir_standing_close(shared.map);
}

RUN_TESTS()
