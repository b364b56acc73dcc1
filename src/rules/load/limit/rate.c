/* SPDX-License-Identifier: Apache-2.0 */
/* see rate.h */
#include "rules/load/limit/rate.h"

#include <stdlib.h>
#include <string.h>

#include "core/algorithm.h"
#include "core/bucket.h"
#include "core/bytes.h"
#include "core/text/siphash.h"
#include "rules/calendar/calendar.h"
#include "rules/load/fields.h"
#include "rules/load/limit/limit_fields.h"
#include "rules/load/numbers.h"

/* --- `quota`: its calendar -------------------------------------------------------------------- */

#define NS UINT64_C(1000000000)

static const char *const units[] = {"day", "week", "month", "year"};

/* Two digits and a separator: "06:" */
static bool two_digits(const char *text, int32_t *value)
{
    if (text[0] < '0' || text[0] > '9' || text[1] < '0' || text[1] > '9')
        return false;
    *value = (text[0] - '0') * 10 + text[1] - '0';
    return true;
}

static bool anchor_time(struct weir_bytes word, struct rules_calendar *calendar)
{
    return word.size == 5 && word.data[2] == ':' && two_digits(word.data, &calendar->hour) &&
           two_digits(word.data + 3, &calendar->minute) && calendar->hour < 24 &&
           calendar->minute < 60;
}

/* The part of an anchor that is a day, in the words of its unit. */
static bool anchor_day(struct weir_bytes word, struct rules_calendar *calendar)
{
    uint64_t day;
    switch (calendar->unit) {
    case RULES_WEEKLY:
        calendar->weekday = rules_weekday_parse(word);
        return calendar->weekday >= 0;
    case RULES_MONTHLY:
        if (word.size > 2 || weir_digits_parse(&day, word.data, word.size) != (int)word.size ||
            day < 1 || day > 31)
            return false;
        calendar->day = (int32_t)day;
        return true;
    case RULES_YEARLY:
        return word.size == 5 && word.data[2] == '-' && two_digits(word.data, &calendar->month) &&
               two_digits(word.data + 3, &calendar->day) && calendar->month >= 1 &&
               calendar->month <= 12 && calendar->day >= 1 &&
               calendar->day <= rules_month_length(2024, calendar->month);
    default:
        return false;
    }
}

/* A day, a time of day, or both in this order. */
static bool read_anchor(struct rules_loader *loader, const struct rules_node *node,
                        struct rules_calendar *calendar)
{
    static const char *const examples[] = {"`06:00`", "`monday` or `mon 06:00`",
                                           "`15` or `15 06:00`", "`04-06` or `04-06 06:00`"};
    struct weir_bytes text;
    struct rules_quote quote;
    if (!rules_read_text(loader, node, "anchor", &text))
        return false;
    const char *space = memchr(text.data, ' ', text.size);
    size_t first = space ? (size_t)(space - text.data) : text.size;
    struct weir_bytes day = {text.data, first};
    bool good;
    if (space) {
        struct weir_bytes time = {space + 1, text.size - first - 1};
        good = anchor_day(day, calendar) && anchor_time(time, calendar);
    } else {
        good = anchor_day(day, calendar) || anchor_time(day, calendar);
    }
    if (!good) {
        rules_problem(loader, node, "%s is not an anchor of a %s; allowed is %s",
                      rules_quote(&quote, text.data, text.size), units[calendar->unit],
                      examples[calendar->unit]);
    }
    return good;
}

static bool read_rollover(struct rules_loader *loader, const struct rules_node *node, uint64_t most,
                          struct rules_rollover *rollover)
{
    struct weir_bytes text;
    struct weir_reason reason = {{0}};
    if (!rules_read_text(loader, node, "rollover", &text))
        return false;
    if (rules_rollover_parse(text, most, rollover, &reason) < 0) {
        rules_problem(loader, node, "%s", reason.text);
        return false;
    }
    return true;
}

