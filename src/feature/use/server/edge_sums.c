/* SPDX-License-Identifier: Apache-2.0 */
/* see edge_sums.h */
#include "feature/use/server/edge_sums.h"

#include <string.h>

#include "server/daemon/daemon.h"

/* --- Reading ---------------------------------------------------------------------------------- */

static void open_file(struct weir_use_service *use, unsigned how)
{
    struct weir_reason reason = {{0}};
    const char *state_file = weir_rules_settings(use->daemon->rules)->state_file;
    if (!state_file)
        return;
    if (weir_edge_open(&use->edge.file, state_file, WEIR_EDGE_REPLACE | how, &reason) == 0) {
        use->edge.failed = false;
        return;
    }
    if (!use->edge.failed)
        weir_log_event(&use->daemon->log, WEIR_LOG_WARNING, "edge_not_read", "reason", reason.text);
    use->edge.failed = true;
}

/* The number of the limit that a name of the file is of, as its own or its top-ups' (`names`). */
static uint32_t find_name(const struct weir_use_service *use, uint32_t names, uint64_t name)
{
    const char *text = (const char *)&name;
    return rules_string_map_find(&use->names, names, rules_text_hash(text, sizeof name), text,
                                 sizeof name);
}

static void add_limit(void *context, uint64_t name, const struct weir_edge_sum *counts)
{
    struct weir_use_service *use = context;
    uint32_t i = find_name(use, WEIR_USE_NAMES_OF_EDGE, name);
    if (i == RULES_NONE) {
        i = find_name(use, WEIR_USE_TOP_UPS_OF_EDGE, name);
        if (i != RULES_NONE)
            use->limits[i].edge_bought_read += counts->cost;
        return;
    }
    struct weir_edge_sum *sum = &use->limits[i].edge_read;
    sum->allowed += counts->allowed;
    sum->denied += counts->denied;
    sum->shadow_denied += counts->shadow_denied;
    sum->cost += counts->cost;
    sum->delayed += counts->delayed;
}

void weir_use_edge_read(struct weir_use_service *use)
{
    uint64_t results[WEIR_EDGE_FRONTS][WEIR_EDGE_RESULTS];
    if (use->edge.file && !weir_edge_is_current(use->edge.file))
        weir_use_edge_close(use);
    if (!use->edge.file)
        open_file(use, 0);
    if (!use->edge.file)
        return;
    for (uint32_t i = 0; i < use->limit_count; i++) {
        use->limits[i].edge_read = (struct weir_edge_sum){.allowed = 0};
        use->limits[i].edge_bought_read = 0;
    }
    if (weir_edge_read(use->edge.file, results, add_limit, use) < 0) {
        weir_use_edge_close(use);
        return;
    }
    memcpy(use->edge.results, results, sizeof results);
    for (uint32_t i = 0; i < use->limit_count; i++) {
        use->limits[i].edge = use->limits[i].edge_read;
        use->limits[i].edge_bought = use->limits[i].edge_bought_read;
    }
}

void weir_use_edge_close(struct weir_use_service *use)
{
    weir_edge_close(use->edge.file);
    use->edge.file = NULL;
}

/* --- The series ------------------------------------------------------------------------------- */

/* Others write the sums, and two growths together have to fit into 64 bits. */
#define GROWTH_MOST (UINT64_C(1) << 62)

/* How much a sum has grown, up to GROWTH_MOST. At first, only what it is is known; and one that
 * fell began anew. */
static float growth(bool known, uint64_t *before, uint64_t now)
{
    uint64_t grown = !known ? 0 : now >= *before ? now - *before : now;
    *before = now;
    return (float)(grown < GROWTH_MOST ? grown : GROWTH_MOST);
}

void weir_use_edge_tick(struct weir_use_service *use, float *whole)
{
    static const unsigned fields[WEIR_EDGE_FRONTS] = {
        [WEIR_EDGE_LIBRARY] = WEIR_USE_LIBRARY, [WEIR_EDGE_NGINX] = WEIR_USE_NGINX};
    weir_use_edge_read(use);
    for (unsigned f = 0; f < WEIR_EDGE_FRONTS; f++) {
        for (unsigned r = 0; r < WEIR_EDGE_RESULTS; r++) {
            float grown = growth(use->edge.known, &use->edge.before[f][r], use->edge.results[f][r]);
            whole[fields[f]] += grown;
            whole[r == WEIR_EDGE_DENIED ? WEIR_USE_EDGE_DENIED : WEIR_USE_EDGE_ALLOWED] += grown;
        }
    }
    use->edge.known = use->edge.known || use->edge.file;
}

void weir_use_edge_start(struct weir_use_service *use)
{
    float whole[WEIR_USE_WHOLE_FIELDS] = {0}, values[WEIR_USE_FIELDS];
    open_file(use, WEIR_EDGE_WAIT);
    weir_use_edge_tick(use, whole);
    for (uint32_t i = 0; i < use->limit_count; i++)
        weir_use_edge_tick_limit(use, &use->limits[i], values);
}

void weir_use_edge_tick_limit(const struct weir_use_service *use, struct weir_use_limit *limit,
                              float *values)
{
    values[WEIR_USE_EDGE_ALLOWED] =
        growth(limit->edge_known, &limit->edge_before[0], limit->edge.allowed);
    values[WEIR_USE_EDGE_DENIED] =
        growth(limit->edge_known, &limit->edge_before[1], limit->edge.denied);
    values[WEIR_USE_EDGE_SHADOW] =
        growth(limit->edge_known, &limit->edge_before[2], limit->edge.shadow_denied);
    limit->edge_known = limit->edge_known || use->edge.file;
}
