/* SPDX-License-Identifier: Apache-2.0 */
/* see denial_groups.h */
#include "feature/use/server/denial_groups.h"

#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/use/server/query.h"
#include "feature/use/server/shown_json.h"
#include "server/daemon/daemon.h"

#define S UINT64_C(1000000000)

enum kind { BY_LIMIT, BY_CALLER, BY_ROUTE, BY_CAUSE, KINDS };
static const char *const kind_names[KINDS] = {"limit", "caller", "route", "cause"};

/* One denial, or all of one name. */
struct group {
    struct weir_bytes name; /* of a caller: a packed list of one value */
    uint64_t denials;
};

struct summary {
    const struct weir_denial **found;
    struct group *groups;
    uint32_t count;
    uint64_t denials;
    uint64_t from_s, until_s;
};

/* --- Names ------------------------------------------------------------------------------------ */

/* The first value of a packed list, as a list of its own. */
static struct weir_bytes first_value(struct weir_bytes packed)
{
    struct weir_bytes rest = packed;
    struct weir_shown value;
    if (!weir_shown_next(&rest, &value))
        return (struct weir_bytes){0};
    return (struct weir_bytes){packed.data, packed.size - rest.size};
}

static struct weir_bytes name_of(const struct weir_denial *denial, enum kind kind)
{
    struct weir_bytes caller;
    switch (kind) {
    case BY_LIMIT:
        return (struct weir_bytes){denial->limit, denial->limit_size};
    case BY_CALLER:
        caller = first_value(weir_shown_packed(&denial->caller));
        return caller.size > 0 ? caller : weir_shown_packed(&denial->key);
    case BY_ROUTE:
        return (struct weir_bytes){denial->route, denial->route_size};
    default:
        return weir_bytes_of(weir_cause_names[weir_denial_cause(denial)]);
    }
}

static int by_name(const void *left, const void *right)
{
    const struct group *a = left, *b = right;
    size_t least = a->name.size < b->name.size ? a->name.size : b->name.size;
    int order = least > 0 ? memcmp(a->name.data, b->name.data, least) : 0;
    return order != 0 ? order : (a->name.size > b->name.size) - (a->name.size < b->name.size);
}

static int by_denials(const void *left, const void *right)
{
    const struct group *a = left, *b = right;
    if (a->denials != b->denials)
        return a->denials < b->denials ? 1 : -1;
    return by_name(left, right);
}

/* --- Groups ----------------------------------------------------------------------------------- */

/* Sorts by name and adds up equal ones. Returns how many groups there are. */
static uint32_t gather(struct summary *summary, enum kind kind)
{
    struct group *groups = summary->groups;
    uint32_t used = 0;
    for (uint32_t i = 0; i < summary->count; i++)
        groups[i] = (struct group){name_of(summary->found[i], kind), 1 + summary->found[i]->more};
    if (summary->count > 0)
        qsort(groups, summary->count, sizeof *groups, by_name);
    for (uint32_t i = 0; i < summary->count; i++)
        if (used > 0 && by_name(&groups[used - 1], &groups[i]) == 0)
            groups[used - 1].denials += groups[i].denials;
        else
            groups[used++] = groups[i];
    return used;
}

static json_t *group_json(const struct group *group, enum kind kind)
{
    json_t *json = json_pack("{s:I}", "denials", (json_int_t)group->denials);
    if (kind == BY_CALLER) {
        json_object_set_new(json, "key",
                            group->name.size > 0 ? weir_shown_text_json(group->name) : json_null());
        json_object_set_new(json, "values", weir_shown_json(group->name));
        return json;
    }
    json_t *name =
        group->name.size > 0 ? json_stringn(group->name.data, group->name.size) : json_null();
    json_object_set_new(json, "name", name ? name : json_string("?"));
    return json;
}

static void add_groups(struct summary *summary, enum kind kind, json_t *groups, json_t *others)
{
    uint32_t count = gather(summary, kind);
    uint64_t rest = 0;
    json_t *list = json_array();
    if (count > 0)
        qsort(summary->groups, count, sizeof *summary->groups, by_denials);
    for (uint32_t i = 0; i < count; i++)
        if (i < WEIR_DENIAL_GROUP_MAX)
            json_array_append_new(list, group_json(&summary->groups[i], kind));
        else
            rest += summary->groups[i].denials;
    json_object_set_new(groups, kind_names[kind], list);
    json_object_set_new(others, kind_names[kind], json_integer((json_int_t)rest));
}

/* --- Time ------------------------------------------------------------------------------------- */

