/* SPDX-License-Identifier: Apache-2.0 */
/* The map of standing beside a slow model, an array that every look-up scans: random values, ends,
 * networks, lists and sizes, most of the time full. Times are all different where something may
 * have to go, so that the model says which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/text/siphash.h"
#include "draw.h"
#include "feature/standing/standing.h"
#include "test.h"

#ifdef MODEL_QUICK
#define OPERATIONS 20000
#else
#define OPERATIONS 150000
#endif

#define VALUES 120 /* exact ones; networks are drawn from a small part of each family */
#define RECORDS_MAX 400

static uint64_t drawn; /* the state of the draw */

static uint64_t roll(uint64_t below)
{
    return draw_below(&drawn, below);
}

struct record {
    uint64_t id[2];
    struct weir_cidr network; /* family 0: an exact value */
    struct weir_standing_entry entry;
    unsigned lists;
    bool seen; /* since all were begun */
};

struct model {
    struct record records[RECORDS_MAX];
    size_t count, max;
    unsigned generation;
    bool building, replacing;
    uint64_t evicted;
};

static bool same_value(const struct record *a, const struct record *b)
{
    return a->id[0] == b->id[0] && a->id[1] == b->id[1] && a->network.bits == b->network.bits &&
           memcmp(&a->network.address, &b->network.address, sizeof a->network.address) == 0;
}

static void drop(struct model *model, size_t at)
{
    model->records[at] = model->records[--model->count];
}

static bool make_room(struct model *model, uint8_t origin)
{
    size_t penalties = 0, best = SIZE_MAX;

    for (size_t i = 0; i < model->count; i++)
        penalties += model->records[i].entry.origin == WEIR_STANDING_BY_PENALTY;

    bool crowd = origin == WEIR_STANDING_BY_PENALTY && penalties >= model->max / 2;

    if (!crowd && model->count < model->max)
        return true;
    for (size_t i = 0; i < model->count; i++) {
        const struct weir_standing_entry *one = &model->records[i].entry;

        if (one->origin == WEIR_STANDING_BY_OPERATOR || one->level == WEIR_STANDING_REVOKED ||
            (crowd && one->origin != WEIR_STANDING_BY_PENALTY))
            continue;
        if (best == SIZE_MAX || one->until_ns < model->records[best].entry.until_ns)
            best = i;
    }
    if (best == SIZE_MAX)
        return false;
    drop(model, best);
    model->evicted++;
    return true;
}

static struct record *find(struct model *model, const struct record *like, unsigned lists)
{
    for (size_t i = 0; i < model->count; i++) {
        struct record *one = &model->records[i];

        if (same_value(one, like) && one->entry.origin == like->entry.origin &&
            (like->entry.origin != WEIR_STANDING_BY_LIST || (one->lists & lists) != 0))
            return one;
    }
    return NULL;
}

static unsigned bit(const struct model *model)
{
    return 1U << ((model->generation + model->building) & 1);
}

static int model_set(struct model *model, struct record *record)
{
    bool listed = record->entry.origin == WEIR_STANDING_BY_LIST;
    struct record *old;

    record->lists = listed ? bit(model) : 0;
    old = find(model, record, record->lists);
    if (listed && old) {
        if (!weir_standing_before(&record->entry, &old->entry))
            return 0;
        old->lists &= ~record->lists;
        if (old->lists == 0)
            drop(model, (size_t)(old - model->records));
    } else if (old) {
        old->entry = record->entry;
        old->seen = true;
        return 0;
    } else if (listed && model->building) {
        old = find(model, record, 3);
        if (old && old->entry.level == record->entry.level &&
            old->entry.until_ns == record->entry.until_ns &&
            old->entry.reason_size == record->entry.reason_size &&
            memcmp(old->entry.reason, record->entry.reason, old->entry.reason_size) == 0) {
            old->lists |= record->lists;
            return 0;
        }
    }
    if (!make_room(model, record->entry.origin))
        return WEIR_ERR_FULL;
    record->seen = true;
    model->records[model->count++] = *record;
    return 0;
}

static void leave(struct model *model, unsigned lists)
{
    for (size_t i = model->count; i-- > 0;) {
        struct record *one = &model->records[i];

        if (one->entry.origin != WEIR_STANDING_BY_LIST || (one->lists & lists) == 0)
            continue;
        one->lists &= ~lists;
        if (one->lists == 0)
            drop(model, i);
    }
}

static bool model_clear(struct model *model, const struct record *like)
{
    struct record *one = find(model, like, bit(model));

    if (!one)
        return false;
    one->lists &= ~bit(model);
    if (one->lists == 0)
        drop(model, (size_t)(one - model->records));
    return true;
}