/* One calendar of the file: shared by all limits that count in it. */
struct rules_bounds {
    struct rules_bounds *next;
    uint64_t name;
    const uint64_t *bounds;
    uint32_t count;
};

/* What tells this calendar from others, on every node and in every state file. */
static uint64_t calendar_name(const struct rules_calendar *calendar, struct weir_bytes zone)
{
    const uint64_t key[2] = {0, 0};
    int32_t words[6 + (RULES_ZONE_NAME_MAX + 3) / 4] = {calendar->unit, calendar->month,
                                                        calendar->day,  calendar->weekday,
                                                        calendar->hour, calendar->minute};
    uint64_t hash[2];
    memcpy(&words[6], zone.data, zone.size);
    weir_siphash128(key, words, sizeof(words), hash);
    return hash[0];
}

static const struct rules_bounds *make_bounds(struct rules_loader *loader,
                                              const struct rules_calendar *calendar,
                                              const struct rules_zone *zone, uint64_t name)
{
    int64_t *begins = malloc(RULES_CALENDAR_BOUNDS_MAX * sizeof(*begins));
    struct rules_bounds *made = rules_borrow(loader, sizeof(*made));
    if (!begins || !made) {
        loader->no_memory = true;
        free(begins);
        return NULL;
    }
    made->name = name;
    made->count = rules_calendar_bounds(calendar, zone, RULES_CALENDAR_FROM_S, RULES_CALENDAR_TO_S,
                                        begins, RULES_CALENDAR_BOUNDS_MAX);
    uint64_t *bounds = rules_keep(loader, made->count * sizeof(*bounds));
    for (uint32_t i = 0; bounds && i < made->count; i++)
        bounds[i] = (uint64_t)begins[i] * NS;
    free(begins);
    made->bounds = bounds;
    made->next = loader->calendars;
    loader->calendars = made;
    return bounds ? made : NULL;
}

static const struct rules_bounds *bounds_of(struct rules_loader *loader,
                                            const struct rules_node *node,
                                            const struct rules_calendar *calendar)
{
    struct weir_bytes name = {"UTC", 3};
    struct weir_reason reason = {{0}};
    struct rules_zone *zone;
    if (!node)
        node = loader->timezone;
    if (node && !rules_read_text(loader, node, "timezone", &name))
        return NULL;
    uint64_t hash = name.size <= RULES_ZONE_NAME_MAX ? calendar_name(calendar, name) : 0;
    for (const struct rules_bounds *b = loader->calendars; b; b = b->next)
        if (b->name == hash)
            return b;
    int err = rules_zone_open(&zone, name, &reason);
    if (err < 0) {
        if (err == WEIR_ERR_MEMORY)
            loader->no_memory = true;
        else
            rules_problem(loader, node, "%s", reason.text);
        return NULL;
    }
    const struct rules_bounds *bounds = make_bounds(loader, calendar, zone, hash);
    rules_zone_close(zone);
    return bounds;
}

static bool load_quota(struct rules_loader *loader, const struct rules_field *fields, uint8_t unit,
                       struct weir_limit_spec *spec)
{
    struct rules_calendar calendar = {.unit = unit, .month = 1, .day = 1};
    const struct rules_node *anchor = fields[RULES_LIMIT_ANCHOR].value;
    const struct rules_node *rollover = fields[RULES_LIMIT_ROLLOVER].value;
    if (anchor && !read_anchor(loader, anchor, &calendar))
        return false;
    struct rules_rollover over = {0, false};
    if (rollover && !read_rollover(loader, rollover, spec->rate, &over))
        return false;
    spec->rollover = rules_rollover_of(&over, spec->rate);
    const struct rules_bounds *bounds =
        bounds_of(loader, fields[RULES_LIMIT_TIMEZONE].value, &calendar);
    if (!bounds)
        return false;
    spec->window_ns = rules_unit_ns(unit);
    spec->calendar = bounds->name;
    spec->bounds = bounds->bounds;
    spec->bound_count = bounds->count;
    return true;
}

