/* SPDX-License-Identifier: Apache-2.0 */
/* Windows and segments: a list of (index, count), summed by the formula at every question. */
#include "model.h"

static uint64_t model_segment_ns(const struct model *model)
{
    return model->spec.window_ns / model->spec.segments;
}

/* The newest segment ever charged, if any. */
static uint64_t model_newest(const struct model *model)
{
    uint64_t newest = 0;

    for (uint32_t i = 0; i < model->count; i++)
        if (model->events[i].at > newest)
            newest = model->events[i].at;
    return newest;
}

/* What is in use at a time: a time before the newest segment is taken for its start. */
static model_wide model_window_used(const struct model *model, uint64_t now_ns)
{
    uint64_t w = model_segment_ns(model), newest = model_newest(model);
    uint64_t t = now_ns / w < newest ? newest * w : now_ns;
    uint64_t i = t / w, e = t - i * w;
    uint32_t s = model->spec.segments;
    model_wide used = 0;

    for (uint32_t k = 0; k < model->count; k++) {
        const struct model_event *event = &model->events[k];

        if (model->spec.algorithm == WEIR_FIXED_WINDOW)
            used += event->at == i ? event->cost : 0;
        else if (event->at + s > i)
            used += event->cost;
        else if (event->at + s == i && model->spec.strict)
            used += event->cost;
        else if (event->at + s == i)
            used += (model_wide)event->cost * (w - e) / w;
    }
    return used;
}

bool model_window_admits(const struct model *model, uint64_t now_ns, uint64_t cost)
{
    return model_window_used(model, now_ns) + cost <= model->spec.rate;
}

/* No counter that is not 0 is in range. */
bool model_window_fresh(const struct model *model, uint64_t now_ns)
{
    uint64_t newest = model_newest(model), i = now_ns / model_segment_ns(model);
    uint32_t back = model->spec.algorithm == WEIR_FIXED_WINDOW ? 0 : model->spec.segments;

    if (i < newest)
        i = newest;
    for (uint32_t k = 0; k < model->count; k++)
        if (model->events[k].cost > 0 && model->events[k].at + back >= i)
            return false;
    return true;
}

/* 2^32 - 1, or for a state of two counters what 96 bits leave beside the index of a time below
 * 2^62, if N fits that. */
uint64_t model_window_most(const struct weir_limit_spec *spec)
{
    uint64_t top = ((UINT64_C(1) << 62) - 1) / spec->window_ns;
    uint32_t index_bits = 0, bits;

    if (spec->algorithm != WEIR_SLIDING_WINDOW || spec->segments > 1)
        return UINT32_MAX;
    for (; top != 0; top /= 2)
        index_bits++;
    bits = (96 - index_bits) / 2;
    if (bits >= 32 || spec->rate >> bits != 0)
        return UINT32_MAX;
    return (UINT64_C(1) << bits) - 1;
}

void model_window_charge(struct model *model, uint64_t now_ns, uint64_t cost)
{
    uint64_t newest = model_newest(model), index = now_ns / model_segment_ns(model);
    uint64_t most = model_window_most(&model->spec);
    struct model_event *event = NULL;

    if (index < newest)
        index = newest;
    /* What no time from here on can see is of no interest: keeps the model's lists short. */
    while (model->count > 0 && model->events[0].at + model->spec.segments < index)
        model_remove(model, 0);
    for (uint32_t k = 0; k < model->count; k++)
        if (model->events[k].at == index)
            event = &model->events[k];
    if (event == NULL) {
        event = model_append(model);
        event->at = index;
    }
    event->cost = cost > most - event->cost ? most : event->cost + cost;
}

void model_window_refund(struct model *model, const struct weir_use *use)
{
    uint64_t w = model_segment_ns(model), newest = model_newest(model), i = use->now_ns / w;
    uint64_t index = use->charged_at_ns / w;
    uint32_t back = model->spec.algorithm == WEIR_FIXED_WINDOW ? 0 : model->spec.segments;

    if (i < newest)
        i = newest;
    for (uint32_t k = 0; k < model->count; k++) {
        struct model_event *event = &model->events[k];

        if (event->at == index && index + back >= i)
            event->cost -= use->cost < event->cost ? use->cost : event->cost;
    }
}
