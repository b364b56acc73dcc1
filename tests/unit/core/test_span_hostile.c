/* SPDX-License-Identifier: Apache-2.0 */
/* States in a span that someone else has written: random words in spans of random sizes. Nothing
 * beyond the span's words is touched (a page without access follows them, and the words before them
 * keep what they hold), and every function ends. */
#include "core_test.h"
#include "test.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/span/log.h"
#include "core/span/span.h"

#define SEEDS 30000
#define BEFORE 16 /* words before the span that are compared */
#define CANARY UINT64_C(0x5a5a1234deadbeef)
#define TIMEOUT_S 300 /* of all seeds, which take a second or two: an endless loop */

/* Memory that ends before a page without access. */
struct fence {
    uint8_t *map;
    size_t bytes;
};

struct world {
    uint64_t random;
    struct fence span, other;
    struct weir_limit limit;
    struct span_view view;
};

static uint64_t draw(struct world *w)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random;
}

static void fence_open(struct fence *fence, size_t words)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    fence->bytes = (words * 8 + page - 1) / page * page;
    fence->map =
        mmap(NULL, fence->bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(fence->map != MAP_FAILED);
    assert_int_equal(mprotect(fence->map + fence->bytes, page, PROT_NONE), 0);
}

static void fence_close(struct fence *fence)
{
    munmap(fence->map, fence->bytes + (size_t)sysconf(_SC_PAGESIZE));
}

/* The last `words` words before the page without access. */
static uint64_t *fence_span(const struct fence *fence, uint32_t words)
{
    uint64_t *span = (uint64_t *)(void *)(fence->map + fence->bytes) - words;

    for (uint32_t i = 1; i <= BEFORE; i++)
        span[-(ptrdiff_t)i] = CANARY;
    return span;
}

static void check_before(const uint64_t *span)
{
    for (uint32_t i = 1; i <= BEFORE; i++)
        assert_int_equal(span[-(ptrdiff_t)i], CANARY);
}

static struct weir_limit any_limit(struct world *w)
{
    static const uint32_t segments[] = {2, 3, 5, 12, 60, 120};
    struct weir_limit_spec spec = {
        .rate = draw(w) % 4 == 0 ? draw(w) % 3 : 1 + draw(w) % 200,
        .window_ns = draw(w) % 2 == 0 ? MINUTE : SECOND,
        .strict = draw(w) % 2 == 0,
    };

    switch (draw(w) % 3) {
    case 0:
        spec.algorithm = WEIR_SLIDING_LOG;
        spec.strict = false;
        break;
    case 1:
        spec.algorithm = WEIR_CONCURRENCY;
        spec.strict = false;
        break;
    default:
        spec.algorithm = WEIR_SLIDING_WINDOW;
        spec.segments = segments[draw(w) % 6];
        spec.window_ns = 60 * SECOND;
    }
    return make_limit(spec);
}

/* A word that may be four small numbers, a time near START, a kind of the log, or anything. */
static uint64_t any_word(struct world *w, uint32_t words)
{
    uint64_t word = 0, most = words > 0 ? words : 1;

    switch (draw(w) % 7) {
    case 0:
        return 0;
    case 1:
        return draw(w);
    case 2:
        return START - MINUTE + draw(w) % (2 * MINUTE);
    case 3:
        return UINT64_C(3) << 62;
    case 4:
        return UINT64_C(1) << 63 | draw(w) % 5;
    case 5:
        return draw(w) % 2 == 0 ? UINT64_MAX : START / SECOND + draw(w) % 60;
    default:
        for (int i = 0; i < 4; i++)
            word = word << 16 | (draw(w) % 8 == 0 ? 0xffff : draw(w) % (most + 2));
        return word;
    }
}

static void apply(const struct world *w, const struct weir_edits *edits)
{
    assert_true(edits->count <= WEIR_EDITS_MAX);
    for (uint32_t i = 0; i < edits->count; i++) {
        assert_true(edits->word[i] < w->view.words);
        w->view.at[edits->word[i]] = edits->value[i];
    }
}

/* A span of any size: random, or one that was used and then changed in a few places. */
static void fill(struct world *w)
{
    uint32_t words = 2 + (uint32_t)(draw(w) % (draw(w) % 2 == 0 ? 16 : 500));
    struct weir_edits edits;

    w->view.words = words;
    w->view.at = fence_span(&w->span, words);
    if (draw(w) % 2 == 0 || w->limit.spec.algorithm == WEIR_SLIDING_WINDOW) {
        for (uint32_t i = 0; i < words; i++)
            w->view.at[i] = any_word(w, words);
        return;
    }
    memset(w->view.at, 0, (size_t)words * 8);
    for (uint64_t i = 0; i < 20; i++) {
        const struct weir_use use = {
            .now_ns = START + i * 100 * MS, .cost = 1 + i % 2, .lease = {i % 8, i % 3}};

        span_charge(&w->limit, &w->view, &use, &edits);
        apply(w, &edits);
    }
    for (uint64_t i = draw(w) % 6; i > 0; i--)
        w->view.at[draw(w) % 3 == 0 ? draw(w) % 2 : draw(w) % words] = any_word(w, words);
}

