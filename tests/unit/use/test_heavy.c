/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "feature/use/heavy.h"
#include "test.h"
#include "zipf.h"

#define ROOM 1024
#ifdef MODEL_QUICK
#define KEYS 20000
#define DRAWS 200000
#define FLOOD 200000
#else
#define KEYS 100000
#define DRAWS 2000000
#define FLOOD 10000000
#endif

static const struct weir_bytes limit = {"limit", 5};

static void count(struct weir_heavy *heavy, uint32_t key, uint64_t weight)
{
    uint64_t hash[2];
    bool fresh;
    char text[16];
    zipf_hash(key, hash);
    struct weir_heavy_use *use = weir_heavy_count(heavy, hash, weight, &fresh);
    use->cost += weight;
    if (fresh) {
        int size = snprintf(text, sizeof text, "k%u", key);
        weir_heavy_name(heavy, limit, (struct weir_bytes){text, (size_t)size});
    }
}

static uint32_t key_of(const struct weir_heavy_entry *entry)
{
    char text[WEIR_HEAVY_TEXT_MAX + 1];
    unsigned key;
    memcpy(text, entry->text, entry->text_size);
    text[entry->text_size] = 0;
    assert_int_equal(sscanf(text, "k%u", &key), 1);
    return key;
}

/* Counts are between the true one and `error` above it, no error is above W / m, and each item
 * above W / m is there. */
static void check_stated_error(const struct weir_heavy *heavy, const struct zipf *zipf,
                               uint64_t weight)
{
    uint64_t total = weir_heavy_weight(heavy), most = total / weir_heavy_room(heavy);
    uint32_t heavy_keys = 0, found = 0;
    for (uint32_t i = 0; i < zipf->keys; i++)
        heavy_keys += zipf->counts[i] * weight > most;
    for (uint32_t i = 0; i < weir_heavy_used(heavy); i++) {
        struct weir_heavy_entry entry;
        weir_heavy_get(heavy, i, &entry);
        uint64_t exact = zipf->counts[key_of(&entry)] * weight;
        assert_true(entry.count >= exact);
        assert_true(entry.count - entry.error <= exact);
        assert_true(entry.error <= most);
        assert_true(entry.use.cost <= exact);
        found += exact > most;
    }
    assert_int_equal(found, heavy_keys);
    assert_true(weir_heavy_floor(heavy) <= most);
}

TEST("counts are within the stated error of exact ones")
{
    static const double exponents[] = {0.6, 1.0, 1.4};
    for (size_t e = 0; e < 3; e++) {
        struct zipf zipf;
        struct weir_heavy *heavy;
        zipf_open(&zipf, KEYS, exponents[e], e);
        assert_int_equal(weir_heavy_open(&heavy, ROOM), 0);
        for (uint32_t i = 0; i < DRAWS; i++)
            count(heavy, zipf_next(&zipf), 1);
        assert_int_equal(weir_heavy_weight(heavy), DRAWS);
        check_stated_error(heavy, &zipf, 1);
        weir_heavy_close(heavy);
        zipf_close(&zipf);
    }
}

TEST("merged counts are within the stated error")
{
    struct zipf zipf;
    struct weir_heavy *parts[4], *all;
    zipf_open(&zipf, KEYS, 1.0, 7);
    assert_int_equal(weir_heavy_open(&all, ROOM), 0);
    for (int p = 0; p < 4; p++) {
        assert_int_equal(weir_heavy_open(&parts[p], ROOM), 0);
        for (uint32_t i = 0; i < DRAWS / 4; i++)
            count(parts[p], zipf_next(&zipf), 3);
        assert_int_equal(weir_heavy_merge(all, parts[p]), 0);
    }
    assert_int_equal(weir_heavy_weight(all), (uint64_t)DRAWS / 4 * 4 * 3);
    check_stated_error(all, &zipf, 3);
    /* and counting continues in what was merged */
    for (uint32_t i = 0; i < DRAWS / 4; i++)
        count(all, zipf_next(&zipf), 3);
    check_stated_error(all, &zipf, 3);
    for (int p = 0; p < 4; p++)
        weir_heavy_close(parts[p]);
    weir_heavy_close(all);
    zipf_close(&zipf);
}

TEST("a flood of keys takes no more memory and hides no heavy key")
{
    struct weir_heavy *heavy;
    struct weir_heavy_entry entry;
    bool found = false;
    assert_int_equal(weir_heavy_open(&heavy, ROOM), 0);
    for (uint32_t i = 0; i < FLOOD; i++) {
        count(heavy, i + 1, 1);
        if (i % 500 == 0)
            count(heavy, 0, 1);
    }
    assert_int_equal(weir_heavy_used(heavy), ROOM);
    for (uint32_t i = 0; i < ROOM; i++) {
        weir_heavy_get(heavy, i, &entry);
        found |= key_of(&entry) == 0;
    }
    assert_true(found);
    weir_heavy_close(heavy);
}

TEST("long texts are cut between characters and told apart by their hash")
{
    struct weir_heavy *heavy;
    struct weir_heavy_entry entry;
    char text[400], name[200];
    bool fresh;
    memset(name, 'n', sizeof name);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "\xc3\xa9"[i % 2];
    assert_int_equal(weir_heavy_open(&heavy, 2), 0);
    (void)weir_heavy_count(heavy, (const uint64_t[2]){0x1234, 1}, 1, &fresh);
    weir_heavy_name(heavy, (struct weir_bytes){name, sizeof name},
                    (struct weir_bytes){text, sizeof text});
    weir_heavy_get(heavy, 0, &entry);
    assert_int_equal(entry.name_size, WEIR_HEAVY_NAME_MAX);
    assert_true(entry.text_size <= WEIR_HEAVY_TEXT_MAX);
    assert_memory_equal(entry.text + entry.text_size - 17, "~0000000000001234", 17);
    assert_int_equal((unsigned char)entry.text[entry.text_size - 18], 0xa9);
    weir_heavy_close(heavy);
}

TEST("the route of most observations is kept")
{
    struct weir_heavy_use use = {0};
    for (int i = 0; i < 30; i++)
        weir_heavy_vote(&use, i % 3 == 0 ? 5 : 9, 16);
    assert_int_equal(use.route, 9);
    assert_true(use.route_votes > 0);
}

RUN_TESTS()
