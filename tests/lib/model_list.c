/* SPDX-License-Identifier: Apache-2.0 */
/* sliding_log and concurrency: a list of what was admitted, in the order of its expiry. A log entry
 * is identified by its time, a lease by its expiry. */
#include "model.h"

static bool model_is_log(const struct model *model)
{
    return model->spec.algorithm == WEIR_SLIDING_LOG;
}

/* A log decides at the latest time that it holds. */
static uint64_t model_list_time(const struct model *model, uint64_t now_ns)
{
    if (model_is_log(model) && model->count > 0 && model->events[model->count - 1].at > now_ns)
        return model->events[model->count - 1].at;
    return now_ns;
}

static bool model_is_live(const struct model *model, uint32_t i, uint64_t t)
{
    return model->events[i].at + (model_is_log(model) ? model->spec.window_ns : 0) > t;
}

bool model_list_admits(const struct model *model, uint64_t now_ns, uint64_t cost)
{
    uint64_t t = model_list_time(model, now_ns);
    model_wide sum = cost;

    for (uint32_t i = 0; i < model->count; i++)
        sum += model_is_live(model, i, t) ? model->events[i].cost : 0;
    return sum <= model->spec.rate;
}

bool model_list_fresh(const struct model *model, uint64_t now_ns)
{
    for (uint32_t i = 0; i < model->count; i++)
        if (model_is_live(model, i, now_ns))
            return false;
    return true;
}

static void model_add(struct model_event *event, uint64_t cost)
{
    event->cost = cost > UINT32_MAX - event->cost ? UINT32_MAX : event->cost + cost;
}

void model_list_charge(struct model *model, const struct weir_use *use)
{
    uint64_t t = model_list_time(model, use->now_ns);
    uint64_t room = model->spec.rate > 0 ? model->spec.rate : 1;
    uint64_t at = model_is_log(model) ? t : t + model->spec.window_ns;
    struct model_event *last;
    uint32_t expired = 0;

    while (expired < model->count && !model_is_live(model, expired, t))
        expired++;
    for (uint32_t i = expired; i < model->count; i++)
        model->events[i - expired] = model->events[i];
    model->count -= expired;
    last = model->count > 0 ? &model->events[model->count - 1] : NULL;
    if (model_is_log(model) && last != NULL && (last->at == at || model->count == room)) {
        model_add(last, use->cost);
        last->at = at;
        return;
    }
    if (model->count == room)
        return;
    model_append(model);

    uint32_t i = model->count - 1;

    for (; i > 0 && model->events[i - 1].at > at; i--)
        model->events[i] = model->events[i - 1];
    model->events[i] = (struct model_event){at, 0, use->lease.id, use->lease.owner};
    model_add(&model->events[i], use->cost);
}

void model_list_refund(struct model *model, const struct weir_use *use)
{
    uint64_t t = model_list_time(model, use->now_ns);

    for (uint32_t i = model->count; i-- > 0;) {
        struct model_event *event = &model->events[i];
        bool meant =
            model_is_log(model) ? event->at == use->charged_at_ns : event->id == use->lease.id;

        if (!meant)
            continue;
        if (model_is_live(model, i, t))
            event->cost -= use->cost < event->cost ? use->cost : event->cost;
        if (event->cost == 0)
            model_remove(model, i);
        return;
    }
}

/* With less room, the newest joins the one before it, at its own time, until they fit. */
void model_list_convert(struct model *model, const struct weir_limit_spec *to)
{
    uint64_t room = to->rate > 0 ? to->rate : 1;

    while (model->count > room) {
        struct model_event *newest = &model->events[model->count - 1];
        struct model_event *before = newest - 1;

        model_add(newest, before->cost);
        *before = *newest;
        model->count--;
    }
}

uint32_t model_release(struct model *model, uint64_t lease_id)
{
    for (uint32_t i = model->count; i-- > 0;) {
        if (model->events[i].id == lease_id) {
            model_remove(model, i);
            return 1;
        }
    }
    return 0;
}

uint32_t model_end_owner(struct model *model, uint64_t owner)
{
    uint32_t ended = 0;

    for (uint32_t i = model->count; i-- > 0;) {
        if (owner != 0 && model->events[i].owner == owner) {
            model_remove(model, i);
            ended++;
        }
    }
    return ended;
}