static void change(struct world *w, const struct weir_use *use)
{
    static const struct weir_lease_owners none;
    struct weir_edits edits = {.count = 0};
    bool leases = w->limit.spec.algorithm == WEIR_CONCURRENCY;

    switch (draw(w) % 7) {
    case 0:
        span_charge_in_place(&w->limit, &w->view, use);
        break;
    case 1:
        span_refund(&w->limit, &w->view, use, &edits);
        break;
    case 2:
        if (leases)
            span_release(&w->limit, &w->view, use->lease.id, &edits);
        break;
    case 3:
        if (leases)
            span_end_owner(&w->limit, &w->view, use->lease.owner, &edits);
        break;
    case 4:
        if (leases)
            span_end_dead(&w->limit, &w->view, &none, &edits);
        else if (w->limit.spec.algorithm == WEIR_SLIDING_LOG)
            log_compact(&w->limit, &w->view, use->now_ns);
        break;
    case 5:
        if (leases)
            span_renew(&w->limit, &w->view, use, &edits);
        break;
    default:
        span_charge(&w->limit, &w->view, use, &edits);
    }
    apply(w, &edits);
    check_before(w->view.at);
}

static void look(struct world *w, const struct weir_use *use)
{
    struct weir_report report;

    (void)span_test(&w->limit, &w->view, use->now_ns, use->cost);
    (void)span_fits(&w->limit, &w->view, use->now_ns, use->cost, 1 + (uint32_t)(draw(w) % 3));
    (void)span_fresh_at(&w->limit, &w->view);
    (void)span_valid(&w->limit, &w->view);
    span_report(&w->limit, &w->view, use, false, &report);
    assert_true(report.remaining <= w->limit.spec.rate);
    if (w->limit.spec.algorithm == WEIR_SLIDING_LOG)
        log_look(&w->limit, &w->view, use->now_ns, use->cost, &report);
}

/* Into another span, under the same limit or one with another rate. */
static void resize(struct world *w, const struct weir_use *use)
{
    const struct weir_span_source source = {&w->limit, w->view.at, use->now_ns, w->view.words};
    struct weir_limit_spec spec = w->limit.spec;

    if (draw(w) % 2 == 0)
        spec.rate = 1 + draw(w) % 100;

    struct weir_limit to = make_limit(spec);
    uint32_t words = weir_span_needs(&source, &to, use->cost, 1);

    assert_true(words >= 2 && words <= to.span_words);

    uint64_t *out = fence_span(&w->other, words);

    weir_span_resize(&source, &to, out, words);
    check_before(out);

    const struct span_view made = {out, words};

    assert_true(span_words(&to, &made) <= words);
    (void)span_test(&to, &made, use->now_ns, 1);
}

TEST("no word beyond the span is touched and every function ends")
{
    struct world w;

    alarm(TIMEOUT_S);
    fence_open(&w.span, 600);
    fence_open(&w.other, 1200);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        w.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
        w.limit = any_limit(&w);
        fill(&w);
        for (int step = 0; step < 12; step++) {
            const struct weir_use use = {
                .now_ns = START + draw(&w) % (3 * MINUTE),
                .cost = draw(&w) % 8 == 0 ? draw(&w) : draw(&w) % 4,
                .charged_at_ns = START + draw(&w) % 20 * 100 * MS,
                .lease = {draw(&w) % 8, draw(&w) % 3},
            };

            look(&w, &use);
            change(&w, &use);
            resize(&w, &use);
            if (draw(&w) % 4 == 0)
                w.view.at[draw(&w) % w.view.words] = any_word(&w, w.view.words);
        }
    }
    fence_close(&w.span);
    fence_close(&w.other);
    alarm(0);
}

/* As a state that was never used is: the next charge writes it anew. */
TEST("a state that contradicts itself is fresh")
{
    static const struct weir_limit_spec specs[] = {
        {.algorithm = WEIR_SLIDING_LOG, .rate = 6, .window_ns = SECOND},
        {.algorithm = WEIR_CONCURRENCY, .rate = 6, .window_ns = SECOND},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 6, .window_ns = SECOND, .segments = 5},
    };

    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct weir_limit limit = make_limit(specs[i]);
        uint64_t words[32];
        const struct span_view span = {words, limit.span_words};

        assert_true(limit.span_words <= 32);
        memset(words, 0xff, sizeof words);
        assert_false(span_valid(&limit, &span));
        assert_int_equal(span_fresh_at(&limit, &span), 0);
        assert_true(span_test(&limit, &span, START, 6));
    }
}

RUN_TESTS()