/* --- `algorithm` and `rate` ------------------------------------------------------------------- */

#define LIFE_DEFAULT_NS (UINT64_C(30) * 1000000000)

/* Where a limit's numbers come from, while they are put together. */
struct numbers {
    struct rules_loader *loader;
    const struct rules_field *fields;
    struct weir_limit_spec spec;
    uint8_t unit; /* of the quota at hand */
    bool wrong;   /* a problem that makes compiling pointless */
};

static const struct rules_node *value_of(const struct numbers *numbers,
                                         enum rules_limit_field field)
{
    return numbers->fields[field].value;
}

static const struct rules_keyword *row(enum rules_limit_field field)
{
    return &rules_section_limit.keywords[field];
}

/* A key that has no use here. */
static void misplaced(struct numbers *numbers, enum rules_limit_field field, const char *belongs)
{
    const struct rules_field *at = &numbers->fields[field];
    if (at->value) {
        rules_problem(numbers->loader, at->key, "`%s` belongs to %s, not to %s", at->name, belongs,
                      weir_algorithm_name(numbers->spec.algorithm));
    }
}

static void read_algorithm(struct numbers *numbers)
{
    const struct rules_node *node = value_of(numbers, RULES_LIMIT_ALGORITHM);
    bool quota = value_of(numbers, RULES_LIMIT_QUOTA);
    numbers->spec.algorithm = quota ? WEIR_QUOTA : WEIR_SLIDING_WINDOW;
    if (quota) {
        misplaced(numbers, RULES_LIMIT_ALGORITHM, "limits with a rate");
    } else if (node) {
        uint32_t count = 0;
        while (algorithm_words[count])
            count++;
        int choice = rules_read_choice(numbers->loader, node, "algorithm", algorithm_words, count);
        numbers->wrong = choice < 0;
        if (choice >= 0)
            numbers->spec.algorithm =
                (enum weir_algorithm)rules_algorithm_named(weir_bytes_of(algorithm_words[choice]));
    }
    const struct rules_node *queue = value_of(numbers, RULES_LIMIT_QUEUE);
    bool queued = false;
    if (queue && numbers->spec.algorithm == WEIR_LEAKY_BUCKET &&
        rules_read_bool(numbers->loader, queue, "queue", &queued) && queued)
        numbers->spec.algorithm = WEIR_LEAKY_QUEUE;
}

static void read_window_options(struct numbers *numbers)
{
    struct rules_loader *loader = numbers->loader;
    if (numbers->spec.algorithm != WEIR_SLIDING_WINDOW)
        return;
    const struct rules_node *segments = value_of(numbers, RULES_LIMIT_SEGMENTS);
    const struct rules_node *strict = value_of(numbers, RULES_LIMIT_STRICT);
    uint64_t count = 0;
    if (segments) {
        numbers->wrong |=
            !rules_keyword_number(loader, row(RULES_LIMIT_SEGMENTS), segments, &count);
        numbers->spec.segments = (uint32_t)count;
    }
    if (strict)
        numbers->wrong |= !rules_read_bool(loader, strict, "strict", &numbers->spec.strict);
}

/* Compiles the spec; `node` is where its rate stands. */
static void compile(struct numbers *numbers, const struct weir_limit_spec *spec,
                    const struct rules_node *node, struct weir_limit *limit)
{
    struct weir_reason reason = {{0}};
    const struct rules_node *segments = value_of(numbers, RULES_LIMIT_SEGMENTS);
    if (numbers->wrong)
        return;
    switch (rules_numbers_compile(spec, numbers->loader->rules->shared, limit, &reason)) {
    case RULES_FAULT_NONE:
        return;
    case RULES_FAULT_LIFE:
        node = value_of(numbers, RULES_LIMIT_LIFE);
        break;
    case RULES_FAULT_SEGMENTS:
        node = value_of(numbers, RULES_LIMIT_RATE) == node ? segments : node;
        break;
    case RULES_FAULT_SHARED:
        node = segments;
        break;
    default:
        break;
    }
    rules_problem(numbers->loader, node, "%s", reason.text);
}

