/* SPDX-License-Identifier: Apache-2.0 */
/* see heap.h */
#include "table/span/heap.h"

#include <string.h>

#include "core/span/span.h"
#include "table/undo.h"

#define BITMAP_WORDS 4
_Static_assert(sizeof(struct table_page) == 8 + 8 * BITMAP_WORDS, "a bit for each span of 2 words");
_Static_assert(PAGE_WORDS / 2 <= 64 * BITMAP_WORDS, "a bit for each span of 2 words");

/* Words of the spans of each class: a half or a third more than in the class before. Where only a
 * few spans fill a page, they are as large as the page allows. */
static const uint16_t sizes[SPAN_CLASSES] = {
    2,
    3,
    4,
    6,
    8,
    12,
    16,
    24,
    32,
    PAGE_WORDS / 11,
    PAGE_WORDS / 8,
    PAGE_WORDS / 6,
    PAGE_WORDS / 5,
    PAGE_WORDS / 4,
    PAGE_WORDS / 3,
    PAGE_WORDS / 2,
    PAGE_WORDS,
};

static uint32_t class_words(uint32_t class)
{
    return sizes[class];
}

static uint32_t class_of(uint32_t words)
{
    uint32_t class = 0;

    while (class_words(class) < words)
        class ++;
    return class;
}

static uint32_t class_capacity(uint32_t class)
{
    return PAGE_WORDS / class_words(class);
}

static uint32_t pages_for(uint32_t words)
{
    return (words + PAGE_WORDS - 1) / PAGE_WORDS;
}

/* The first 8 bytes of a page's description, read and written as one word. */
union head {
    uint64_t word;
    struct {
        uint8_t kind, span_class;
        uint16_t used;
        uint32_t run;
    };
};

static union head head_of(const struct weir_table *table, uint64_t page)
{
    const uint64_t *word = (const uint64_t *)(const void *)&table->pages[page];

    return (union head){.word = __atomic_load_n(word, __ATOMIC_RELAXED)};
}

