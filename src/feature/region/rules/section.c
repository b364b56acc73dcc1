/* SPDX-License-Identifier: Apache-2.0 */
/* see section.h */
#include "feature/region/rules/section.h"

#include <string.h>

#include "core/bytes.h"
#include "feature/region/rules/region.h"
#include "rules/load/environment.h"
#include "rules/load/limit/limit_fields.h"
#include "rules/load/numbers.h"
#include "rules/load/server/store.h"

/* --- `regions` -------------------------------------------------------------------------------- */

#define SELF "self"

/* Where the states of each region are. */
struct places {
    const char *url, *prefix;
};

/* Two regions on one Redis are most likely a copied line. */
static void check_place(struct rules_loader *loader, const struct rules_field *redis,
                        struct places *places, uint32_t at)
{
    const struct weir_store_settings *store = &loader->rules->settings.store;
    places[at] = (struct places){store->redis.url, store->prefix};
    for (uint32_t i = 0; i < at && store->redis.url; i++) {
        if (places[i].url && strcmp(places[i].url, store->redis.url) == 0 &&
            strcmp(places[i].prefix, store->prefix) == 0)
            rules_problem(loader, redis->value,
                          "two regions have the same Redis and prefix: each region needs its own");
    }
}

enum { REDIS, WEIGHT, WEIGHT_BEFORE };

static const struct rules_keyword region_keywords[] = {
    [REDIS] = {"redis", RULES_PLACE, .section = &rules_section_store_redis, .flags = RULES_REQUIRED,
               .doc = "its Redis: a URL, or a mapping as in `store`"},
    [WEIGHT] = {"weight", RULES_NUMBER, RULES_RANGE(0, RULES_REGION_WEIGHT_MAX), .otherwise = "1",
                .doc = "its part of the keys whose home is chosen by a hash"},
    [WEIGHT_BEFORE] = {"weight_before", RULES_NUMBER, RULES_RANGE(0, RULES_REGION_WEIGHT_MAX),
                       .absent = "`weight`", .doc = "the weight that it had, while keys move"},
};
static const struct rules_section region_section = RULES_SECTION("a region", region_keywords);

static const struct rules_keyword regions_keywords[] = {
    {SELF, RULES_PLACE, .flags = RULES_REQUIRED, .doc = "the region of this node"},
};
static const struct rules_keyword any_region = {NULL, RULES_MAPPING, .section = &region_section,
                                                .doc = "a region, by its name"};
const struct rules_section rules_section_regions = {.what = "regions",
                                                    .keywords = regions_keywords,
                                                    .count = sizeof(regions_keywords) /
                                                             sizeof(regions_keywords[0]),
                                                    .others = &any_region};

/* One region; the names and values of a mapping alternate. */
static void load_region(struct rules_loader *loader, struct rules_regions *regions,
                        struct places *places, const struct rules_node *key,
                        const struct rules_node *value)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct rules_region *region = &regions->list[regions->count];
    struct weir_store_settings *store = &loader->rules->settings.store;
    struct weir_bytes name;
    uint64_t weight = 1, before;
    if (!rules_check_name(loader, key, "a region", &name) ||
        !rules_section_find(loader, &region_section, value, fields))
        return;
    if (name.data[0] == '-') /* a value that begins so is encoded in keys: see `home` */
        rules_problem(loader, key, "the name of a region cannot begin with `-`");
    region->name = (struct weir_bytes){rules_keep_text(loader, name.data, name.size), name.size};
    if (fields[WEIGHT].value)
        rules_keyword_number(loader, &region_keywords[WEIGHT], fields[WEIGHT].value, &weight);
    region->weight = (uint32_t)weight;
    before = weight;
    if (fields[WEIGHT_BEFORE].value)
        rules_keyword_number(loader, &region_keywords[WEIGHT_BEFORE], fields[WEIGHT_BEFORE].value,
                             &before);
    regions->before[regions->count] = (struct rules_region){region->name, (uint32_t)before};
    regions->weights_move |= fields[WEIGHT_BEFORE].value != NULL;
    regions->lender[regions->count] = (uint8_t)regions->count;
    if (!fields[REDIS].value) {
        rules_problem(loader, value, "`redis` is missing: each region has its own");
    } else if (regions->count == regions->self) {
        loader->redis = fields[REDIS].key;
        rules_load_store_redis(loader, &fields[REDIS]);
        check_place(loader, &fields[REDIS], places, regions->count);
    } else {
        struct weir_store_settings own = *store;
        rules_store_defaults(loader);
        store->nodes = 0;
        store->redis = (struct weir_redis_access){0};
        rules_load_store_redis(loader, &fields[REDIS]);
        check_place(loader, &fields[REDIS], places, regions->count);
        regions->store[regions->count] = *store;
        *store = own;
    }
    regions->count++;
}

