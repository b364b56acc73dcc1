/* SPDX-License-Identifier: Apache-2.0 */
/* see quota.h */
#include "core/quota.h"

#include <stddef.h>

#include "core/algorithm.h"
#include "core/scale.h"
#include "core/window.h"

#define COUNT_MAX UINT64_C(0xFFFFFFFF)

/* The state as seen at one time. */
struct view {
    uint64_t period;
    uint64_t used, before; /* before: 0 without rollover */
    uint64_t capacity;
};

uint64_t quota_begins(const struct weir_limit_spec *spec, uint64_t i)
{
    uint64_t last = spec->bound_count - 1;

    return i <= last ? spec->bounds[i] : spec->bounds[last] + (i - last) * spec->window_ns;
}

uint64_t quota_period(const struct weir_limit_spec *spec, uint64_t now_ns)
{
    uint64_t last = spec->bound_count - 1, low = 0, high = last;

    if (now_ns >= spec->bounds[last])
        return last + (now_ns - spec->bounds[last]) / spec->window_ns;
    while (high - low > 1) { /* bounds[low] <= now < bounds[high], except for low = 0 */
        uint64_t middle = low + (high - low) / 2;

        if (spec->bounds[middle] <= now_ns)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static uint64_t lasts(const struct weir_limit_spec *spec)
{
    return spec->rollover != 0 ? 2 : 1;
}

static uint64_t capacity_after(const struct weir_limit_spec *spec, uint64_t before)
{
    uint64_t left = before < spec->rate ? spec->rate - before : 0;

    return spec->rate + (left < spec->rollover ? left : spec->rollover);
}

/* Which period a state was charged in last. */
static uint64_t charged_in(const struct weir_limit_spec *spec, const struct weir_cell *cell)
{
    uint64_t end = quota_period(spec, cell->a - 1) + 1, length = lasts(spec);

    return end > length ? end - length : 0;
}

static void look(const struct weir_limit *limit, const struct weir_cell *cell, uint64_t now_ns,
                 struct view *view)
{
    const struct weir_limit_spec *spec = &limit->spec;

    view->used = view->before = 0;
    if (!spec->bounds) {
        view->period = 0;
        view->used = now_ns < cell->a ? cell->b & COUNT_MAX : 0;
        view->capacity = spec->rate;
        return;
    }
    view->period = quota_period(spec, now_ns);
    if (cell->b != 0) {
        uint64_t charged = charged_in(spec, cell);

        if (charged >= view->period) {
            view->period = charged;
            view->used = cell->b & COUNT_MAX;
            view->before = cell->b >> 32;
        } else if (charged + 1 == view->period && spec->rollover != 0) {
            view->before = cell->b & COUNT_MAX;
        }
    }
    view->capacity = capacity_after(spec, view->before);
}

/* Of two counts that are both 0 nothing is kept; where only the earlier one is left, the state is
 * that period's, so that it is fresh when that one says. */
static void keep(const struct weir_limit *limit, const struct view *view, struct weir_cell *cell)
{
    bool earlier = view->used == 0 && view->before != 0;
    uint64_t period = view->period - earlier;

    cell->b = earlier ? view->before : view->used | view->before << 32;
    cell->a = cell->b != 0 ? quota_begins(&limit->spec, period + lasts(&limit->spec)) : 0;
}

bool quota_test_at(const struct weir_limit *limit, const struct weir_cell *cell, uint64_t now_ns,
                   uint64_t cost, uint32_t percent)
{
    struct view view;

    look(limit, cell, now_ns, &view);

    uint64_t capacity = cost > 0 ? scale_part(view.capacity, percent) : view.capacity;

    return view.used <= capacity && cost <= capacity - view.used;
}

bool quota_test(const struct weir_limit *limit, const struct weir_cell *cell, uint64_t now_ns,
                uint64_t cost)
{
    return quota_test_at(limit, cell, now_ns, cost, 100);
}

void quota_charge(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                  uint64_t cost)
{
    struct view view;

    if (cost == 0)
        return;
    look(limit, cell, now_ns, &view);
    view.used = cost > COUNT_MAX - view.used ? COUNT_MAX : view.used + cost;
    keep(limit, &view, cell);
}

void quota_fill(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                uint64_t cost)
{
    struct view view;

    look(limit, cell, now_ns, &view);

    uint64_t room = view.used < limit->capacity ? limit->capacity - view.used : 0;

    quota_charge(limit, cell, now_ns, cost < room ? cost : room);
}

void quota_refund(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                  uint64_t charged_at_ns, uint64_t cost)
{
    struct view view;
    uint64_t period = quota_period(&limit->spec, charged_at_ns);

    look(limit, cell, now_ns, &view);
    if (period == view.period)
        view.used -= cost < view.used ? cost : view.used;
    else if (period + 1 == view.period && limit->spec.rollover != 0)
        view.before -= cost < view.before ? cost : view.before;
    else
        return;
    keep(limit, &view, cell);
}

/* When a cost that is denied now is admitted: in the next period with what comes over from this
 * one, in the one after it with all that can come over. */
static uint64_t retry_at(const struct weir_limit *limit, const struct view *view, uint64_t cost,
                         uint32_t percent)
{
    const struct weir_limit_spec *spec = &limit->spec;
    uint64_t next = scale_part(capacity_after(spec, view->used), percent);

    return quota_begins(spec, view->period + 1 + (cost > next));
}

void quota_report_at(const struct weir_limit *limit, const struct weir_cell *cell,
                     const struct weir_use *use, uint32_t percent, struct weir_report *report)
{
    struct view view;
    uint64_t fresh_at_ns = quota_fresh_at(limit, cell);

    look(limit, cell, use->now_ns, &view);
    report->limit = scale_part(view.capacity, percent);
    report->remaining = view.used < report->limit ? report->limit - view.used : 0;
    report->reset_after_ns = fresh_at_ns > use->now_ns ? fresh_at_ns - use->now_ns : 0;
    report->retry_after_ns = 0;
    if (use->cost > scale_part(limit->capacity, percent))
        report->retry_after_ns = WEIR_NEVER;
    else if (use->cost > report->remaining || view.used > view.capacity) /* in debt: even 0 */
        report->retry_after_ns = retry_at(limit, &view, use->cost, percent) - use->now_ns;
}

void quota_report(const struct weir_limit *limit, const struct weir_cell *cell,
                  const struct weir_use *use, bool allowed, struct weir_report *report)
{
    quota_report_at(limit, cell, use, 100, report);
    if (allowed)
        report->retry_after_ns = 0;
}

bool quota_valid(const struct weir_limit *limit, const struct weir_cell *cell)
{
    if (cell->b == 0)
        return cell->a == 0;
    return (cell->b & COUNT_MAX) != 0 && cell->a >> 63 == 0 &&
           (limit->spec.rollover != 0 || cell->b >> 32 == 0);
}

int quota_init(struct weir_limit *limit, struct weir_reason *reason)
{
    const struct weir_limit_spec *spec = &limit->spec;
    struct limit_range rollover = {"rollover", spec->rollover, 0, spec->rate};
    struct limit_range count = {"bound_count", spec->bound_count, WEIR_BOUNDS_MIN, UINT32_MAX};
    struct limit_range bound = {"a bound in ns", 0, 0, WINDOW_TIME_MAX_NS};
    int err = limit_check_range(&rollover, reason);

    if (err == 0)
        err = limit_check_range(&count, reason);
    for (uint32_t i = 0; err == 0 && i < spec->bound_count; i++) {
        bound.value = spec->bounds[i];
        err = limit_check_range(&bound, reason);
        bound.min = spec->bounds[i] + 1;
    }
    limit->capacity = spec->rate + spec->rollover;
    return err;
}

bool quota_converts(const struct weir_limit_spec *a, const struct weir_limit_spec *b)
{
    return a->calendar == b->calendar && (a->rollover == 0) == (b->rollover == 0);
}