/* What stands where a rate does, in the words of the algorithm; false after a problem. */
static bool read_numbers(struct numbers *numbers, const struct rules_node *node,
                         struct weir_rate *rate)
{
    uint8_t algorithm = (uint8_t)numbers->spec.algorithm;
    const char *what = algorithm == WEIR_CONCURRENCY ? "limit"
                       : algorithm == WEIR_QUOTA     ? "quota"
                                                     : "rate";
    struct weir_bytes text;
    struct weir_reason reason = {{0}};
    memset(rate, 0, sizeof(*rate));
    if (!rules_read_text(numbers->loader, node, what, &text))
        return false;
    if (rules_numbers_parse(algorithm, text, rate, &numbers->unit, &reason) < 0) {
        rules_problem(numbers->loader, node, "%s", reason.text);
        return false;
    }
    return true;
}

/* The numbers of `node` into `spec`; false after a problem. */
static bool use_numbers(struct numbers *numbers, const struct weir_rate *rate,
                        const struct rules_node *node, struct weir_limit_spec *spec)
{
    struct weir_reason reason = {{0}};
    if (spec->algorithm == WEIR_QUOTA) {
        spec->rate = rate->count;
        return load_quota(numbers->loader, numbers->fields, numbers->unit, spec);
    }
    if (rules_numbers_use(rate, spec, &reason) < 0) {
        rules_problem(numbers->loader, node, "%s", reason.text);
        return false;
    }
    return true;
}

/* Tells where one of the rates before makes this one useless, or the other way round. */
static void compare_rates(struct numbers *numbers, const struct rules_node *list, uint32_t number,
                          const struct weir_limit *limits)
{
    const struct weir_limit *limit = &limits[number];
    for (uint32_t i = 0; i < number && limit->spec.window_ns > 0; i++) {
        const struct weir_limit *other = &limits[i];
        int useless = other->spec.window_ns > 0 ? rules_useless(limit, other) : 0;
        if (useless != 0) {
            rules_problem(numbers->loader, list->items[number],
                          "beside `%s` the rate `%s` never denies anything; remove it",
                          list->items[useless == 1 ? i : number]->text,
                          list->items[useless == 1 ? number : i]->text);
            return;
        }
    }
}

/* Several rates: all of them count. */
static void load_rates(struct numbers *numbers, const struct rules_node *list,
                       struct rules_rates *rates)
{
    struct rules_loader *loader = numbers->loader;
    if (list->size < 2 || list->size > WEIR_RATES_MAX) {
        rules_problem(loader, list, "a list of rates has 2 to %d of them, not %u", WEIR_RATES_MAX,
                      list->size);
        return;
    }
    struct weir_limit *limits = rules_keep(loader, list->size * sizeof(*limits));
    for (uint32_t i = 0; i < list->size && limits; i++) {
        const struct rules_node *node = list->items[i];
        struct weir_limit_spec spec = numbers->spec;
        struct weir_rate rate;
        if (!read_numbers(numbers, node, &rate))
            continue;
        if (rate.kind != WEIR_RATE_COUNT) {
            rules_problem(loader, node, "`%s` is not allowed in a list of rates", node->text);
        } else if (use_numbers(numbers, &rate, node, &spec)) {
            compile(numbers, &spec, node, &limits[i]);
            compare_rates(numbers, list, i, limits);
        }
    }
    rates->limits = limits;
    rates->count = limits ? (uint8_t)list->size : 0;
}

/* Whether a list may stand where the numbers do: for quotas and concurrency there is one. */
static bool is_list(const struct numbers *numbers, const struct rules_node *node)
{
    return node->kind == RULES_LIST && numbers->spec.algorithm != WEIR_QUOTA &&
           numbers->spec.algorithm != WEIR_CONCURRENCY;
}