/* The number of the region that `self` names, among the keys of the section; after a problem
 * UINT32_MAX. */
static uint32_t find_self(struct rules_loader *loader, const struct rules_node *section,
                          const struct rules_node *self)
{
    const char *names[RULES_REGIONS_MAX];
    uint32_t count = 0;
    struct weir_bytes name;
    struct rules_quote quote;
    struct rules_hint room;
    if (!rules_read_place(loader, self, SELF, &name))
        return UINT32_MAX;
    for (uint32_t i = 0; i < section->size && count < RULES_REGIONS_MAX; i += 2) {
        const struct rules_node *key = section->items[i];
        if (weir_bytes_are((struct weir_bytes){key->text, key->size}, SELF))
            continue;
        if (weir_bytes_equal(name, (struct weir_bytes){key->text, key->size}))
            return count;
        names[count++] = key->text;
    }
    rules_quote(&quote, name.data, name.size);
    rules_problem(loader, self, "`self` names no region of this file: %s%s", quote.text,
                  rules_hint(&room, name.data, name.size, names, count));
    return UINT32_MAX;
}

static void check_weights(struct rules_loader *loader, const struct rules_field *field,
                          const struct rules_regions *regions)
{
    uint32_t sum = 0, before = 0;
    bool differ = false;
    for (uint32_t i = 0; i < regions->count; i++) {
        sum += regions->list[i].weight;
        before += regions->before[i].weight;
        differ |= regions->list[i].weight != regions->before[i].weight;
    }
    if (sum == 0)
        rules_problem(loader, field->key, "all regions have `weight: 0`, so no key has a home");
    else if (before == 0)
        rules_problem(loader, field->key,
                      "all regions have `weight_before: 0`, so no key had a home");
    else if (regions->weights_move && !differ)
        rules_problem(loader, field->key,
                      "each `weight_before` is the region's `weight`, so no key moves; remove it");
}

void rules_load_regions(struct rules_loader *loader, const struct rules_field *field)
{
    const struct rules_node *section = field->value, *self = NULL;
    struct places places[RULES_REGIONS_MAX] = {{NULL, NULL}};
    struct rules_regions *regions = rules_keep(loader, sizeof(*regions));
    if (!regions)
        return;
    if (section->kind != RULES_MAP) {
        rules_problem(loader, section,
                      "`regions` must be a mapping: `self`, and each region with its `redis`");
        return;
    }
    if (!loader->rules->settings.store.prefix)
        rules_store_defaults(loader);
    loader->rules->shared = true;
    loader->rules->regions = regions;
    loader->redis = field->key;
    for (uint32_t i = 0; i < section->size; i += 2)
        if (strcmp(section->items[i]->text, SELF) == 0)
            self = section->items[i + 1];
    uint32_t count = section->size / 2 - (self != NULL);
    if (count < 2 || count > RULES_REGIONS_MAX) {
        rules_problem(loader, field->key, "`regions` must have 2 to %d regions, not %u",
                      RULES_REGIONS_MAX, count);
        return;
    }
    regions->self = self ? find_self(loader, section, self) : UINT32_MAX;
    if (!self)
        rules_problem(loader, field->key,
                      "`self` is missing: the region of this node, as in `self: ${WEIR_REGION}`");
    for (uint32_t i = 0; i < section->size; i += 2)
        if (section->items[i + 1] != self)
            load_region(loader, regions, places, section->items[i], section->items[i + 1]);
    if (regions->count == count)
        check_weights(loader, field, regions);
}

