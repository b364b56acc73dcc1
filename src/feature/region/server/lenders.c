/* SPDX-License-Identifier: Apache-2.0 */
/* see lenders.h */
#include "feature/region/server/lenders.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/bytes.h"
#include "feature/region/rules/region.h"
#include "server/daemon/redis_access.h"

struct weir_lenders {
    struct weir_rules *rules;
    struct weir_shared_store *region[RULES_REGIONS_MAX];
    unsigned count;
};

int weir_lenders_open(struct weir_lenders **out, struct weir_rules *rules, struct weir_log *log,
                      struct weir_reason *reason)
{
    *out = NULL;
    if (!weir_rules_regions_reached(rules))
        return 0;
    struct weir_lenders *lenders = calloc(1, sizeof *lenders);
    if (!lenders)
        return WEIR_ERR_MEMORY;
    lenders->rules = weir_rules_ref_settings(rules);
    for (uint32_t i = 0; i < RULES_REGIONS_MAX; i++) {
        const struct weir_store_settings *settings;
        struct weir_bytes name;
        settings = weir_rules_region_store(rules, i, &name);
        int err = settings ? weir_shared_store_open_region(&lenders->region[i], rules, settings,
                                                           name, log, reason)
                           : 0;
        if (err < 0) {
            weir_lenders_close(lenders);
            return err;
        }
        lenders->count += settings != NULL;
    }
    *out = lenders;
    return 0;
}

void weir_lenders_close(struct weir_lenders *lenders)
{
    if (!lenders)
        return;
    for (uint32_t i = 0; i < RULES_REGIONS_MAX; i++)
        weir_shared_store_close(lenders->region[i]);
    weir_rules_unref_settings(lenders->rules);
    free(lenders);
}

int weir_lenders_join(struct weir_lenders *lenders, unsigned index, uv_loop_t *loop,
                      struct weir_lender_stores *stores, struct weir_reason *reason)
{
    *stores = (struct weir_lender_stores){{NULL}};
    for (uint32_t i = 0; lenders && i < RULES_REGIONS_MAX; i++) {
        int err = lenders->region[i] ? weir_shared_store_join(lenders->region[i], index, loop,
                                                              &stores->region[i], reason)
                                     : 0;
        if (err < 0) {
            stores->region[i] = NULL;
            weir_lenders_leave(lenders, index, stores, NULL, NULL);
            return err;
        }
    }
    return 0;
}

unsigned weir_lenders_leave(struct weir_lenders *lenders, unsigned index,
                            struct weir_lender_stores *stores, void (*closed)(void *context),
                            void *context)
{
    unsigned left = 0;
    for (uint32_t i = 0; lenders && i < RULES_REGIONS_MAX; i++) {
        struct weir_store *store = stores->region[i];
        stores->region[i] = NULL;
        if (!store)
            continue;
        weir_shared_store_leave(lenders->region[i], index, store, closed, context);
        left++;
    }
    return left;
}

unsigned weir_lenders_count(const struct weir_lenders *lenders)
{
    return lenders ? lenders->count : 0;
}

/* The settings of the region of `rules` that is called so; NULL: none, or it is this node's own. */
static const struct weir_store_settings *settings_of(const struct weir_rules *rules,
                                                     struct weir_bytes name)
{
    for (uint32_t i = 0; i < RULES_REGIONS_MAX; i++) {
        struct weir_bytes other;
        const struct weir_store_settings *settings = weir_rules_region_store(rules, i, &other);
        if (settings && weir_bytes_equal(name, other))
            return settings;
    }
    return NULL;
}

/* Region `i` that lends: its settings as it was opened, and by other rules. False: it does not
 * lend, or is not in them. */
static bool find_both(const struct weir_lenders *lenders, const struct weir_rules *rules,
                      uint32_t i, const struct weir_store_settings **from,
                      const struct weir_store_settings **to)
{
    struct weir_bytes name;
    *from = lenders->region[i] ? weir_rules_region_store(lenders->rules, i, &name) : NULL;
    *to = *from ? settings_of(rules, name) : NULL;
    return *to;
}

int weir_lenders_check(const struct weir_lenders *lenders, const struct weir_rules *rules,
                       struct weir_reason *reason)
{
    const struct weir_store_settings *from, *to;
    bool same = lenders;
    if (!weir_rules_regions_reached(rules))
        return 0;
    for (uint32_t i = 0; same && i < RULES_REGIONS_MAX; i++)
        if (find_both(lenders, rules, i, &from, &to))
            same = !weir_setting_differs(from->redis.url, to->redis.url) &&
                   !weir_setting_differs(from->prefix, to->prefix);
    if (same)
        return 0;
    snprintf(reason->text, sizeof reason->text,
             lenders ? "`regions`: the Redis of a region has changed, and limits are lent between "
                       "them; restart weir to change that"
                     : "`global`: `lend` or `wait` is new; restart weir to reach other regions");
    return WEIR_ERR_RULES;
}

bool weir_lenders_differ(const struct weir_lenders *lenders, const struct weir_rules *rules)
{
    const struct weir_store_settings *from, *to;
    bool differ = false;
    for (uint32_t i = 0; lenders && i < RULES_REGIONS_MAX; i++)
        differ |= find_both(lenders, rules, i, &from, &to) &&
                  weir_redis_access_differs(&from->redis, &to->redis);
    return differ;
}

bool weir_lenders_number(const struct weir_lenders *lenders, struct weir_rules *rules)
{
    return !lenders || weir_rules_number_lenders(rules, lenders->rules) ||
           !weir_rules_regions_reached(rules);
}

bool weir_lenders_totals(struct weir_lenders *lenders, unsigned i, struct weir_bytes *name,
                         struct weir_shared_totals *totals)
{
    if (!lenders || !lenders->region[i])
        return false;
    (void)weir_rules_region_store(lenders->rules, i, name);
    weir_shared_store_totals(lenders->region[i], totals);
    return true;
}