/* One rate, compiled. */
static void load_single(struct numbers *numbers, const struct weir_limit_spec *spec,
                        const struct rules_node *node, struct rules_rates *rates)
{
    rates->limits = rules_keep(numbers->loader, sizeof(*rates->limits));
    if (rates->limits) {
        rates->count = 1;
        compile(numbers, spec, node, rates->limits);
    }
}

/* One plan's numbers for this limit. */
static void load_plan_limit(struct numbers *numbers, const struct rules_plan_entry *entry,
                            struct rules_rates *out)
{
    struct weir_rate rate;
    struct weir_limit_spec spec = numbers->spec;
    if (is_list(numbers, entry->value)) {
        load_rates(numbers, entry->value, out);
        return;
    }
    if (!read_numbers(numbers, entry->value, &rate))
        return;
    if (rate.kind == WEIR_RATE_PLAN)
        rules_problem(numbers->loader, entry->value, "`plan` is not allowed in a plan");
    else if (rate.kind == WEIR_RATE_COUNT && use_numbers(numbers, &rate, entry->value, &spec))
        load_single(numbers, &spec, entry->value, out);
}

static void load_plans(struct numbers *numbers, const struct rules_node *node,
                       struct rules_rule *rule)
{
    struct rules_loader *loader = numbers->loader;
    struct weir_rules *rules = loader->rules;
    if (!loader->default_given)
        rules_problem(loader, node, "`plan` needs `default_plan`, for callers without a plan");
    rule->plans = rules_keep(loader, (rules->plan_count + 1) * sizeof(*rule->plans));
    uint64_t hash = rules_text_hash(rule->name, rule->name_size);
    for (uint32_t p = 0; p < rules->plan_count && rule->plans; p++) {
        uint32_t entry =
            rules_string_map_find(&loader->plan_limits, p, hash, rule->name, rule->name_size);
        if (entry == RULES_NONE) {
            rules_problem(loader, loader->plans[p].name, "plan `%s` lacks the limit `%s`",
                          rules->plan_names[p], rule->name);
            continue;
        }
        loader->plans[p].entries[entry].used = true;
        load_plan_limit(numbers, &loader->plans[p].entries[entry], &rule->plans[p]);
    }
}

static void load_concurrency(struct numbers *numbers, const struct rules_node *limit,
                             struct weir_rate *rate, const struct rules_node **node)
{
    struct rules_loader *loader = numbers->loader;
    const struct rules_node *life = value_of(numbers, RULES_LIMIT_LIFE);
    misplaced(numbers, RULES_LIMIT_RATE, "the other algorithms");
    numbers->spec.window_ns = LIFE_DEFAULT_NS;
    struct weir_bytes text;
    struct weir_reason reason;
    if (life && rules_read_text(loader, life, "life", &text) &&
        weir_duration_parse(&numbers->spec.window_ns, text.data, text.size, &reason) < 0) {
        rules_problem(loader, life, "%s", reason.text);
        numbers->wrong = true;
    }
    *node = value_of(numbers, RULES_LIMIT_LIMIT);
    if (!*node) {
        rules_problem(loader, limit, "concurrency needs `limit`, how many may be in flight");
        numbers->wrong = true;
    } else {
        numbers->wrong |= !read_numbers(numbers, *node, rate);
    }
}

static void load_period(struct numbers *numbers, struct weir_rate *rate,
                        const struct rules_node **node)
{
    misplaced(numbers, RULES_LIMIT_RATE, "limits without a quota");
    *node = value_of(numbers, RULES_LIMIT_QUOTA);
    numbers->wrong |= !read_numbers(numbers, *node, rate);
}