void rules_check_regions(struct rules_loader *loader, const struct rules_field *field)
{
    uint64_t wait_ns;
    if (loader->rules->regions->weights_move && weir_rules_moving(loader->rules, &wait_ns) == 0)
        rules_problem(loader, field->key,
                      "`weight_before` is for limits with `moving: true`, and there is none");
}

/* --- `global` --------------------------------------------------------------------------------- */

/* "5%", "33.33%", "1/3". */
static bool read_fraction(struct rules_loader *loader, const struct rules_node *node,
                          const char *what, struct rules_fraction *fraction, bool may_be_0)
{
    struct weir_bytes text;
    struct rules_quote quote;
    uint64_t whole = 0, rest = 0;
    if (!rules_read_text(loader, node, what, &text))
        return false;
    const char *slash = memchr(text.data, '/', text.size);
    bool percent = text.size > 1 && text.data[text.size - 1] == '%' && !slash, good = false;
    if (percent) {
        const char *point = memchr(text.data, '.', text.size);
        size_t size = point ? (size_t)(point - text.data) : text.size - 1;
        size_t digits = point ? text.size - size - 2 : 0;
        good = weir_digits_parse(&whole, text.data, size) == (int)size && whole <= 100 &&
               (!point || (digits >= 1 && digits <= 2 &&
                           weir_digits_parse(&rest, point + 1, digits) == (int)digits));
        *fraction = (struct rules_fraction){
            (uint32_t)(whole * 100 + (digits == 1 ? rest * 10 : rest)), RULES_FRACTION_MAX};
    } else if (slash) {
        size_t size = (size_t)(slash - text.data), under = text.size - size - 1;
        good = weir_digits_parse(&whole, text.data, size) == (int)size && under > 0 &&
               weir_digits_parse(&rest, slash + 1, under) == (int)under && rest >= 1 &&
               rest <= RULES_FRACTION_MAX && whole <= rest;
        *fraction = (struct rules_fraction){(uint32_t)whole, (uint32_t)rest};
    }
    if (may_be_0 && weir_bytes_are(text, "0")) {
        *fraction = (struct rules_fraction){0, RULES_FRACTION_MAX};
        good = true;
    }
    good = good && (fraction->numerator > 0 || may_be_0) &&
           fraction->numerator <= fraction->denominator;
    if (!good)
        rules_problem(loader, node,
                      "`%s` must be a part of the limit such as `5%%`, `33.33%%` or `1/3`, not %s",
                      what, rules_quote(&quote, text.data, text.size));
    return good;
}

/* Which part of the key an attribute is; -1: none. */
static int find_in_key(const struct rules_rule *rule, struct weir_bytes name)
{
    for (uint32_t i = 0; i < rule->key_count; i++)
        if (weir_bytes_are(name, rule->key[i].name))
            return (int)i;
    return -1;
}

static void load_home(struct rules_loader *loader, const struct rules_node *node,
                      const struct rules_rule *rule, struct rules_global *global)
{
    const struct rules_regions *regions = loader->rules->regions;
    struct weir_bytes name;
    struct rules_quote quote;
    uint32_t region = 0;
    if (!rules_read_text(loader, node, "home", &name))
        return;
    while (region < regions->count && !weir_bytes_equal(name, regions->list[region].name))
        region++;
    bool hash = weir_bytes_are(name, "hash"), named = region < regions->count;
    int part = find_in_key(rule, name);
    if ((int)hash + (int)named + (int)(part >= 0) > 1) {
        rules_problem(loader, node,
                      "`home: %.*s` has two meanings, among `hash`, a region and an attribute of "
                      "the key; give the region another name",
                      (int)name.size, name.data);
    } else if (named) {
        global->by = RULES_HOME_NAMED;
        global->region = (uint8_t)region;
    } else if (part >= 0 &&
               (rule->key[part].secret || rule->key[part].source == RULES_FROM_ADDRESS)) {
        rules_problem(loader, node, "`home: %.*s`: its values are no names of regions",
                      (int)name.size, name.data);
    } else if (part >= 0) {
        global->by = RULES_HOME_ATTRIBUTE;
        global->part = (uint8_t)part;
    } else if (!hash) {
        rules_problem(loader, node,
                      "`home` must be `hash`, a region, or an attribute of the limit's key, not %s",
                      rules_quote(&quote, name.data, name.size));
    }
}

