/* SPDX-License-Identifier: Apache-2.0 */
/* see model.h */
#include "model.h"

#include <stdlib.h>
#include <string.h>

static bool model_is_bucket(const struct weir_limit_spec *spec)
{
    return spec->algorithm == WEIR_TOKEN_BUCKET || spec->algorithm == WEIR_GCRA ||
           spec->algorithm == WEIR_LEAKY_BUCKET || spec->algorithm == WEIR_LEAKY_QUEUE;
}

static bool model_is_window(const struct weir_limit_spec *spec)
{
    return spec->algorithm == WEIR_FIXED_WINDOW || spec->algorithm == WEIR_SLIDING_WINDOW;
}

static void model_set_spec(struct model *model, const struct weir_limit_spec *spec)
{
    model->spec = *spec;
    if (model->spec.burst == 0)
        model->spec.burst = spec->rate;
    if (model->spec.segments == 0 || spec->algorithm == WEIR_FIXED_WINDOW)
        model->spec.segments = 1;
}

void model_init(struct model *model, const struct weir_limit_spec *spec)
{
    memset(model, 0, sizeof(*model));
    model_set_spec(model, spec);
}

void model_free(struct model *model)
{
    free(model->events);
    model->events = NULL;
}

struct model_event *model_append(struct model *model)
{
    if (model->count == model->room) {
        model->room = model->room == 0 ? 64 : model->room * 2;
        model->events = realloc(model->events, model->room * sizeof(*model->events));
        if (model->events == NULL)
            abort();
    }
    struct model_event *event = &model->events[model->count++];

    memset(event, 0, sizeof(*event));
    return event;
}

void model_remove(struct model *model, uint32_t i)
{
    memmove(&model->events[i], &model->events[i + 1],
            (model->count - i - 1) * sizeof(*model->events));
    model->count--;
}

bool model_accepts(const struct weir_limit_spec *spec)
{
    uint64_t n = spec->rate, b = spec->burst == 0 ? n : spec->burst, w = spec->window_ns;

    if (w < 1000000 || w > UINT64_C(31622400000000000))
        return false;
    if (model_is_bucket(spec)) {
        if (n > UINT64_C(1) << 40 || b > UINT64_C(1) << 40)
            return false;
        return n == 0 || (model_wide)b * w <= ((model_wide)n << 62);
    }
    if (spec->algorithm == WEIR_SLIDING_LOG || spec->algorithm == WEIR_CONCURRENCY)
        return n <= 10000;
    if (n > 0xffffffff)
        return false;
    if (spec->algorithm == WEIR_SLIDING_WINDOW && spec->segments != 0)
        return spec->segments <= 120 && w % spec->segments == 0;
    return true;
}

uint64_t model_capacity(const struct model *model)
{
    if (!model_is_bucket(&model->spec) || model->spec.rate == 0)
        return model->spec.rate;
    return model->spec.burst + (model->spec.algorithm == WEIR_LEAKY_QUEUE);
}

uint64_t model_part(const struct model *model)
{
    uint64_t capacity = model_capacity(model), part = capacity;

    if (model->percent != 0)
        part = capacity * model->percent / 100;
    return part == 0 && capacity > 0 ? 1 : part;
}

uint64_t model_kept(const struct model *model)
{
    return model_capacity(model) - model_part(model);
}

bool model_admits(const struct model *model, uint64_t now_ns, uint64_t cost)
{
    bool weighs = model_is_bucket(&model->spec) && model->at_rate;

    if (cost > 0 && model->percent != 0 && !weighs)
        cost = cost > UINT64_MAX - model_kept(model) ? UINT64_MAX : cost + model_kept(model);
    if (model_is_bucket(&model->spec))
        return model_bucket_admits(model, now_ns, cost);
    if (model_is_window(&model->spec))
        return model_window_admits(model, now_ns, cost);
    return model_list_admits(model, now_ns, cost);
}

bool model_fresh(const struct model *model, uint64_t now_ns)
{
    if (model_is_bucket(&model->spec))
        return model_bucket_owed(model, now_ns) == 0;
    if (model_is_window(&model->spec))
        return model_window_fresh(model, now_ns);
    return model_list_fresh(model, now_ns);
}

uint64_t model_delay(const struct model *model, uint64_t now_ns)
{
    uint64_t n = model->spec.rate;

    if (model->spec.algorithm != WEIR_LEAKY_QUEUE || n == 0)
        return 0;
    return (uint64_t)((model_bucket_owed(model, now_ns) + n - 1) / n);
}

void model_charge(struct model *model, const struct weir_use *use)
{
    if (use->cost == 0)
        return;
    if (model_is_bucket(&model->spec))
        model_bucket_charge(model, use->now_ns, use->cost);
    else if (model_is_window(&model->spec))
        model_window_charge(model, use->now_ns, use->cost);
    else
        model_list_charge(model, use);
}

void model_charge_denied(struct model *model, const struct weir_use *use)
{
    if (model_is_bucket(&model->spec))
        model_bucket_charge_denied(model, use->now_ns, use->cost);
    else
        model_charge(model, use);
}

void model_refund(struct model *model, const struct weir_use *use)
{
    if (model_is_bucket(&model->spec))
        model_bucket_refund(model, use->now_ns, use->cost);
    else if (model_is_window(&model->spec))
        model_window_refund(model, use);
    else
        model_list_refund(model, use);
}

void model_forget(struct model *model)
{
    model->count = 0;
    model->arrival = 0;
}

void model_convert(struct model *model, const struct weir_limit_spec *to, uint64_t now_ns)
{
    const struct weir_limit_spec *from = &model->spec;
    bool same_shape = from->window_ns == to->window_ns &&
                      from->segments == (to->segments == 0 ? 1 : to->segments) &&
                      from->strict == to->strict;

    if (from->algorithm != to->algorithm) {
        model_forget(model);
    } else if (model_is_bucket(from)) {
        model_bucket_convert(model, to, now_ns);
    } else if (model_is_window(from)) {
        if (!same_shape)
            model_forget(model);
        for (uint32_t i = 0; i < model->count; i++)
            if (model->events[i].cost > model_window_most(to))
                model->events[i].cost = model_window_most(to);
    } else if (from->algorithm == WEIR_SLIDING_LOG && from->window_ns != to->window_ns) {
        model_forget(model);
    } else {
        model_list_convert(model, to);
    }
    model_set_spec(model, to);
}