static void write_word(struct weir_table_owner *owner, uint64_t *word, uint64_t value)
{
    if (undo_save64(owner, word))
        __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static void write_head(struct weir_table_owner *owner, uint64_t page, union head head)
{
    write_word(owner, (uint64_t *)(void *)&owner->table->pages[page], head.word);
}

static void add(struct weir_table_owner *owner, uint64_t *counter, int64_t change)
{
    write_word(owner, counter, *counter + (uint64_t)change);
}

static uint64_t page_offset(const struct weir_table *table, uint64_t page)
{
    return table->fixed.spans_at + page * TABLE_PAGE;
}

#define NO_PAGE UINT64_MAX

/* The first page from *hint on, wrapping around, that is free, or (class >= 0) cut for the class
 * and not full; `skip` is left out. Returns the number of pages when there is none; sets *hint to
 * the page that was found. */
static uint64_t search(struct weir_table *table, uint64_t *hint, int class, uint64_t skip)
{
    uint64_t pages = table->fixed.pages, at = __atomic_load_n(hint, __ATOMIC_RELAXED);

    if (at >= pages)
        at = 0;

    for (uint64_t tries = 0; tries < pages; tries++, at = at + 1 < pages ? at + 1 : 0) {
        union head head = head_of(table, at);

        if (at == skip)
            continue;
        if (class < 0 ? head.kind == PAGE_FREE
                      : head.kind == PAGE_CUT && head.span_class == class &&
                            head.used < class_capacity((uint32_t) class)) {
            *hint = at;
            return at;
        }
    }
    return pages;
}

/* Takes the first free span of a page that is cut and not full. */
static uint64_t take_from(struct weir_table_owner *owner, uint64_t page, uint32_t class)
{
    struct weir_table *table = owner->table;
    union head head = head_of(table, page);

    for (uint32_t i = 0; i < class_capacity(class); i++) {
        uint64_t *word = &table->pages[page].bitmap[i / 64];

        if (*word == UINT64_MAX) {
            i |= 63;
            continue;
        }
        if ((*word >> i % 64) & 1)
            continue;
        write_word(owner, word, *word | UINT64_C(1) << i % 64);
        head.used++;
        write_head(owner, page, head);
        add(owner, &table->header->class_free[class], -1);
        return page_offset(table, page) + (uint64_t)i * class_words(class) * 8;
    }
    return 0;
}

static uint64_t take_class(struct weir_table_owner *owner, uint32_t class, uint64_t skip)
{
    struct weir_table *table = owner->table;
    struct table_header *header = table->header;
    uint64_t page = table->fixed.pages;

    if (header->class_free[class] > 0)
        page = search(table, &header->class_hint[class], (int)class, skip);
    if (page == table->fixed.pages) {
        if (header->pages_free == 0)
            return 0;
        page = search(table, &header->page_hint, -1, NO_PAGE);
        if (page == table->fixed.pages)
            return 0;
        for (uint32_t i = 0; i < BITMAP_WORDS; i++)
            write_word(owner, &table->pages[page].bitmap[i], 0);
        write_head(owner, page, (union head){.kind = PAGE_CUT, .span_class = (uint8_t) class});
        add(owner, &header->pages_free, -1);
        add(owner, &header->class_free[class], class_capacity(class));
        header->class_hint[class] = page;
    }
    return take_from(owner, page, class);
}

static uint64_t page_frees(const struct table_header *header)
{
    return __atomic_load_n(&header->page_frees, __ATOMIC_RELAXED);
}

/* The first `count` adjacent free pages from `from` on. Returns the number of pages when there are
 * none. */
static uint64_t find_run(const struct weir_table *table, uint64_t from, uint32_t count)
{
    uint64_t pages = table->fixed.pages, length = 0;

    for (uint64_t at = from; at < pages; at++) {
        length = head_of(table, at).kind == PAGE_FREE ? length + 1 : 0;
        if (length == count)
            return at + 1 - count;
    }
    return pages;
}

/* Takes a run of free pages. Looking for one walks over all pages, so an owner that found none does
 * not look again until a page has become free. */
static uint64_t take_run(struct weir_table_owner *owner, uint32_t count)
{
    struct weir_table *table = owner->table;
    const struct table_header *header = table->header;
    uint64_t hint = header->page_hint, start;

    if (header->pages_free < count ||
        (owner->no_run <= count && owner->no_run_frees == page_frees(header)))
        return 0;
    start = find_run(table, hint > count ? hint - count : 0, count);
    if (start == table->fixed.pages)
        start = find_run(table, 0, count);
    owner->no_run = UINT32_MAX;
    if (start == table->fixed.pages) {
        owner->no_run = count;
        owner->no_run_frees = page_frees(header);
        return 0;
    }
    add(owner, &table->header->pages_free, -(int64_t)count);
    write_head(owner, start, (union head){.kind = PAGE_RUN, .run = count});
    for (uint64_t i = 1; i < count; i++)
        write_head(owner, start + i, (union head){.kind = PAGE_RUN_REST});
    return page_offset(table, start);
}

uint32_t heap_round(uint32_t words)
{
    uint32_t size = words + 1;

    return (size > PAGE_WORDS ? pages_for(size) * PAGE_WORDS : class_words(class_of(size))) - 1;
}

uint64_t heap_bytes(uint32_t words)
{
    uint32_t size = words + 1;

    return size > PAGE_WORDS ? (uint64_t)pages_for(size) * TABLE_PAGE
                             : TABLE_PAGE / class_capacity(class_of(size));
}

uint64_t heap_take(struct weir_table_owner *owner, uint32_t words)
{
    uint32_t size = words + 1;
    uint64_t offset = size > PAGE_WORDS ? take_run(owner, pages_for(size))
                                        : take_class(owner, class_of(size), NO_PAGE);

    if (owner->unsaved)
        return 0;
    if (offset != 0) {
        memset(owner->table->base + offset, 0, (size_t)size * 8);
        *heap_owner_of(owner->table, offset) = SPAN_UNOWNED;
    }
    return offset;
}

uint64_t heap_take_remote(struct weir_table_owner *owner, uint64_t offset)
{
    uint64_t page = (offset - owner->table->fixed.spans_at) / TABLE_PAGE;
    union head head = head_of(owner->table, page);
    uint64_t taken = 0;

    if (head.kind == PAGE_CUT && head.span_class < SPAN_CLASSES)
        taken = take_class(owner, head.span_class, page);
    if (taken != 0)
        memset(owner->table->base + taken, 0, (size_t)class_words(head.span_class) * 8);
    return taken;
}

/* The words of an allocated span, including the heap's own; 0: the offset is not a span. */
static uint32_t span_size(const struct weir_table *table, uint64_t offset)
{
    if (offset < table->fixed.spans_at || offset >= page_offset(table, table->fixed.pages))
        return 0;

    uint64_t page = (offset - table->fixed.spans_at) / TABLE_PAGE;
    uint64_t inside = (offset - table->fixed.spans_at) % TABLE_PAGE;
    union head head = head_of(table, page);

    if (head.kind == PAGE_RUN)
        return inside == 0 && head.run <= table->fixed.pages - page ? head.run * PAGE_WORDS : 0;
    if (head.kind != PAGE_CUT || head.span_class >= SPAN_CLASSES)
        return 0;

    uint32_t words = class_words(head.span_class);
    uint64_t i = inside / (words * 8);
    bool taken =
        inside % (words * 8) == 0 && i < class_capacity(head.span_class) &&
        (__atomic_load_n(&table->pages[page].bitmap[i / 64], __ATOMIC_RELAXED) >> i % 64 & 1);

    return taken ? words : 0;
}

uint32_t heap_words(const struct weir_table *table, uint64_t offset)
{
    uint32_t size = span_size(table, offset);

    return size > 0 ? size - 1 : 0;
}

uint64_t *heap_span(const struct weir_table *table, uint64_t offset, uint32_t words)
{
    return span_size(table, offset) > words ? (uint64_t *)(void *)(table->base + offset + 8) : NULL;
}

struct span_view heap_state(const struct weir_table *table, const struct weir_limit *limit,
                            uint64_t offset)
{
    struct span_view span = {NULL, heap_words(table, offset)};

    if (span.words < 2) /* too small for a cell, and for the words that say how large a state is */
        return (struct span_view){NULL, 0};
    span.at = (uint64_t *)(void *)(table->base + offset + 8);
    if (limit->span_words > 0 && span_words(limit, &span) > span.words)
        return (struct span_view){NULL, 0};
    return span;
}

void heap_note_free(struct weir_table *table)
{
    __atomic_fetch_add(&table->header->page_frees, 1, __ATOMIC_RELAXED);
}

void heap_give(struct weir_table_owner *owner, uint64_t offset)
{
    struct weir_table *table = owner->table;
    struct table_header *header = table->header;

    if (span_size(table, offset) == 0)
        return;

    uint64_t page = (offset - table->fixed.spans_at) / TABLE_PAGE;
    union head head = head_of(table, page);

    if (head.kind == PAGE_RUN) {
        if (head.run > table->fixed.pages - page) /* changed since span_size */
            return;
        for (uint64_t i = 0; i < head.run; i++)
            write_head(owner, page + i, (union head){.kind = PAGE_FREE});
        add(owner, &header->pages_free, head.run);
        heap_note_free(table);
        return;
    }
    uint32_t class = head.span_class;

    if (class >= SPAN_CLASSES)
        return;

    uint64_t i = (offset - page_offset(table, page)) / (class_words(class) * 8);
    uint64_t *word = &table->pages[page].bitmap[i / 64];

    write_word(owner, word, *word & ~(UINT64_C(1) << i % 64));
    add(owner, &header->class_free[class], 1);
    head.used--;
    header->class_hint[class] = page;
    if (head.used == 0) {
        head.word = 0;
        add(owner, &header->class_free[class], -(int64_t)class_capacity(class));
        add(owner, &header->pages_free, 1);
        header->page_hint = page;
        heap_note_free(table);
    }
    write_head(owner, page, head);
}

uint64_t heap_next_in(const struct weir_table *table, uint64_t page, uint32_t *i)
{
    union head head = head_of(table, page);

    while (head.kind == PAGE_RUN_REST && page > 0)
        head = head_of(table, --page);
    if (head.kind == PAGE_RUN)
        return (*i)++ == 0 ? page_offset(table, page) : 0;
    if (head.kind != PAGE_CUT || head.span_class >= SPAN_CLASSES)
        return 0;
    for (; *i < class_capacity(head.span_class); ++*i)
        if (table->pages[page].bitmap[*i / 64] >> *i % 64 & 1)
            return page_offset(table, page) + (uint64_t)(*i)++ * class_words(head.span_class) * 8;
    return 0;
}

uint32_t heap_run(uint32_t words)
{
    return words + 1 > PAGE_WORDS ? pages_for(words + 1) : 0;
}

bool heap_has_room(const struct weir_table *table, uint32_t words)
{
    const struct table_header *header = table->header;
    uint64_t free = __atomic_load_n(&header->pages_free, __ATOMIC_RELAXED);

    if (heap_run(words) > 0) /* only perhaps: they may not be adjacent */
        return free >= heap_run(words);
    return free > 0 ||
           __atomic_load_n(&header->class_free[class_of(words + 1)], __ATOMIC_RELAXED) > 0;
}

uint64_t heap_used(const struct weir_table *table)
{
    const struct table_header *header = table->header;
    uint64_t used =
        (table->fixed.pages - __atomic_load_n(&header->pages_free, __ATOMIC_RELAXED)) * TABLE_PAGE;

    for (uint32_t class = 0; class < SPAN_CLASSES; class ++)
        used -=
            __atomic_load_n(&header->class_free[class], __ATOMIC_RELAXED) * class_words(class) * 8;
    return used;
}

uint64_t heap_spans(const struct weir_table *table)
{
    uint64_t spans = 0;

    for (uint64_t at = 0; at < table->fixed.pages; at++) {
        union head head = head_of(table, at);

        spans += head.kind == PAGE_CUT ? head.used : head.kind == PAGE_RUN;
    }
    return spans;
}

void heap_format(struct weir_table *table)
{
    table->header->pages_free = table->fixed.pages; /* the rest is zero in a new region */
}

/* Whether a cut page's description fits; adds its free spans to its class. */
static bool cut_page_consistent(const struct table_page *page, uint64_t class_free[SPAN_CLASSES])
{
    uint32_t taken = 0;

    if (page->span_class >= SPAN_CLASSES)
        return false;

    uint32_t capacity = class_capacity(page->span_class);

    for (uint32_t i = 0; i < BITMAP_WORDS; i++) {
        uint64_t legal = capacity >= 64 * (i + 1) ? UINT64_MAX
                         : capacity > 64 * i      ? (UINT64_C(1) << capacity % 64) - 1
                                                  : 0;

        if (page->bitmap[i] & ~legal)
            return false;
        taken += (uint32_t)__builtin_popcountll(page->bitmap[i]);
    }
    class_free[page->span_class] += capacity - taken;
    return page->used == taken && taken > 0;
}

bool heap_consistent(const struct weir_table *table)
{
    const struct table_header *header = table->header;
    uint64_t class_free[SPAN_CLASSES] = {0}, pages_free = 0;

    for (uint64_t at = 0; at < table->fixed.pages; at++) {
        const struct table_page *page = &table->pages[at];

        if (page->kind == PAGE_FREE) {
            pages_free++;
        } else if (page->kind == PAGE_CUT) {
            if (!cut_page_consistent(page, class_free))
                return false;
        } else if (page->kind == PAGE_RUN) {
            if (page->run == 0 || page->run > table->fixed.pages - at)
                return false;
            for (uint64_t i = 1; i < page->run; i++)
                if (table->pages[at + i].kind != PAGE_RUN_REST)
                    return false;
            at += page->run - 1;
        } else {
            return false;
        }
    }
    for (uint32_t class = 0; class < SPAN_CLASSES; class ++)
        if (class_free[class] != header->class_free[class])
            return false;
    return pages_free == header->pages_free;
}