static bool model_look(const struct model *model, const struct record *like,
                       const struct weir_address *address, uint64_t now_ns,
                       struct weir_standing_entry *entry)
{
    bool found = false;

    for (size_t i = 0; i < model->count; i++) {
        const struct record *one = &model->records[i];
        bool there =
            address ? one->network.address.family != 0 && weir_cidr_contains(&one->network, address)
                    : same_value(one, like);

        if (!there || one->entry.until_ns <= now_ns ||
            (one->entry.origin == WEIR_STANDING_BY_LIST &&
             (one->lists & 1U << (model->generation & 1)) == 0))
            continue;
        if (!found)
            *entry = one->entry;
        else
            weir_standing_join(entry, &one->entry);
        found = true;
    }
    return found;
}

/* An address of a small part of one family, so that networks contain one another. */
static struct weir_address draw_address(void)
{
    struct weir_address address = {.family = roll(2) ? 4 : 6};
    size_t size = address.family == 4 ? 4 : 16;

    for (size_t i = 0; i < size; i++)
        address.bytes[i] = (uint8_t)(roll(4) ? 0 : roll(2) ? 255 : roll(3));
    return address;
}

static void draw_value(const struct weir_standing *map, struct record *record)
{
    static const uint8_t common6[] = {0, 32, 48, 56, 64, 64, 64, 128, 128};
    uint64_t user = roll(VALUES);

    memset(record, 0, sizeof *record);
    if (roll(2)) {
        weir_standing_id(map, (struct weir_bytes){"user", 4},
                         (struct weir_bytes){(const char *)&user, sizeof user}, record->id);
        return;
    }
    record->network.address = draw_address();
    if (record->network.address.family == 4)
        record->network.bits = (uint8_t)(roll(2) ? 32 : roll(33));
    else
        record->network.bits = roll(2) ? common6[roll(sizeof common6)] : (uint8_t)roll(129);
    weir_address_mask(&record->network.address, record->network.bits);
}

static void draw_entry(struct record *record, uint64_t now_ns, uint64_t operation)
{
    struct weir_standing_entry *entry = &record->entry;
    uint64_t hash[2], reason = roll(5);
    char text[64];

    entry->level = (uint8_t)roll(WEIR_STANDING_LEVELS);
    entry->origin = (uint8_t)roll(WEIR_STANDING_ORIGINS);
    /* Few lasting ones, else nothing can go. */
    if (entry->level == WEIR_STANDING_REVOKED && roll(8))
        entry->level = WEIR_STANDING_WARNED;
    if (entry->origin == WEIR_STANDING_BY_OPERATOR && roll(3))
        entry->origin = WEIR_STANDING_BY_PENALTY;
    entry->since_ns = now_ns;
    entry->until_ns = now_ns + roll(200) * 1000000 + operation; /* all are different */
    if (entry->origin == WEIR_STANDING_BY_LIST) {
        /* Lists say the same again. */
        entry->since_ns = 1;
        entry->level = WEIR_STANDING_WARNED + (uint8_t)(roll(8) == 0);
        weir_siphash128(record->id, &record->network, sizeof record->network, hash);
        entry->until_ns = UINT64_C(1) << 62 | (hash[0] >> 2 ^ entry->level ^ reason << 3);
    }
    entry->reason_size = (uint8_t)snprintf(text, sizeof text, "%s %u", "reason number",
                                           (unsigned)reason * entry->level);
    memcpy(entry->reason, text, entry->reason_size);
}

static void expect_same(bool found, const struct weir_standing_entry *entry, bool model_found,
                        const struct weir_standing_entry *model_entry)
{
    assert_int_equal(found, model_found);
    if (!found)
        return;
    assert_int_equal(entry->level, model_entry->level);
    assert_int_equal(entry->origin, model_entry->origin);
    assert_int_equal(entry->since_ns, model_entry->since_ns);
    assert_int_equal(entry->until_ns, model_entry->until_ns);
    assert_int_equal(entry->reason_size, model_entry->reason_size);
    assert_memory_equal(entry->reason, model_entry->reason, entry->reason_size);
}

static void look(struct weir_standing *map, struct model *model, uint64_t now_ns)
{
    struct weir_standing_entry entry, model_entry;
    struct record record;

    draw_value(map, &record);
    if (record.network.address.family == 0) {
        bool found = weir_standing_find(map, record.id, now_ns, &entry);

        expect_same(found, &entry, model_look(model, &record, NULL, now_ns, &model_entry),
                    &model_entry);
        return;
    }

    struct weir_address address = draw_address();
    bool found = weir_standing_find_address(map, &address, now_ns, &entry);

    expect_same(found, &entry, model_look(model, NULL, &address, now_ns, &model_entry),
                &model_entry);
}

