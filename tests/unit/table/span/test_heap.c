/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of spans, beside a list of what is taken: no two overlap, sizes fit, all comes back. */
#include "../table_test.h"
#include "test.h"

#include <stdlib.h>

#include "table/owner.h"
#include "table/span/heap.h"
#include "table/undo.h"

#define SPANS 2000

struct taken {
    uint64_t offset;
    uint32_t words;
    uint64_t stamp;
};

struct fixture {
    struct weir_table *table;
    struct weir_table_owner *owner;
    struct taken spans[SPANS];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->table =
        open_table(&(struct weir_table_options){.bytes = UINT64_C(4) << 20, .span_percent = 50});
    f->owner = attach(f->table);
    assert_true(owner_lock(f->owner, &f->table->header->heap_lock));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    owner_unlock(&f->table->header->heap_lock);
    weir_table_detach(f->owner);
    weir_table_close(f->table);
    free(f);
    return 0;
}

static void take(struct fixture *f, struct taken *span, uint32_t words, uint64_t stamp)
{
    span->offset = heap_take(f->owner, words);
    if (span->offset == 0)
        return;
    span->words = words;
    span->stamp = stamp;

    uint64_t *at = heap_span(f->table, span->offset, words);

    assert_non_null(at);
    for (uint32_t i = 0; i < words; i++) {
        assert_int_equal(at[i], 0);
        at[i] = stamp + i;
    }
}

static void give(struct fixture *f, struct taken *span)
{
    const uint64_t *at = heap_span(f->table, span->offset, span->words);

    for (uint32_t i = 0; i < span->words; i++)
        assert_int_equal(at[i], span->stamp + i);
    heap_give(f->owner, span->offset);
    assert_null(heap_span(f->table, span->offset, span->words));
    span->offset = 0;
}

static uint32_t random_words(uint64_t *random)
{
    switch (next_random(random) % 8) {
    case 0:
        return 1 + (uint32_t)(next_random(random) % 3000); /* up to a run of pages */
    case 1:
        return 1 + (uint32_t)(next_random(random) % 511);
    default:
        return 2 + (uint32_t)(next_random(random) % 30);
    }
}

TEST_WITH(set_up, tear_down, "spans never overlap and all memory comes back")
{
    struct fixture *f = *state;
    uint64_t random = 7, failures = 0;

    for (uint32_t round = 0; round < 100000; round++) {
        struct taken *span = &f->spans[next_random(&random) % SPANS];

        if (span->offset != 0) {
            give(f, span);
        } else {
            take(f, span, random_words(&random), (uint64_t)round << 20);
            failures += span->offset == 0;
        }
        undo_finish(f->owner);
        if (round % 5000 == 0)
            assert_true(heap_consistent(f->table));
    }
    assert_true(failures > 0); /* it was full at times */
    for (uint32_t i = 0; i < SPANS; i++)
        if (f->spans[i].offset != 0)
            give(f, &f->spans[i]);
    undo_finish(f->owner);
    assert_true(heap_consistent(f->table));
    assert_int_equal(heap_used(f->table), 0);
    assert_int_equal(heap_spans(f->table), 0);
    assert_int_equal(f->table->header->pages_free, f->table->header->pages);
}

/* Takes all pages, in spans of a page each. Returns their number. */
static uint32_t fill_pages(struct fixture *f)
{
    uint32_t count = 0;

    for (;; count++) {
        take(f, &f->spans[count], PAGE_WORDS - 1, count);
        undo_finish(f->owner);
        if (f->spans[count].offset == 0)
            return count;
    }
}

/* Pages that are free lie side by side or not, and only then a run finds room. */
TEST_WITH(set_up, tear_down, "a run finds pages that became free since none was found")
{
    struct fixture *f = *state;
    const uint32_t page = PAGE_WORDS - 1, run = 2 * PAGE_WORDS - 1;
    uint32_t count = fill_pages(f), left;

    give(f, &f->spans[100]);
    give(f, &f->spans[200]);
    undo_finish(f->owner);
    assert_int_equal(heap_take(f->owner, run), 0);
    /* As many are free again, but two of them are neighbours. */
    take(f, &f->spans[count], page, count);
    left = f->spans[count].offset == f->spans[99].offset + TABLE_PAGE ? 200 : 100;
    give(f, &f->spans[left + 1]);
    undo_finish(f->owner);
    assert_int_equal(f->table->header->pages_free, 2);
    assert_int_not_equal(heap_take(f->owner, run), 0);
    undo_finish(f->owner);
}

TEST_WITH(set_up, tear_down, "a run finds pages that a cancelled one gave back")
{
    struct fixture *f = *state;
    const uint32_t page = PAGE_WORDS - 1, run = 2 * PAGE_WORDS - 1;

    fill_pages(f);
    give(f, &f->spans[100]);
    give(f, &f->spans[101]);
    give(f, &f->spans[200]);
    undo_finish(f->owner);
    /* One of the two neighbours is taken, for a moment, and later the third page. */
    f->table->header->page_hint = (f->spans[99].offset - f->table->fixed.spans_at) / TABLE_PAGE;
    assert_int_not_equal(heap_take(f->owner, page), 0);
    assert_int_equal(heap_take(f->owner, run), 0);
    undo_cancel(f->owner);
    f->table->header->page_hint = (f->spans[199].offset - f->table->fixed.spans_at) / TABLE_PAGE;
    assert_int_not_equal(heap_take(f->owner, page), 0);
    undo_finish(f->owner);
    assert_int_equal(f->table->header->pages_free, 2);
    assert_int_not_equal(heap_take(f->owner, run), 0);
    undo_finish(f->owner);
}

