/* SPDX-License-Identifier: Apache-2.0 */
/* From outcomes to the response, and to what is counted; see envoy.h */
#include <stdio.h>
#include <string.h>

#include "rules/envoy/compiled.h"

#define NS_PER_SECOND UINT64_C(1000000000)
#define NUMBER_MAX 24 /* digits of 64 bits, and a NUL */

static bool denied(const struct weir_envoy_part *part)
{
    return part->verdict == WEIR_DENIED;
}

/* --- One descriptor --------------------------------------------------------------------------- */

/* The limit that the client hears of: of those that deny the one that does so longest, else the one
 * with the least left. */
static const struct weir_envoy_part *telling_part(const struct weir_envoy_plan *plan,
                                                  const struct weir_envoy_item *item)
{
    const struct weir_envoy_part *best = &plan->parts[item->part];
    for (uint32_t i = 1; i < item->parts; i++) {
        const struct weir_envoy_part *part = &plan->parts[item->part + i];
        bool better = denied(part) != denied(best) ? denied(part)
                      : denied(part) ? part->report.retry_after_ns > best->report.retry_after_ns
                                     : part->report.remaining < best->report.remaining;
        best = better ? part : best;
    }
    return best;
}

static uint64_t seconds_up(uint64_t ns)
{
    return ns / NS_PER_SECOND + (ns % NS_PER_SECOND > 0);
}

/* A window's end, in whole seconds as the original tells it: never 0. Of what has no windows: when
 * the request would be admitted, or when all of it is back. */
static uint64_t reset_of(const struct weir_envoy_part *part)
{
    const struct weir_limit_spec *spec = &part->limit->spec;
    if (spec->algorithm == WEIR_FIXED_WINDOW)
        return seconds_up(spec->window_ns - part->now_ns % spec->window_ns);
    bool waits = denied(part) && part->report.retry_after_ns != WEIR_NEVER;
    return seconds_up(waits ? part->report.retry_after_ns : part->report.reset_after_ns);
}

static uint8_t unit_of_seconds(uint64_t seconds)
{
    uint8_t unit = WEIR_ENVOY_SECOND;
    while (unit + 1 < WEIR_ENVOY_UNITS && envoy_unit_seconds(unit) != seconds)
        unit++;
    return unit;
}

static void fill_status(const struct weir_envoy_plan *plan, const struct weir_envoy_item *item,
                        struct weir_envoy_status *status)
{
    *status = (struct weir_envoy_status){.code = WEIR_ENVOY_OK};
    if (item->unlimited)
        status->limit_remaining = UINT32_MAX;
    if (item->parts == 0)
        return;
    const struct weir_envoy_part *part = telling_part(plan, item);
    uint64_t remaining = denied(part) ? 0 : part->report.remaining;
    if (denied(part) && (part->flags & WEIR_CHECK_SHADOW) == 0)
        status->code = WEIR_ENVOY_OVER_LIMIT;
    status->has_limit = true;
    status->limit_remaining = remaining < UINT32_MAX ? (uint32_t)remaining : UINT32_MAX;
    status->duration_until_reset_s = reset_of(part);
    if (item->rule != NULL) {
        const struct envoy_limit *limit = &item->rule->limits[part->index];
        status->requests_per_unit = limit->requests;
        status->unit = limit->unit;
        status->name = item->rule->name;
    } else {
        status->requests_per_unit = (uint32_t)part->limit->spec.rate;
        status->unit = unit_of_seconds(part->limit->spec.window_ns / NS_PER_SECOND);
    }
}

/* --- All of them ------------------------------------------------------------------------------ */

/* Who says what the whole is: the descriptors with quota_mode are over together, when all are; any
 * other one is over alone. */
struct count {
    uint32_t over, quota_over, quota;
    const struct weir_envoy_status *nearest; /* for the headers; NULL: none has a limit */
    uint32_t nearest_remaining;
};

static void count_status(const struct weir_envoy_plan *plan, uint32_t i,
                         const struct weir_envoy_status *status, struct count *count)
{
    const struct weir_envoy_item *item = &plan->items[i];
    if (status->has_limit && status->limit_remaining < count->nearest_remaining) {
        count->nearest = status;
        count->nearest_remaining = status->limit_remaining;
    }
    if (item->unlimited)
        return;
    bool quota = plan->envoy->options.quota_mode || (item->rule != NULL && item->rule->quota);
    bool over = status->code == WEIR_ENVOY_OVER_LIMIT;
    count->quota += quota;
    count->quota_over += quota && over;
    if (over && !quota) {
        count->over++;
        count->nearest = status;
        count->nearest_remaining = 0;
    }
}