uint64_t weir_denial_bar_s(uint64_t span_s)
{
    static const unsigned steps[] = {1,   2,   5,    10,   15,   30,   60,    120,
                                     300, 600, 1200, 1800, 3600, 7200, 21600, 86400};
    const size_t last = sizeof steps / sizeof *steps - 1;
    size_t i = 0;
    /* The first and the last bar may be parts. */
    while (i < last && span_s / steps[i] + 2 > WEIR_DENIAL_BARS_MAX)
        i++;
    uint64_t days = span_s / steps[last] / (WEIR_DENIAL_BARS_MAX - 2) + 1;
    return i == last ? days * steps[last] : steps[i];
}

static json_t *counts_json(const struct summary *summary, uint64_t from_s, uint64_t step_s)
{
    uint64_t counts[WEIR_DENIAL_BARS_MAX] = {0};
    uint64_t bars = (summary->until_s - from_s) / step_s + 1;
    json_t *list = json_array();
    for (uint32_t i = 0; i < summary->count; i++) {
        uint64_t at_s = summary->found[i]->time_ns / S;
        uint64_t bar = at_s > from_s ? (at_s - from_s) / step_s : 0;
        counts[bar < bars ? bar : bars - 1] += 1 + summary->found[i]->more;
    }
    for (uint64_t i = 0; i < bars; i++)
        json_array_append_new(list, json_integer((json_int_t)counts[i]));
    return list;
}

/* --- All of it -------------------------------------------------------------------------------- */

/* Before that something may be missing: the oldest denials had to go, or the server had not begun
 * and has no file of them. 0: nothing is missing. */
static uint64_t known_from_s(const struct weir_use_service *use)
{
    uint64_t oldest = weir_use_oldest(use);
    const struct weir_denial *denial = oldest > 1 ? weir_use_denial(use, oldest) : NULL;
    if (denial)
        return denial->time_ns / S;
    return use->file_path ? 0 : use->daemon->loads.started_wall_ns / S;
}

/* Times of a query are seconds or ago; those of denials never end after now, except by a clock that
 * was set. */
static void set_span(struct summary *summary, const struct weir_denial_filter *filter,
                     uint64_t now_ns)
{
    uint64_t first_ns = now_ns, last_ns = filter->until_ns > 0 ? filter->until_ns : now_ns;
    for (uint32_t i = 0; i < summary->count; i++) {
        uint64_t time_ns = summary->found[i]->time_ns;
        first_ns = time_ns < first_ns ? time_ns : first_ns;
        last_ns = filter->until_ns == 0 && time_ns > last_ns ? time_ns : last_ns;
    }
    summary->until_s = last_ns / S;
    summary->from_s = (filter->since_ns > 0 ? filter->since_ns : first_ns) / S;
    if (summary->from_s > summary->until_s)
        summary->from_s = summary->until_s;
}

static void find(const struct weir_use_service *use, const struct weir_denial_filter *filter,
                 struct summary *summary)
{
    uint64_t oldest = weir_use_oldest(use);
    for (uint64_t at = oldest; at <= use->denial_last; at++) {
        const struct weir_denial *denial = weir_use_denial(use, at);
        if (!weir_denial_matches(denial, filter))
            continue;
        summary->found[summary->count++] = denial;
        summary->denials += 1 + denial->more;
    }
}

static json_t *summary_json(struct summary *summary, uint64_t known_from)
{
    uint64_t step_s = weir_denial_bar_s(summary->until_s - summary->from_s);
    uint64_t from_s = summary->from_s / step_s * step_s;
    json_t *groups = json_object(), *others = json_object();
    for (unsigned kind = 0; kind < KINDS; kind++)
        add_groups(summary, (enum kind)kind, groups, others);
    return json_pack("{s:I, s:I, s:I, s:I, s:o, s:I, s:o, s:o}", "denials",
                     (json_int_t)summary->denials, "kept", (json_int_t)summary->count, "from_s",
                     (json_int_t)from_s, "step_s", (json_int_t)step_s, "counts",
                     counts_json(summary, from_s, step_s), "known_from_s", (json_int_t)known_from,
                     "groups", groups, "others", others);
}

json_t *weir_denial_groups_json(struct weir_use_service *use,
                                const struct weir_denial_filter *filter, uint64_t now_ns)
{
    size_t room = use->denial_last + 1 - weir_use_oldest(use) + 1;
    struct summary summary = {.found = malloc(room * sizeof *summary.found),
                              .groups = malloc(room * sizeof *summary.groups)};
    json_t *json = NULL;
    if (summary.found && summary.groups) {
        find(use, filter, &summary);
        set_span(&summary, filter, now_ns);
        json = summary_json(&summary, known_from_s(use));
        weir_use_say_limit(json, use, filter->limit);
    }
    free(summary.groups);
    free(summary.found);
    return json;
}