TEST_WITH(set_up, tear_down, "what is cancelled never happened")
{
    struct fixture *f = *state;
    uint64_t random = 9;

    for (uint32_t i = 0; i < 300; i++)
        take(f, &f->spans[i], random_words(&random), i);
    undo_finish(f->owner);

    uint64_t used = heap_used(f->table), spans = heap_spans(f->table);
    uint64_t gone = f->spans[0].offset;

    for (uint32_t i = 300; i < 320; i++)
        take(f, &f->spans[i], random_words(&random), i);
    heap_give(f->owner, gone);
    undo_cancel(f->owner);
    assert_true(heap_consistent(f->table));
    assert_int_equal(heap_used(f->table), used);
    assert_int_equal(heap_spans(f->table), spans);
    assert_non_null(heap_span(f->table, gone, f->spans[0].words));
}

TEST_WITH(set_up, tear_down, "an offset that is no span is refused")
{
    struct fixture *f = *state;

    take(f, &f->spans[0], 10, 1);
    take(f, &f->spans[1], 2000, 1);
    undo_finish(f->owner);

    const uint64_t bad[] = {
        0,
        8,
        f->table->header->spans_at - 8,
        f->spans[0].offset + 8,
        f->spans[0].offset + 96 * 3, /* the same class, but free */
        f->spans[1].offset + TABLE_PAGE,
        f->table->header->bytes,
        UINT64_MAX,
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_null(heap_span(f->table, bad[i], 1));
        heap_give(f->owner, bad[i]);
    }
    assert_null(heap_span(f->table, f->spans[0].offset, 12)); /* too large for its class */
    assert_int_equal(f->owner->slot->undo_count, 0);
    assert_true(heap_consistent(f->table));
}

TEST_WITH(set_up, tear_down, "walking finds every span of a page")
{
    struct fixture *f = *state;
    uint64_t found = 0;

    for (uint32_t i = 0; i < 60; i++)
        take(f, &f->spans[i], 100, i);
    for (uint32_t i = 60; i < 100; i++)
        take(f, &f->spans[i], i * 20, i); /* some of them runs */
    undo_finish(f->owner);
    for (uint64_t page = 0; page < f->table->header->pages; page++) {
        uint64_t span, last = 0;
        uint32_t at = 0;

        if (f->table->pages[page].kind == PAGE_RUN_REST) /* of a run that was counted already */
            continue;
        while ((span = heap_next_in(f->table, page, &at)) != 0) {
            bool known = false;

            assert_true(span > last);
            last = span;
            for (uint32_t i = 0; i < 100; i++)
                known = known || f->spans[i].offset == span;
            assert_true(known);
            found++;
        }
    }
    assert_int_equal(found, 100);
}

TEST_WITH(set_up, tear_down, "a span is taken in another page")
{
    struct fixture *f = *state;

    for (uint32_t i = 0; i < 4; i++)
        take(f, &f->spans[i], 100, i);
    undo_finish(f->owner);
    for (uint32_t i = 4; i < 8; i++) {
        uint64_t offset = heap_take_remote(f->owner, f->spans[0].offset);

        assert_int_not_equal(offset, 0);
        assert_int_not_equal((offset - f->table->header->spans_at) / TABLE_PAGE,
                             (f->spans[0].offset - f->table->header->spans_at) / TABLE_PAGE);
        assert_int_equal(heap_words(f->table, offset), heap_words(f->table, f->spans[0].offset));
        undo_finish(f->owner);
    }
    assert_true(heap_consistent(f->table));
}

/* Somebody has written over the file: the run of pages that a span seems to be is longer than the
 * journal. Nothing is written behind the journal's end, where the descriptions of pages stand. */
TEST("a run that is longer than the journal is taken back")
{
    struct weir_table *table = open_table(&(struct weir_table_options){
        .bytes = UINT64_C(64) << 20, .span_percent = 60, .sparse = true});
    struct weir_table_owner *owner = attach(table);
    uint64_t pages = table->fixed.pages, size = pages * sizeof *table->pages;
    struct table_page *before = malloc(size);
    uint64_t offset;

    assert_true(pages > UNDO_OWN + layout_spill_entries(&table->fixed));
    assert_true(owner_lock(owner, &table->header->heap_lock));
    offset = heap_take(owner, PAGE_WORDS - 1);
    assert_int_equal(offset, table->fixed.spans_at);
    assert_true(undo_finish(owner));
    for (uint64_t i = 0; i < pages; i++)
        table->pages[i].kind = PAGE_RUN_REST;
    table->pages[0] = (struct table_page){.kind = PAGE_RUN, .run = (uint32_t)pages};
    memcpy(before, table->pages, size);
    heap_give(owner, offset);
    assert_false(undo_finish(owner));
    assert_memory_equal(table->pages, before, size);
    assert_int_equal(owner->slot->undo_count, 0);
    assert_int_equal(table->header->spill_lock, 0);
    free(before);
    owner_unlock(&table->header->heap_lock);
    weir_table_detach(owner);
    weir_table_close(table);
}

RUN_TESTS()