#define SPLIT_CAPACITY_MIN 50
#define SPLIT_SPAN_MIN_NS UINT64_C(50000000)
#define SPLIT_LOG_MIN_NS UINT64_C(130000000)

/* Why a limit is tied to the region of its state, which decides for no other one: the token of a
 * lease ends it there, and a queue delays requests there. NULL: it is not. */
static const char *tied(const struct weir_limit *limit)
{
    switch (limit->spec.algorithm) {
    case WEIR_CONCURRENCY:
        return "concurrency";
    case WEIR_LEAKY_QUEUE:
        return "a queue";
    default:
        return NULL;
    }
}

/* Why regions cannot lend each other parts of a limit (store/redis/share/share.h): then different
 * parts, without `wait`, would leave a key abroad with its floor alone, for ever. NULL: they can.
 */
static const char *unsplit(const struct weir_limit *limit)
{
    switch (limit->spec.algorithm) {
    case WEIR_QUOTA:
        return "a quota by calendar";
    case WEIR_SLIDING_LOG:
        if (limit->spec.window_ns < SPLIT_LOG_MIN_NS)
            return "a log of a window below 130 ms";
        break;
    case WEIR_FIXED_WINDOW:
    case WEIR_SLIDING_WINDOW:
        if (limit->segment_ns < SPLIT_SPAN_MIN_NS)
            return "a window (or segment) below 50 ms";
        break;
    default:
        if (limit->depth_ns < SPLIT_SPAN_MIN_NS)
            return "a bucket that refills within 50 ms";
        break;
    }
    return limit->capacity < SPLIT_CAPACITY_MIN ? "a limit below 50" : NULL;
}

struct dividing {
    struct rules_loader *loader;
    const struct rules_field *floor, *home_share; /* where problems are reported */
    struct rules_global *global;
    const char *what; /* what problems begin with */
    bool lend;        /* as the file says */
};

/* The floor of a limit. Where requests wait for the home, it may be nothing. */
static int make_floor(const struct rules_global *global, const struct weir_limit *limit,
                      struct weir_limit *floor, struct weir_reason *reason)
{
    int err = rules_limit_part(limit, global->floor, floor, reason);
    if (err == 0 || global->wait_ns == 0)
        return err;
    struct weir_limit_spec none = limit->spec;
    none.rate = none.burst = none.rollover = 0;
    return weir_limit_init(floor, &none, reason);
}

/* Returns whether the limit can be divided so. */
static bool is_divisible(const struct dividing *dividing, const struct weir_limit *limit)
{
    const struct rules_global *global = dividing->global;
    uint32_t regions = dividing->loader->rules->regions->count;
    if (global->equal || limit->spec.rate == 0)
        return true;
    const char *why = tied(limit);
    if (why) {
        rules_problem(dividing->loader, dividing->floor->value,
                      "%s%s has equal parts in all regions: set `floor: 1/%u`", dividing->what, why,
                      regions);
        return false;
    }
    if (global->moving && limit->spec.algorithm == WEIR_QUOTA) {
        rules_problem(dividing->loader, dividing->floor->value,
                      "a quota by calendar remembers its whole period, so `moving` does not end "
                      "in time; remove it");
        return false;
    }
    why = unsplit(limit);
    if (why && global->wait_ns == 0) {
        rules_problem(dividing->loader, dividing->floor->value,
                      "%s%s has equal parts in all regions: set `floor: 1/%u`, or `wait`, as in "
                      "`wait: 100ms`, to decide it at the key's home",
                      dividing->what, why, regions);
        return false;
    }
    return true;
}

/* How long a state depends on what it has admitted, and requests that wait for it. */
static uint64_t memory_of(const struct rules_global *global, const struct weir_limit *limit)
{
    uint64_t windows_ns = 2 * limit->spec.window_ns;
    return (windows_ns > limit->depth_ns ? windows_ns : limit->depth_ns) + global->wait_ns;
}

