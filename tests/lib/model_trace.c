/* SPDX-License-Identifier: Apache-2.0 */
/* see model_trace.h */
#include "model_trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/scale.h"
#include "model.h"

#define TRACE_DAY_NS (UINT64_C(86400) * 1000000000)
#define TRACE_TIME_MAX_NS ((UINT64_C(1) << 62) - 1)

/* Operations on one limit before the next is drawn; every 64th limit has a long life. */
#define TRACE_LENGTH 200
#define TRACE_LONG_LENGTH 4000

struct model_trace_counts model_trace_counts;

struct run {
    uint64_t random;
    struct weir_limit limit;
    struct model model;
    struct weir_cell cell;
    uint64_t *span;
    bool fitted;    /* the span is as large as its content, and else limit.span_words */
    uint32_t words; /* of the span */
    uint64_t now_ns, latest_ns;
    uint64_t last_charged_ns[4], leases;
    struct weir_report report; /* of the last decision */
    const char *wrong;         /* the first difference */
};

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t run_random(struct run *run)
{
    uint64_t z = run->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t run_below(struct run *run, uint64_t bound)
{
    return bound == 0 ? 0 : run_random(run) % bound;
}

/* From 0 to most, every magnitude alike. */
static uint64_t run_magnitude(struct run *run, uint64_t most)
{
    uint64_t x = run_random(run) >> run_below(run, 64);

    return most == UINT64_MAX ? x : x % (most + 1);
}

static uint64_t draw_window(struct run *run)
{
    static const uint64_t usual[] = {WEIR_WINDOW_MIN_NS,      WEIR_WINDOW_MAX_NS,
                                     UINT64_C(1000000000),    UINT64_C(60000000000),
                                     UINT64_C(3600000000000), 86400 * UINT64_C(1000000000),
                                     WEIR_WINDOW_MIN_NS + 1,  WEIR_WINDOW_MAX_NS - 1,
                                     7 * TRACE_DAY_NS,        UINT64_C(999999999999989)};

    if (run_below(run, 2) == 0)
        return usual[run_below(run, sizeof(usual) / sizeof(usual[0]))];
    return WEIR_WINDOW_MIN_NS + run_magnitude(run, WEIR_WINDOW_MAX_NS - WEIR_WINDOW_MIN_NS);
}

static uint64_t draw_rate(struct run *run, enum weir_algorithm algorithm)
{
    uint64_t most = WEIR_RATE_MAX;

    if (algorithm == WEIR_SLIDING_LOG || algorithm == WEIR_CONCURRENCY)
        most = run_below(run, 16) == 0 ? WEIR_LOG_MAX : 40;
    else if (algorithm >= WEIR_TOKEN_BUCKET && algorithm <= WEIR_LEAKY_QUEUE)
        most = WEIR_BUCKET_MAX;
    switch (run_below(run, 8)) {
    case 0:
        return most - run_below(run, 3);
    case 1:
        return run_below(run, 3);
    case 2:
    case 3:
        return run_below(run, most < 20 ? most : 20) + 1;
    default:
        return run_magnitude(run, most);
    }
}

static void draw_spec(struct run *run, const struct model_trace *trace,
                      struct weir_limit_spec *spec)
{
    memset(spec, 0, sizeof(*spec));
    spec->algorithm = trace->algorithm;
    spec->window_ns = draw_window(run);
    spec->rate = draw_rate(run, trace->algorithm);
    if (trace->algorithm >= WEIR_TOKEN_BUCKET && trace->algorithm <= WEIR_LEAKY_QUEUE &&
        run_below(run, 2) == 0)
        spec->burst = draw_rate(run, trace->algorithm);
    if (trace->algorithm == WEIR_SLIDING_WINDOW) {
        spec->strict = run_below(run, 3) == 0;
        spec->segments = 1;
        if (trace->segments) {
            spec->segments = 2 + (uint32_t)run_below(run, 119);
            if (run_below(run, 2) == 0)
                spec->segments = 2 + (uint32_t)run_below(run, 5);
            spec->window_ns -= spec->window_ns % spec->segments;
        }
    }
}

/* A limit that the core takes; checks that it takes what the model takes. */
static bool draw_limit(struct run *run, const struct model_trace *trace, struct weir_limit *limit)
{
    for (;;) {
        struct weir_limit_spec spec;

        draw_spec(run, trace, &spec);
        int err = weir_limit_init(limit, &spec, NULL);

        if ((err == 0) != model_accepts(&spec)) {
            run->wrong = "which limits are accepted";
            run->limit.spec = spec;
            return false;
        }
        if (err == 0)
            return true;
    }
}

static void draw_time(struct run *run)
{
    uint64_t w = run->limit.spec.window_ns, s = run->limit.spec.segments;
    uint64_t now_ns = run->now_ns, retry = run->report.retry_after_ns, step = 0;

    switch (run_below(run, 16)) {
    case 0:
    case 1:
    case 2:
    case 3:
        break; /* stands still */
    case 4:
        step = 1;
        break;
    case 5:
        step = w / (run->limit.spec.rate + 1);
        break;
    case 6:
        step = run_magnitude(run, w);
        break;
    case 7:
        step = run_below(run, 2 * w);
        break;
    case 8:
        step = s > 1 ? w / s * run_below(run, s + 2) : w;
        break;
    case 9: /* to a border of a window, or just before it */
        step = w - now_ns % w - run_below(run, 2);
        break;
    case 10:
        step = run->report.reset_after_ns - (run->report.reset_after_ns > 0 && run_below(run, 2));
        break;
    case 11:
    case 12:
        step = retry == WEIR_NEVER ? 0 : retry - (retry > 0 && run_below(run, 2));
        break;
    case 13:
        step = run_below(run, 40) == 0 ? 400 * TRACE_DAY_NS : run_below(run, w);
        break;
    case 14:
        step = run_below(run, w / 16 + 1);
        break;
    default: { /* backwards */
        uint64_t back = run_magnitude(run, run_below(run, 8) == 0 ? 3 * w : w / 4);

        model_trace_counts.backwards++;
        run->now_ns -= back < now_ns ? back : now_ns;
        return;
    }
    }
    if (step < TRACE_TIME_MAX_NS - now_ns)
        run->now_ns += step;
}

static uint64_t draw_cost(struct run *run)
{
    uint64_t capacity = model_part(&run->model), left = run->report.remaining;

    switch (run_below(run, 16)) {
    case 0:
        return 0;
    case 1:
        return capacity;
    case 2:
        return capacity + 1;
    case 3:
        return run_below(run, 4) == 0 ? UINT64_MAX - run_below(run, 2) : 1;
    case 4:
        return left;
    case 5:
        return left + 1;
    case 6:
        return run_magnitude(run, capacity);
    case 7:
        return run_below(run, 4) == 0 ? run_magnitude(run, UINT64_MAX) : 2;
    case 8:
        return run_below(run, capacity + 1);
    case 9:
        return capacity / 2 + 1;
    default:
        return 1;
    }
}

/* The state after a change, by way of its packed form where it has one, as in the table. */
static void run_repack(struct run *run)
{
    uint32_t packed[3] = {0, 0, 0};
    struct weir_cell copy = {UINT64_MAX, UINT64_MAX};

    if (run->limit.span_words != 0 || !run->limit.packs)
        return;
    weir_cell_pack(&run->limit, &run->cell, packed);
    weir_cell_unpack(&run->limit, packed, &copy);
    if (copy.a != run->cell.a || copy.b != run->cell.b)
        run->wrong = "the cell after packing";
    model_trace_counts.packed++;
}

static void run_apply(struct run *run, const struct weir_edits *edits)
{
    if (edits->count > WEIR_EDITS_MAX)
        run->wrong = "the number of edits";
    for (uint32_t i = 0; i < edits->count; i++) {
        if (edits->word[i] >= run->words)
            run->wrong = "the word of an edit";
        for (uint32_t j = 0; j < i; j++)
            if (edits->word[i] == edits->word[j])
                run->wrong = "a word edited twice";
    }
    if (run->wrong == NULL)
        weir_edits_apply(edits, run->span);
}

/* Writes the span anew as a state of `to`, in memory of exactly its size, so that a sanitizer sees
 * who reads beyond it. */
static void run_resize(struct run *run, const struct weir_limit *to,
                       const struct weir_span_source *source, uint32_t words)
{
    uint32_t size = words > 0 ? words : to->span_words;
    uint64_t *out = malloc(size * sizeof(*out));

    if (out == NULL)
        abort();
    memset(out, 0xa5, size * sizeof(*out));
    weir_span_resize(source, to, out, words);
    if (weir_span_words(to, out) > size)
        run->wrong = "the words of a span";
    free(run->span);
    run->span = out;
    run->words = size;
}

/* Before a charge, as a store does whose spans are as large as their content. */
static void run_make_room(struct run *run, const struct weir_use *use)
{
    const struct weir_span_source source = {&run->limit, run->span, use->now_ns, 0};
    bool fits = weir_span_fits(&run->limit, run->span, use->now_ns, use->cost, 1);

    if (!run->fitted) {
        if (!fits)
            weir_span_compact(&run->limit, run->span, use->now_ns);
    } else if (!fits || run_below(run, 16) == 0) {
        uint32_t needs = weir_span_needs(&source, &run->limit, use->cost, 1);

        if (needs > run->limit.span_words)
            run->wrong = "what a span needs";
        if (run_below(run, 2) == 0)
            needs += (uint32_t)run_below(run, needs / 2 + 1);
        model_trace_counts.resized++;
        run_resize(run, &run->limit, &source, needs);
    }
    if (!weir_span_fits(&run->limit, run->span, use->now_ns, use->cost, 1))
        run->wrong = "whether a charge fits";
}

/* One in two operations is at a scale. */
static void draw_scale(struct run *run)
{
    static const uint32_t usual[] = {1, 10, 50, 60, 90, 99};

    run->model.percent = 0;
    run->model.at_rate = run->model.alone = false;
    if (run_below(run, 2) == 0)
        return;
    run->model.percent = 1 + (uint32_t)run_below(run, 99);
    if (run_below(run, 2) == 0)
        run->model.percent = usual[run_below(run, sizeof(usual) / sizeof(usual[0]))];
    run->model.at_rate = run_below(run, 2) == 0;
    run->model.alone = run->model.at_rate && run_below(run, 2) == 0;
    model_trace_counts.scaled++;
}

static struct weir_check run_check(const struct run *run, uint64_t cost)
{
    return (struct weir_check){.limit = &run->limit,
                               .cost = cost,
                               .scale = run->model.percent & 0x7f,
                               .scale_kind = run->model.at_rate,
                               .scale_alone = run->model.alone};
}

static bool run_test(struct run *run, uint64_t cost, uint64_t *delay_ns)
{
    const struct weir_check check = run_check(run, cost);
    struct scale_load load = {0};

    *delay_ns = 0;
    scale_load_add(&load, &check);
    if (run->limit.span_words != 0)
        return weir_span_test(&run->limit, run->span, run->now_ns, scale_lifted(&check, cost));
    if (check.scale == 0 && run_below(run, 2) == 0)
        return weir_cell_test(&run->limit, &run->cell, run->now_ns, cost, delay_ns);
    return scale_cell_test(&check, &run->cell, run->now_ns, &load, delay_ns);
}

static void run_report(struct run *run, const struct weir_use *use, bool allowed)
{
    const struct weir_check check = run_check(run, use->cost);
    struct weir_use lifted = *use;

    if (run->limit.span_words != 0) {
        lifted.cost = scale_lifted(&check, use->cost);
        weir_span_report(&run->limit, run->span, &lifted, allowed, &run->report);
        scale_report(&check, &run->report);
    } else if (check.scale == 0) {
        weir_cell_report(&run->limit, &run->cell, use, allowed, &run->report);
    } else {
        scale_cell_report(&check, &run->cell, use, allowed, &run->report);
    }
}

static void run_charge(struct run *run, const struct weir_use *use, bool denied)
{
    const struct weir_check check = run_check(run, use->cost);

    if (run->limit.span_words != 0) {
        struct weir_edits edits;

        weir_span_charge(&run->limit, run->span, use, &edits);
        run_apply(run, &edits);
        if (edits.count > model_trace_counts.most_edits)
            model_trace_counts.most_edits = edits.count;
    } else if (denied && check.scale == 0) {
        weir_cell_charge_denied(&run->limit, &run->cell, use->now_ns, use->cost);
    } else if (denied) {
        scale_cell_charge_denied(&check, &run->cell, use->now_ns);
    } else if (check.scale == 0) {
        weir_cell_charge(&run->limit, &run->cell, use->now_ns, use->cost);
    } else {
        scale_cell_charge(&check, &run->cell, use->now_ns);
    }
    if (denied)
        model_charge_denied(&run->model, use);
    else
        model_charge(&run->model, use);
    run->last_charged_ns[run_below(run, 4)] = use->now_ns;
}

static void run_refund(struct run *run, const struct weir_use *use)
{
    const struct weir_check check = run_check(run, use->cost);

    if (run->limit.span_words != 0) {
        struct weir_edits edits;

        weir_span_refund(&run->limit, run->span, use, &edits);
        run_apply(run, &edits);
    } else if (check.scale == 0) {
        weir_cell_refund(&run->limit, &run->cell, use->now_ns, use->charged_at_ns, use->cost);
    } else {
        scale_cell_refund(&check, &run->cell, use->now_ns, use->charged_at_ns);
    }
    model_refund(&run->model, use);
}

static void run_end_leases(struct run *run, const struct weir_use *use)
{
    struct weir_edits edits;
    uint32_t ended, expected;

    if (run_below(run, 3) != 0) {
        ended = weir_span_release(&run->limit, run->span, use->lease.id, &edits);
        expected = model_release(&run->model, use->lease.id);
        run_apply(run, &edits);
    } else {
        uint32_t batch;

        ended = 0;
        expected = model_end_owner(&run->model, use->lease.owner);
        do {
            batch = weir_span_end_owner(&run->limit, run->span, use->lease.owner, &edits);
            run_apply(run, &edits);
            ended += batch;
        } while (batch > 0 && run->wrong == NULL);
    }
    if (ended != expected && run->wrong == NULL)
        run->wrong = "the number of leases that ended";
}

static void run_convert(struct run *run, const struct model_trace *trace)
{
    struct weir_limit to;

    if (!draw_limit(run, trace, &to))
        return;
    if (run_below(run, 2) == 0) { /* another rate only */
        struct weir_limit_spec spec = run->limit.spec;

        spec.rate = to.spec.rate;
        if (weir_limit_init(&to, &spec, NULL) != 0)
            return;
    }
    bool converts = weir_limit_converts(&run->limit, &to);

    if (run->limit.span_words != 0) {
        const struct weir_span_source source = {&run->limit, run->span, 0, 0};

        run_resize(run, &to, &source, run->fitted ? weir_span_needs(&source, &to, 1, 1) : 0);
    } else {
        weir_cell_convert(&run->limit, &to, &run->cell, run->now_ns);
    }
    model_convert(&run->model, &to.spec, run->now_ns);
    model_trace_counts.converted += converts;
    run->limit = to;
}

static void check_report(struct run *run, const struct weir_use *use, bool allowed)
{
    const struct weir_report *report = &run->report;
    const struct model *model = &run->model;
    uint64_t t = run->now_ns, left = report->remaining, retry = report->retry_after_ns;
    uint64_t reset = report->reset_after_ns;
    uint64_t fresh_at = run->limit.span_words != 0 ? weir_span_fresh_at(&run->limit, run->span)
                                                   : weir_cell_fresh_at(&run->limit, &run->cell);

    if (report->limit != model_part(model))
        run->wrong = "limit";
    if ((left > 0 && !model_admits(model, t, left)) || model_admits(model, t, left + 1))
        run->wrong = "remaining";
    if (allowed ? retry != 0 : (retry == WEIR_NEVER) != (use->cost > model_part(model)))
        run->wrong = "whether there is a retry";
    if (!allowed && retry != WEIR_NEVER &&
        (retry == 0 || !model_admits(model, t + retry, use->cost) ||
         model_admits(model, t + retry - 1, use->cost)))
        run->wrong = "retry_after";
    if (!model_fresh(model, t + reset) || (reset > 0 && model_fresh(model, t + reset - 1)))
        run->wrong = "reset_after";
    if (reset != (fresh_at > t ? fresh_at - t : 0))
        run->wrong = "fresh_at";
    model_trace_counts.never += retry == WEIR_NEVER;
    model_trace_counts.finite_retry += !allowed && retry != WEIR_NEVER;
}

/* decide, peek, debit or charge_denied, with everything that is reported about it. */
static void run_decide(struct run *run, const struct weir_use *use, uint64_t kind)
{
    uint64_t delay_ns = 0, in_place_delay_ns;
    bool expected = model_admits(&run->model, run->now_ns, use->cost);
    bool allowed = run_test(run, use->cost, &delay_ns);
    struct weir_report in_place;

    if (allowed != expected) {
        run->wrong = "the verdict";
        return;
    }
    if (delay_ns != (allowed ? model_delay(&run->model, run->now_ns) : 0))
        run->wrong = "delay";
    model_trace_counts.delays += delay_ns > 0;

    /* weir_decide on a copy must come to the same state and report. */
    struct weir_cell cell = run->cell;
    uint64_t *span = NULL;
    bool charges = kind < 6 ? allowed : kind >= 7;
    bool whole = kind < 6 && run->limit.span_words < 256 && run->model.percent == 0;

    if (charges && use->cost > 0 && run->limit.span_words != 0)
        run_make_room(run, use);
    if (whole) {
        void *state = &cell;

        if (run->limit.span_words != 0) {
            span = malloc(run->words * sizeof(*span));
            if (span == NULL)
                abort();
            memcpy(span, run->span, run->words * sizeof(*span));
            state = span;
        }
        if (weir_decide(&run->limit, state, use, &in_place, &in_place_delay_ns) != allowed ||
            in_place_delay_ns != delay_ns)
            run->wrong = "weir_decide";
    }
    if (charges)
        run_charge(run, use, kind == 8);
    if (kind == 7)
        allowed = true; /* of a debit */
    run_repack(run);
    run_report(run, use, allowed);
    if (whole && (memcmp(&in_place, &run->report, sizeof(in_place)) != 0 || cell.a != run->cell.a ||
                  cell.b != run->cell.b ||
                  (span != NULL && memcmp(span, run->span, run->words * sizeof(*span)) != 0)))
        run->wrong = "weir_decide's state or report";
    free(span);
    check_report(run, use, allowed);
    if (allowed)
        model_trace_counts.allowed++;
    else
        model_trace_counts.denied++;
}

/* A state that says it is fresh may be dropped at any time, and is then all zero. */
static void run_forget_fresh(struct run *run)
{
    uint64_t fresh_at = run->limit.span_words != 0 ? weir_span_fresh_at(&run->limit, run->span)
                                                   : weir_cell_fresh_at(&run->limit, &run->cell);

    if (fresh_at > run->now_ns)
        return;
    if (run->limit.span_words != 0)
        run_resize(run, &run->limit, NULL,
                   run->fitted ? weir_span_needs(NULL, &run->limit, 0, 0) : 0);
    run->cell = (struct weir_cell){0, 0};
    model_forget(&run->model);
}

static void run_step(struct run *run, const struct model_trace *trace)
{
    uint64_t kind = run_below(run, 14);
    struct weir_use use;

    draw_time(run);
    draw_scale(run);
    memset(&use, 0, sizeof(use));
    use.now_ns = run->now_ns;
    use.cost = draw_cost(run);
    use.lease.id = ++run->leases;
    use.lease.owner = run_below(run, 4);
    if (kind < 9) {
        run_decide(run, &use, kind);
    } else if (kind < 11 && trace->algorithm == WEIR_CONCURRENCY) {
        use.lease.id = run->leases - run_below(run, 12);
        run_end_leases(run, &use);
    } else if (kind < 11) {
        use.charged_at_ns = run->last_charged_ns[run_below(run, 4)];
        run_refund(run, &use);
    } else if (kind == 11 && run_below(run, 4) == 0) {
        run_convert(run, trace);
    } else if (kind == 12 && run_below(run, 4) == 0) {
        run_forget_fresh(run);
    } else if (kind == 13 && trace->algorithm == WEIR_CONCURRENCY) {
        use.lease.id = run->leases - run_below(run, 12);
        run_refund(run, &use);
    } else {
        run_decide(run, &use, 0);
    }
    run_repack(run);
    if (run->limit.span_words != 0 ? !weir_span_valid(&run->limit, run->span)
                                   : !weir_cell_valid(&run->limit, &run->cell))
        run->wrong = "the validity of the state";
}

static void run_begin(struct run *run)
{
    run->span = NULL;
    run->fitted = run_below(run, 4) != 0;
    if (run->limit.span_words != 0)
        run_resize(run, &run->limit, NULL,
                   run->fitted ? weir_span_needs(NULL, &run->limit, 0, 0) : 0);
    run->cell = (struct weir_cell){0, 0};
    run->now_ns = run_magnitude(run, TRACE_TIME_MAX_NS / 2);
    memset(&run->report, 0, sizeof(run->report));
    memset(run->last_charged_ns, 0, sizeof(run->last_charged_ns));
    model_init(&run->model, &run->limit.spec);
}

static void run_tell(const struct run *run, uint64_t operation, uint64_t seed)
{
    const struct weir_limit_spec *spec = &run->limit.spec;

    fprintf(stderr,
            "%s differs at operation %" PRIu64 " of seed %" PRIu64 ": algorithm %d rate %" PRIu64
            " window %" PRIu64 " burst %" PRIu64
            " segments %u strict %d scale %u kind %d alone %d; t %" PRIu64 " remaining %" PRIu64
            " retry %" PRIu64 " reset %" PRIu64 "\n",
            run->wrong, operation, seed, (int)spec->algorithm, spec->rate, spec->window_ns,
            spec->burst, spec->segments, spec->strict, run->model.percent, run->model.at_rate,
            run->model.alone, run->now_ns, run->report.remaining, run->report.retry_after_ns,
            run->report.reset_after_ns);
}

bool model_trace_run(const struct model_trace *trace)
{
    struct run run;
    uint64_t done = 0;

    memset(&model_trace_counts, 0, sizeof(model_trace_counts));
    memset(&run, 0, sizeof(run));
    run.random = trace->seed * 8 + trace->algorithm;
    while (done < trace->operations && run.wrong == NULL) {
        if (!draw_limit(&run, trace, &run.limit)) {
            run_tell(&run, done, trace->seed);
            return false;
        }
        run_begin(&run);
        model_trace_counts.limits++;
        int length = run_below(&run, 64) == 0 ? TRACE_LONG_LENGTH : TRACE_LENGTH;

        for (int i = 0; i < length && done < trace->operations && run.wrong == NULL; i++) {
            run_step(&run, trace);
            done++;
        }
        if (run.wrong != NULL)
            run_tell(&run, done, trace->seed);
        model_free(&run.model);
        free(run.span);
    }
    model_trace_counts.operations = done;
    return run.wrong == NULL;
}