static void clear(struct weir_standing *map, struct model *model)
{
    struct record record;
    bool cleared;

    draw_value(map, &record);
    record.entry.origin = (uint8_t)roll(WEIR_STANDING_ORIGINS);
    cleared = record.network.address.family == 0
                  ? weir_standing_clear(map, record.id, record.entry.origin)
                  : weir_standing_clear_network(map, &record.network, record.entry.origin);
    assert_int_equal(cleared, model_clear(model, &record));
}

static void set(struct weir_standing *map, struct model *model, uint64_t now_ns, uint64_t operation)
{
    struct record record;
    int err;

    draw_value(map, &record);
    draw_entry(&record, now_ns, operation);
    err = record.network.address.family == 0
              ? weir_standing_set(map, record.id, &record.entry)
              : weir_standing_set_network(map, &record.network, &record.entry);
    assert_int_equal(err, model_set(model, &record));
}

static void change_lists(struct weir_standing *map, struct model *model)
{
    if (!model->building) {
        weir_standing_begin_lists(map);
        model->building = true;
    } else if (roll(4)) {
        weir_standing_end_lists(map);
        leave(model, 1U << (model->generation & 1));
        model->generation++;
        model->building = false;
    } else {
        weir_standing_cancel_lists(map);
        leave(model, bit(model));
        model->building = false;
    }
}

/* Begins to set all entries of operators and penalties anew, or ends it. */
static void change_all(struct weir_standing *map, struct model *model)
{
    bool ends = model->replacing && roll(4) > 0;

    for (size_t i = model->count; i-- > 0;) {
        struct record *one = &model->records[i];

        if (ends && !one->seen && one->entry.origin != WEIR_STANDING_BY_LIST)
            drop(model, i);
        else if (!model->replacing)
            one->seen = false;
    }
    if (!model->replacing)
        assert_int_equal(weir_standing_begin_all(map), 0);
    else if (ends)
        weir_standing_end_all(map);
    else
        weir_standing_cancel_all(map);
    model->replacing = !model->replacing;
}

static void sweep(struct weir_standing *map, struct model *model, uint64_t now_ns)
{
    size_t swept = 0;

    for (size_t i = model->count; i-- > 0;)
        if (model->records[i].entry.until_ns <= now_ns) {
            drop(model, i);
            swept++;
        }
    assert_int_equal(weir_standing_sweep(map, now_ns, SIZE_MAX), swept);
}

static void expect_counts(const struct weir_standing *map, const struct model *model)
{
    size_t levels[WEIR_STANDING_LEVELS][WEIR_STANDING_ORIGINS] = {{0}};
    struct weir_standing_stats stats;

    for (size_t i = 0; i < model->count; i++)
        levels[model->records[i].entry.level][model->records[i].entry.origin]++;
    weir_standing_stats(map, &stats);
    assert_int_equal(stats.entries, model->count);
    assert_int_equal(stats.evicted, model->evicted);
    assert_memory_equal(stats.levels, levels, sizeof levels);
    assert_int_equal(weir_standing_any(map), model->count > 0);
}

static void run(uint64_t seed, size_t entries_max)
{
    struct weir_standing_options options = {.entries_max = entries_max, .secret = {seed, 2}};
    struct model *model = calloc(1, sizeof *model);
    struct weir_standing *map = NULL;
    uint64_t now_ns = 1000;

    assert_non_null(model);
    model->max = entries_max;
    drawn = seed;
    assert_int_equal(weir_standing_create(&map, &options, NULL), 0);
    for (uint64_t operation = 0; operation < OPERATIONS / 4; operation++) {
        uint64_t what = roll(1000);

        now_ns += roll(3) ? 0 : roll(4000000);
        if (what < 500)
            look(map, model, now_ns);
        else if (what < 900)
            set(map, model, now_ns, operation);
        else if (what < 980)
            clear(map, model);
        else if (what < 992)
            change_lists(map, model);
        else if (what < 995)
            change_all(map, model);
        else
            sweep(map, model, now_ns);
        if (operation % 64 == 0)
            expect_counts(map, model);
    }
    weir_standing_close(map);
    free(model);
}

TEST("test a small map that is always full does what the model does")
{
    run(1, 16);
    run(2, 31);
}

TEST("test a larger map does what the model does")
{
    run(3, 100);
    run(4, RECORDS_MAX);
}

RUN_TESTS()