/* Nodes of other files may take the home's part and the floor for one state: both count as far. */
static void count_alike(const struct weir_limit *home, struct weir_limit *floor)
{
    floor->packs &= home->packs;
    floor->count_bits = home->count_bits > floor->count_bits ? home->count_bits : floor->count_bits;
}

static void divide_one(const struct dividing *dividing, const struct weir_limit *limit,
                       struct weir_limit *home, struct weir_limit *floor)
{
    struct weir_reason reason = {{0}};
    if (!is_divisible(dividing, limit))
        return;
    if (make_floor(dividing->global, limit, floor, &reason) < 0) {
        rules_problem(dividing->loader, dividing->floor->value, "%sfloor: %s", dividing->what,
                      reason.text);
    } else if (rules_limit_part(limit, dividing->global->home, home, &reason) < 0) {
        const struct rules_field *at =
            dividing->home_share->value ? dividing->home_share : dividing->floor;
        rules_problem(dividing->loader, at->value, "%shome_share: %s", dividing->what, reason.text);
    } else {
        uint64_t memory_ns = memory_of(dividing->global, limit);
        count_alike(home, floor);
        if (memory_ns > dividing->global->memory_ns)
            dividing->global->memory_ns = memory_ns;
    }
}

static void divide(const struct dividing *dividing, struct rules_rates *rates)
{
    struct rules_loader *loader = dividing->loader;
    size_t size = rates->count * sizeof(struct weir_limit);
    if (!rates->limits || rates->count == 0)
        return;
    struct weir_limit *home = rules_keep(loader, size), *floor = rules_keep(loader, size);
    if (!home || !floor)
        return;
    uint32_t wrong = loader->wrong;
    for (uint8_t i = 0; i < rates->count && loader->wrong == wrong; i++)
        divide_one(dividing, &rates->limits[i], &home[i], &floor[i]);
    if (loader->wrong > wrong)
        return;
    bool reached = !dividing->global->equal && (dividing->lend || dividing->global->wait_ns > 0);
    rates->lent = 0;
    for (uint8_t i = 0; i < rates->count; i++) {
        home[i].digest = floor[i].digest = reached; /* other regions learn no keys */
        if (!tied(&rates->limits[i]) && !unsplit(&rates->limits[i]))
            rates->lent |= UINT32_C(1) << i;
    }
    rates->limits = home;
    rates->abroad = dividing->global->equal ? NULL : floor;
}

/* `floor` and `home_share`; false after a problem. */
static bool read_parts(struct rules_loader *loader, const struct rules_field *floor,
                       const struct rules_field *home_share, struct rules_global *global)
{
    uint32_t others = loader->rules->regions->count - 1;
    if (!read_fraction(loader, floor->value, "floor", &global->floor, global->wait_ns > 0))
        return false;
    global->home = rules_fraction_rest(global->floor, others);
    if (home_share->value &&
        !read_fraction(loader, home_share->value, "home_share", &global->home, false))
        return false;
    if (!rules_fractions_fit(global->floor, others, global->home)) {
        rules_problem(loader, (home_share->value ? home_share : floor)->value,
                      "%u floors and `home_share` are more than 100%% of the limit", others);
        return false;
    }
    if (global->home.numerator == 0) {
        rules_problem(loader, floor->value,
                      "%u floors leave nothing for the home: a floor may be at most 1/%u", others,
                      others + 1);
        return false;
    }
    return true;
}

#define WAIT_MIN_NS UINT64_C(1000000)

static void check_wait(const struct dividing *dividing, const struct rules_field *wait)
{
    if (dividing->global->equal && dividing->global->wait_ns > 0)
        rules_problem(dividing->loader, wait->key,
                      "`wait` has no use with equal parts, which no home decides; remove it");
}

/* `moving` is for keys that may change their home. */
static void check_moving(struct rules_loader *loader, const struct rules_field *moving,
                         const struct rules_field *limit, const struct rules_global *global)
{
    if (global->moving && global->equal)
        rules_problem(
            loader, moving->key,
            "`moving` is for keys that change their home, and with equal parts no key has "
            "one; remove it");
    else if (loader->rules->regions->weights_move && !global->moving && !global->equal &&
             global->by != RULES_HOME_NAMED)
        rules_problem(loader, limit->value,
                      "homes change by `weight_before`: set `moving: true` here, too");
}