static void set_header(struct weir_envoy_plan *plan, struct weir_envoy_header *header,
                       const char *name, const char *fallback, uint64_t number)
{
    char *text = envoy_plan_alloc(plan, NUMBER_MAX);
    const char *key = name != NULL ? name : fallback;
    int size = snprintf(text, NUMBER_MAX, "%llu", (unsigned long long)number);
    header->key = (struct weir_bytes){key, strlen(key)};
    header->value = (struct weir_bytes){text, (size_t)size};
}

static void set_headers(struct weir_envoy_plan *plan, const struct weir_envoy_status *of,
                        struct weir_envoy_response *response)
{
    const struct weir_envoy_options *options = &plan->envoy->options;
    set_header(plan, &response->headers[0], options->limit_header, "RateLimit-Limit",
               of->requests_per_unit);
    set_header(plan, &response->headers[1], options->remaining_header, "RateLimit-Remaining",
               of->limit_remaining);
    set_header(plan, &response->headers[2], options->reset_header, "RateLimit-Reset",
               of->duration_until_reset_s);
    response->header_count = WEIR_ENVOY_HEADERS;
}

static bool store_failed(const struct weir_envoy_plan *plan)
{
    for (uint32_t i = 0; i < plan->part_count; i++)
        if (plan->parts[i].error != 0 && plan->parts[i].on_store_error == WEIR_ENVOY_STORE_FAIL)
            return true;
    return false;
}

int weir_envoy_respond(struct weir_envoy_plan *plan, struct weir_envoy_response *response,
                       bool *shadowed)
{
    const struct weir_envoy_options *options = &plan->envoy->options;
    uint32_t descriptors = plan->request->descriptor_count;
    *shadowed = false;
    if (store_failed(plan))
        return WEIR_ERR_STORE;
    struct weir_envoy_status *statuses = envoy_plan_alloc(plan, descriptors * sizeof(*statuses));
    struct count count = {.nearest_remaining = UINT32_MAX};
    *response = (struct weir_envoy_response){
        .overall_code = WEIR_ENVOY_OK, .statuses = statuses, .status_count = descriptors};
    for (uint32_t i = 0; i < descriptors; i++) {
        fill_status(plan, &plan->items[i], &statuses[i]);
        count_status(plan, i, &statuses[i], &count);
    }
    if (count.over > 0 || (count.quota > 0 && count.quota == count.quota_over)) {
        *shadowed = options->shadow_mode;
        response->overall_code = options->shadow_mode ? WEIR_ENVOY_OK : WEIR_ENVOY_OVER_LIMIT;
    }
    if (options->headers && count.nearest != NULL)
        set_headers(plan, count.nearest, response);
    if (options->dynamic_metadata)
        response->dynamic_metadata = envoy_dynamic_metadata(plan, statuses);
    return 0;
}

/* --- Counting --------------------------------------------------------------------------------- */

/* What of `to` lies beyond `from`. */
static uint64_t beyond(uint64_t to, uint64_t from)
{
    return to > from ? to - from : 0;
}

/* The original's rules: of hits that cross a line, only those beyond it count. */
static void tally_part(const struct weir_envoy_plan *plan, const struct weir_envoy_part *part,
                       struct weir_envoy_tally *tally)
{
    const struct weir_envoy_options *options = &plan->envoy->options;
    uint64_t limit = part->limit->capacity, hits = part->cost, before = part->used;
    uint64_t after = before > UINT64_MAX - hits ? UINT64_MAX : before + hits;
    uint64_t near = (uint64_t)((float)limit * options->near_limit_ratio);
    if (!denied(part)) {
        tally->within_limit += hits;
        tally->near_limit += before >= near ? beyond(after, before) : beyond(after, near);
        return;
    }
    bool before_over = before >= limit;
    uint64_t over = before_over ? hits : beyond(after, limit);
    tally->over_limit += over;
    if (options->count_local && before > limit)
        tally->over_limit_with_local_cache += hits;
    if (!before_over)
        tally->near_limit += beyond(limit, before > near ? before : near);
    if ((part->flags & WEIR_CHECK_SHADOW) != 0)
        tally->shadow_mode += over;
}

void weir_envoy_tally(const struct weir_envoy_plan *plan, uint32_t at,
                      struct weir_envoy_tally *tally)
{
    const struct weir_envoy_item *item = &plan->items[at];
    *tally = (struct weir_envoy_tally){0};
    if (item->unlimited) { /* the original counts nothing here */
        tally->total_hits = tally->within_limit = item->hits;
        return;
    }
    if (item->parts == 0)
        return;
    const struct weir_envoy_part *part = telling_part(plan, item);
    if (part->op == WEIR_OP_REFUND) {
        tally->total_negative_hits = part->cost;
        return;
    }
    tally->total_hits = part->cost;
    tally_part(plan, part, tally);
}