static void load_count(struct numbers *numbers, const struct rules_node *limit,
                       struct weir_rate *rate, const struct rules_node **node)
{
    struct rules_loader *loader = numbers->loader;
    const struct rules_node *burst = value_of(numbers, RULES_LIMIT_BURST);
    *node = value_of(numbers, RULES_LIMIT_RATE);
    if (!*node) {
        rules_problem(loader, limit, "`rate` is missing");
        numbers->wrong = true;
    } else if (!is_list(numbers, *node)) {
        numbers->wrong |= !read_numbers(numbers, *node, rate);
    }
    if (!burst || !bucket_is(numbers->spec.algorithm))
        return;
    if (*node && is_list(numbers, *node)) {
        rules_problem(loader, numbers->fields[RULES_LIMIT_BURST].key,
                      "in a list, give each rate its own burst: `[10/s burst 20, 500/h]`");
    } else if (rate->kind != WEIR_RATE_COUNT) {
        rules_problem(loader, numbers->fields[RULES_LIMIT_BURST].key, "%s",
                      rate->kind == WEIR_RATE_PLAN
                          ? "with `rate: plan` give the burst in the plans: `100/min burst 20`"
                          : "an unlimited rate has no burst");
        numbers->wrong = true;
    } else if (rate->burst > 0) {
        rules_problem(loader, numbers->fields[RULES_LIMIT_BURST].key, "`rate` already has a burst");
        numbers->wrong = true;
    } else {
        numbers->wrong |=
            !rules_keyword_number(loader, row(RULES_LIMIT_BURST), burst, &numbers->spec.burst);
    }
}

/* What is left without numbers, for callers who have others. */
static void keep_limit_template(struct numbers *numbers, struct rules_rule *rule)
{
    const struct rules_node *rollover = value_of(numbers, RULES_LIMIT_ROLLOVER);
    struct rules_limit_template *limit_template =
        rules_keep(numbers->loader, sizeof(*limit_template));
    struct weir_reason reason;
    if (!limit_template)
        return;
    limit_template->spec = numbers->spec;
    limit_template->spec.rate = limit_template->spec.burst = 0;
    if (rollover && rollover->kind == RULES_SCALAR) {
        struct weir_bytes text = {rollover->text, rollover->size};
        if (rules_rollover_parse(text, UINT64_MAX, &limit_template->rollover, &reason) < 0)
            limit_template->rollover =
                (struct rules_rollover){0, false}; /* reported where it counts */
    }
    rule->limit_template = limit_template;
}

void rules_load_rate(struct rules_loader *loader, const struct rules_node *limit,
                     struct rules_field *fields, struct rules_rule *rule)
{
    struct numbers numbers = {.loader = loader, .fields = fields};
    struct weir_rate rate = {.kind = WEIR_RATE_COUNT};
    const struct rules_node *node = NULL;
    read_algorithm(&numbers);
    rule->algorithm = (uint8_t)numbers.spec.algorithm;
    if (numbers.wrong)
        return; /* without the algorithm nothing else can be judged */
    read_window_options(&numbers);
    rules_limit_misplaced(loader, fields, numbers.spec.algorithm);
    if (numbers.spec.algorithm == WEIR_CONCURRENCY)
        load_concurrency(&numbers, limit, &rate, &node);
    else if (numbers.spec.algorithm == WEIR_QUOTA)
        load_period(&numbers, &rate, &node);
    else
        load_count(&numbers, limit, &rate, &node);
    if (!node || loader->no_memory)
        return;
    if (loader->callers && !numbers.wrong)
        keep_limit_template(&numbers, rule);
    if (is_list(&numbers, node))
        load_rates(&numbers, node, &rule->rates);
    else if (rate.kind == WEIR_RATE_PLAN)
        load_plans(&numbers, node, rule);
    else if (rate.kind == WEIR_RATE_COUNT && !numbers.wrong &&
             use_numbers(&numbers, &rate, node, &numbers.spec))
        load_single(&numbers, &numbers.spec, node, &rule->rates);
}