enum { SHARE_FLOOR, HOME_SHARE, HOME, WAIT, LEND, MOVING };

static const struct rules_keyword global_keywords[] = {
    [SHARE_FLOOR] = {"floor", RULES_TEXT, .flags = RULES_REQUIRED,
                     .doc = "what each region that is not a key's home has of the limit: `5%`, "
                            "`1/3`"},
    [HOME_SHARE] = {"home_share", RULES_TEXT, .absent = "the rest",
                    .doc = "what the home has of it"},
    [HOME] = {"home", RULES_TEXT, .otherwise = "hash",
              .doc = "which region is a key's home: `hash`, a region, or an attribute of the key"},
    [WAIT] = {"wait", RULES_DURATION, RULES_RANGE(WAIT_MIN_NS, RULES_WAIT_MAX_NS), .word = "0",
              .otherwise = "0",
              .doc = "how long a request may wait for the home's decision, 1ms to 1s, or 0"},
    [LEND] = {"lend", RULES_FLAG, .otherwise = "true",
              .doc = "whether the home lends to other regions"},
    [MOVING] = {"moving", RULES_FLAG, .otherwise = "false",
                .doc = "`true`: keys may change their home"},
};
const struct rules_section rules_section_global = RULES_SECTION("global", global_keywords);

void rules_load_global(struct rules_loader *loader, const struct rules_field *limit_fields,
                       struct rules_rule *rule)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    const struct rules_field *field = &limit_fields[RULES_LIMIT_GLOBAL];
    const struct rules_regions *regions = loader->rules->regions;
    uint32_t wrong = loader->wrong;
    if (!rules_section_find(loader, &rules_section_global, field->value, fields))
        return;
    if (!regions) {
        rules_problem(loader, field->key, "`global` needs the section `regions`");
        return;
    }
    bool lend = true;
    if (fields[LEND].value)
        rules_read_bool(loader, fields[LEND].value, "lend", &lend);
    struct rules_global *global = rules_keep(loader, sizeof(*global));
    if (global && fields[WAIT].value)
        (void)rules_keyword_number(loader, &global_keywords[WAIT], fields[WAIT].value,
                                   &global->wait_ns);
    if (!fields[SHARE_FLOOR].value)
        rules_problem(loader, field->value,
                      "`floor` is missing: what each region that is not a key's home has of the "
                      "limit, as in `floor: 5%%`");
    if (!global || loader->wrong > wrong || regions->count < 2 ||
        !read_parts(loader, &fields[SHARE_FLOOR], &fields[HOME_SHARE], global))
        return;
    if (fields[HOME].value)
        load_home(loader, fields[HOME].value, rule, global);
    if (fields[MOVING].value)
        rules_read_bool(loader, fields[MOVING].value, "moving", &global->moving);
    global->equal = (uint64_t)global->floor.numerator * global->home.denominator ==
                    (uint64_t)global->home.numerator * global->floor.denominator;
    const struct dividing dividing = {loader, &fields[SHARE_FLOOR], &fields[HOME_SHARE], global, "",
                                      lend};
    check_wait(&dividing, &fields[WAIT]);
    check_moving(loader, &fields[MOVING], field, global);
    divide(&dividing, &rule->rates);
    global->lends = lend && !global->equal && rule->rates.lent != 0;
    for (uint32_t p = 0; p < loader->rules->plan_count && rule->plans; p++) {
        divide(&dividing, &rule->plans[p]);
        global->lends |= lend && !global->equal && rule->plans[p].lent != 0;
    }
    loader->rules->regions->waits |= global->wait_ns > 0;
    loader->rules->regions->reached |= global->lends || global->wait_ns > 0;
    rule->global = global;
}

void rules_divide_candidate(struct rules_loader *loader, const struct rules_field *field,
                            const struct rules_rule *rule, struct rules_rates *rates)
{
    struct rules_global global = *rule->global; /* a candidate's memory delays no file */
    const struct dividing dividing = {loader, field, field, &global, "candidate: ", global.lends};
    divide(&dividing, rates);
}
