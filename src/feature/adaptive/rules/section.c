/* SPDX-License-Identifier: Apache-2.0 */
/* see section.h */
#include "feature/adaptive/rules/section.h"

#include <string.h>

#include "core/bytes.h"
#include "feature/adaptive/rules/limit.h"
#include "rules/load/limit/limit_fields.h"
#include "rules/load/numbers.h"

#define S UINT64_C(1000000000)
#define HYSTERESIS_MAX_NS (3600 * S)
#define LATENCY_MIN_NS UINT64_C(1000000)
#define LATENCY_MAX_NS (600 * S)

/* The latency that makes an outcome a failure: a row of no table, for its bounds. */
static const struct rules_keyword timeout_row = {"timeout", RULES_DURATION,
                                                 RULES_RANGE(LATENCY_MIN_NS, LATENCY_MAX_NS)};

/* --- Failures: `on` --------------------------------------------------------------------------- */

/* "timeout 5s"; false: it is something else. */
static bool read_timeout(struct rules_loader *loader, const struct rules_node *node,
                         struct weir_adaptive *adaptive)
{
    static const char word[] = "timeout ";
    const size_t size = sizeof(word) - 1;
    struct weir_reason reason;
    struct rules_range range;

    if (node->kind != RULES_SCALAR || node->size < size || memcmp(node->text, word, size) != 0)
        return false;
    if (weir_duration_parse(&adaptive->timeout_ns, node->text + size, node->size - size, &reason) <
        0)
        rules_problem(loader, node, "%s", reason.text);
    else if (adaptive->timeout_ns < timeout_row.least || adaptive->timeout_ns > timeout_row.most)
        rules_problem(loader, node, "a timeout must be %s", rules_range_text(&range, &timeout_row));
    return true;
}

static void load_failures(struct rules_loader *loader, const struct rules_node *node,
                          struct weir_adaptive *adaptive)
{
    struct rules_items items;

    if (!node) { /* every 5xx */
        for (uint32_t bit = 400; bit < 500; bit++)
            adaptive->failures[bit / 8] |= (uint8_t)(1 << bit % 8);
        return;
    }
    items = rules_items_of(&node);
    if (node->kind == RULES_MAP || items.count == 0) {
        rules_problem(loader, node,
                      "`on` must be what counts as a failure: statuses and a latency, as in "
                      "[5xx, timeout 5s]");
        return;
    }
    for (uint32_t i = 0; i < items.count; i++)
        if (!read_timeout(loader, items.items[i], adaptive))
            rules_read_status(loader, items.items[i], "on", adaptive->failures);
}

/* --- A table of signals ----------------------------------------------------------------------- */

/* The sources that each signal can have; the order of enum weir_signal_source. */
static const char *const source_names[] = {"", "proc", "psi", "outcomes", "pushed"};
static const bool source_fits[WEIR_SIGNALS][WEIR_SIGNAL_PUSHED + 1] = {
    [WEIR_SIGNAL_CPU] =
        {[WEIR_SIGNAL_PROC] = true, [WEIR_SIGNAL_PSI] = true, [WEIR_SIGNAL_PUSHED] = true},
    [WEIR_SIGNAL_MEMORY] =
        {[WEIR_SIGNAL_PROC] = true, [WEIR_SIGNAL_PSI] = true, [WEIR_SIGNAL_PUSHED] = true},
    [WEIR_SIGNAL_P99] = {[WEIR_SIGNAL_RESULTS] = true, [WEIR_SIGNAL_PUSHED] = true},
    [WEIR_SIGNAL_ERRORS] = {[WEIR_SIGNAL_RESULTS] = true, [WEIR_SIGNAL_PUSHED] = true},
    [WEIR_SIGNAL_QUEUE] = {[WEIR_SIGNAL_PUSHED] = true},
};

static const char *fitting_sources(int signal)
{
    return signal == WEIR_SIGNAL_QUEUE                                 ? "`pushed`"
           : signal == WEIR_SIGNAL_P99 || signal == WEIR_SIGNAL_ERRORS ? "`outcomes` or `pushed`"
                                                                       : "`proc`, `psi` or "
                                                                         "`pushed`";
}

#define SIGNAL(name_, ...)                                                                         \
    {                                                                                              \
        name_, RULES_CHOICE, .words = (const char *const[]){__VA_ARGS__, NULL},                    \
                             .doc = "where this signal comes from"                                 \
    }
/* In the order of enum weir_signal; what fits is in source_fits. */
static const struct rules_keyword signal_keywords[] = {
    SIGNAL("cpu", "proc", "psi", "pushed"),
    SIGNAL("memory", "proc", "psi", "pushed"),
    SIGNAL("p99", "outcomes", "pushed"),
    SIGNAL("errors", "outcomes", "pushed"),
    SIGNAL("queue", "pushed"),
};
static const struct rules_section signals_section = RULES_SECTION("`signals`", signal_keywords);
_Static_assert(sizeof(signal_keywords) / sizeof(signal_keywords[0]) == WEIR_SIGNALS,
               "a row for each signal");

static void load_sources(struct rules_loader *loader, const struct rules_node *node,
                         struct weir_adaptive *adaptive)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];

    if (!rules_section_find(loader, &signals_section, node, fields))
        return;
    for (int signal = 0; signal < WEIR_SIGNALS; signal++) {
        struct weir_bytes text;
        int source = WEIR_SIGNAL_PUSHED;

        if (!fields[signal].value ||
            !rules_read_text(loader, fields[signal].value, weir_signal_names[signal], &text))
            continue;
        while (source > WEIR_SIGNAL_ABSENT &&
               !(source_fits[signal][source] && weir_bytes_are(text, source_names[source])))
            source--;
        if (source == WEIR_SIGNAL_ABSENT) {
            rules_problem(loader, fields[signal].value, "the signal `%s` comes from %s",
                          weir_signal_names[signal], fitting_sources(signal));
            source = WEIR_SIGNAL_PUSHED; /* one problem is enough */
        }
        adaptive->sources[signal] = (uint8_t)source;
    }
}

#define SCALE WEIR_SIGNALS

/* The signals in their order, and the scale. */
static const struct rules_keyword row_keywords[] = {
    {"cpu", RULES_PERCENT, RULES_RANGE(1, 100), .example = 80,
     .doc = "from this use of the processors on"},
    {"memory", RULES_PERCENT, RULES_RANGE(1, 100), .example = 80,
     .doc = "from this use of memory on"},
    {"p99", RULES_DURATION, RULES_RANGE(LATENCY_MIN_NS, LATENCY_MAX_NS),
     .doc = "from this latency of 99 of 100 requests on"},
    {"errors", RULES_PERCENT, RULES_RANGE(1, 100), .example = 80,
     .doc = "from this share of failures on"},
    {"queue", RULES_NUMBER, RULES_RANGE(1, UINT32_MAX), .doc = "from this length on"},
    [SCALE] = {"x", RULES_PERCENT, RULES_RANGE(1, 100), .example = 50, .flags = RULES_REQUIRED,
               .doc = "what is left of the limit then"},
};
static const struct rules_section row_section = RULES_SECTION("a row of `table`", row_keywords);

/* The reading from which on a row counts, in the units of struct weir_reading. */
static bool read_threshold(struct rules_loader *loader, int signal, const struct rules_node *node,
                           uint64_t *value)
{
    if (!rules_keyword_number(loader, &row_keywords[signal], node, value))
        return false;
    *value *= row_keywords[signal].kind == RULES_PERCENT ? 100 : 1;
    return true;
}

static void load_row(struct rules_loader *loader, const struct rules_node *node,
                     const struct weir_adaptive *adaptive, struct weir_health_row *row)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    int signal = -1, count = 0;
    uint64_t percent = 100;

    if (!rules_section_find(loader, &row_section, node, fields))
        return;
    for (int i = 0; i < WEIR_SIGNALS; i++) {
        if (!fields[i].value)
            continue;
        signal = i;
        count++;
    }
    if (count != 1 || !fields[SCALE].value) {
        rules_problem(loader, node,
                      "a row has one signal and the scale `x` from there on: { cpu: 80%%, x: 50%% "
                      "}");
        return;
    }
    if (adaptive->sources[signal] == WEIR_SIGNAL_ABSENT)
        rules_problem(loader, fields[signal].key, "`signals` does not say where `%s` comes from",
                      weir_signal_names[signal]);
    if (!read_threshold(loader, signal, fields[signal].value, &row->at_least) ||
        !rules_keyword_number(loader, &row_keywords[SCALE], fields[SCALE].value, &percent))
        return;
    row->signal = (uint8_t)signal;
    row->percent = (uint8_t)percent;
}

static void load_table(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_adaptive *adaptive)
{
    struct weir_health_spec *spec = &adaptive->health;

    if (node->kind != RULES_LIST || node->size == 0 || node->size > WEIR_HEALTH_ROWS_MAX) {
        rules_problem(loader, node,
                      "`table` must be a list of 1 to %d rows: { cpu: 80%%, x: 50%% }",
                      WEIR_HEALTH_ROWS_MAX);
        return;
    }
    for (uint32_t i = 0; i < node->size; i++)
        load_row(loader, node->items[i], adaptive, &spec->rows[i]);
    spec->count = (uint8_t)node->size;
}

enum { SIGNALS, TABLE, FLOOR_FIELD, HYSTERESIS, ON };

static const struct rules_keyword health_keywords[] = {
    [SIGNALS] = {"signals", RULES_MAPPING, .section = &signals_section, .flags = RULES_REQUIRED,
                 .doc = "where each signal comes from: `{ cpu: proc, p99: outcomes }`"},
    [TABLE] = {"table", RULES_MAPPING, .many = RULES_LISTED, .section = &row_section,
               .flags = RULES_REQUIRED,
               .doc = "what is left of a limit from which reading on: `[{ cpu: 80%, x: 50% }]`"},
    [FLOOR_FIELD] = {"floor", RULES_PERCENT, RULES_RANGE(1, 100), .example = 10, .otherwise = "10%",
                     .doc = "less than this is never left"},
    [HYSTERESIS] = {"hysteresis", RULES_DURATION, RULES_RANGE(RULES_S, HYSTERESIS_MAX_NS),
                    .otherwise = "10s",
                    .doc = "how long readings must be better before more is "
                           "admitted"},
    [ON] = {"on", RULES_TEXT, .many = RULES_SEVERAL, .otherwise = "5xx",
            .doc = "what counts as a failure: statuses and a latency, `[5xx, timeout 5s]`"},
};
enum {
    ALGORITHM,
    MIN,
    MAX,
    INITIAL,
    INCREASE_FIELD,
    INCREASE_PER,
    DECREASE_FIELD,
    CALLERS_FIELD,
    FAILURES
};

static const struct rules_keyword controller_keywords[] = {
    [ALGORITHM] = {"algorithm", RULES_CHOICE, RULES_WORDS("aimd", "gradient2"),
                   .flags = RULES_REQUIRED, .doc = "`aimd`, `gradient2`"},
    [MIN] = {"min", RULES_NUMBER, RULES_RANGE(1, WEIR_AIMD_MAX), .otherwise = "1",
             .doc = "less than this is never admitted"},
    [MAX] = {"max", RULES_NUMBER, RULES_RANGE(1, WEIR_AIMD_MAX), .flags = RULES_REQUIRED,
             .doc = "the limit while nothing is wrong"},
    [INITIAL] = {"initial", RULES_NUMBER, RULES_RANGE(1, WEIR_AIMD_MAX), .absent = "`max`",
                 .doc = "of `aimd`: where it begins, `min` to `max`"},
    [INCREASE_FIELD] = {"increase", RULES_NUMBER, RULES_RANGE(1, WEIR_AIMD_MAX), .otherwise = "1",
                        .doc = "of `aimd`: what a round trip without failures adds"},
    [INCREASE_PER] = {"increase_per", RULES_CHOICE, RULES_WORDS("round", "success"),
                      .otherwise = "round",
                      .doc = "of `aimd`: `success`: each success adds `increase`"},
    [DECREASE_FIELD] = {"decrease", RULES_PERCENT, RULES_RANGE(1, 99), .example = 90,
                        .otherwise = "90%", .doc = "of `aimd`: what a bad one leaves"},
    [CALLERS_FIELD] = {"failing_callers", RULES_PERCENT, RULES_RANGE(0, 99), .example = 5,
                       .otherwise = "5%",
                       .doc = "of `aimd`: the share of callers with failures that a good second "
                              "may have"},
    [FAILURES] = {"on", RULES_TEXT, .many = RULES_SEVERAL, .otherwise = "5xx",
                  .doc = "of `aimd`: what counts as a failure, `[5xx, timeout 5s]`"},
};
static const struct rules_section controller_section =
    RULES_SECTION("a controller", controller_keywords);
static const struct rules_section health_section = {.what = "a controller",
                                                    .keywords = health_keywords,
                                                    .count = sizeof(health_keywords) /
                                                             sizeof(health_keywords[0]),
                                                    .or_else = &controller_section};
static const struct rules_keyword any_controller = {NULL, RULES_MAPPING, .section = &health_section,
                                                    .doc = "a controller, by its name"};
const struct rules_section rules_section_adaptive = {.what = "adaptive", .others = &any_controller};

static void load_health(struct rules_loader *loader, const struct rules_node *node,
                        struct weir_adaptive *adaptive)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct weir_health_spec *spec = &adaptive->health;

    if (!rules_section_find(loader, &health_section, node, fields))
        return;
    if (!fields[SIGNALS].value || !fields[TABLE].value) {
        rules_problem(loader, node,
                      "a controller needs `signals` and `table`, or `algorithm: aimd` or "
                      "`gradient2`");
        return;
    }
    load_sources(loader, fields[SIGNALS].value, adaptive);
    load_table(loader, fields[TABLE].value, adaptive);
    load_failures(loader, fields[ON].value, adaptive);
    spec->floor_percent = (uint8_t)rules_keyword_number_or_default(
        loader, &health_keywords[FLOOR_FIELD], fields[FLOOR_FIELD].value);
    spec->hysteresis_ns = rules_keyword_number_or_default(loader, &health_keywords[HYSTERESIS],
                                                          fields[HYSTERESIS].value);
}

/* --- AIMD and Gradient2 ----------------------------------------------------------------------- */

/* `min` and `max`; false after a problem. */
static bool read_range(struct rules_loader *loader, const struct rules_node *node,
                       const struct rules_field *min, const struct rules_field *max,
                       uint32_t range[2])
{
    uint64_t least = 1, most = 1;

    if (!max->value) {
        rules_problem(loader, node, "`max` is missing: the limit while nothing is wrong");
        return false;
    }
    if ((min->value &&
         !rules_keyword_number(loader, &controller_keywords[MIN], min->value, &least)) ||
        !rules_keyword_number(loader, &controller_keywords[MAX], max->value, &most))
        return false;
    if (least > most) {
        rules_problem(loader, min->value, "`min` must not be above `max`");
        return false;
    }
    range[0] = (uint32_t)least;
    range[1] = (uint32_t)most;
    return true;
}

/* `initial`, of a range; 0: not given, or wrong. */
static uint32_t read_initial(struct rules_loader *loader, const struct rules_node *node,
                             const uint32_t range[2])
{
    uint64_t initial = 0;
    if (!node || !rules_keyword_number(loader, &controller_keywords[INITIAL], node, &initial))
        return 0;
    if (initial < range[0] || initial > range[1])
        rules_problem(loader, node, "`initial` must be from `min` to `max`, %u to %u", range[0],
                      range[1]);
    return (uint32_t)initial;
}

static void load_controller(struct rules_loader *loader, const struct rules_node *node,
                            struct weir_adaptive *adaptive)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct rules_keyword increase_row = controller_keywords[INCREASE_FIELD];
    uint32_t range[2];
    int algorithm;

    if (!rules_section_find(loader, &controller_section, node, fields))
        return;
    algorithm = rules_read_choice(loader, fields[ALGORITHM].value, "algorithm",
                                  controller_keywords[ALGORITHM].words, 2);
    if (algorithm < 0 || !read_range(loader, node, &fields[MIN], &fields[MAX], range))
        return;
    load_failures(loader, fields[FAILURES].value, adaptive);
    if (algorithm == 1) {
        adaptive->kind = WEIR_ADAPTIVE_GRADIENT2;
        adaptive->gradient2 = (struct weir_gradient2_spec){range[0], range[1]};
        for (int i = INITIAL; i <= FAILURES; i++)
            if (fields[i].value)
                rules_problem(loader, fields[i].key, "`%s` goes with `algorithm: aimd`",
                              fields[i].name);
        return;
    }
    increase_row.most = range[1];
    int per = fields[INCREASE_PER].value
                  ? rules_read_choice(loader, fields[INCREASE_PER].value, "increase_per",
                                      controller_keywords[INCREASE_PER].words, 2)
                  : 0;
    adaptive->kind = WEIR_ADAPTIVE_AIMD;
    adaptive->aimd = (struct weir_aimd_spec){
        .min = range[0],
        .max = range[1],
        .increase = (uint32_t)rules_keyword_number_or_default(loader, &increase_row,
                                                              fields[INCREASE_FIELD].value),
        .decrease_percent = (uint8_t)rules_keyword_number_or_default(
            loader, &controller_keywords[DECREASE_FIELD], fields[DECREASE_FIELD].value),
        .failing_percent = (uint8_t)rules_keyword_number_or_default(
            loader, &controller_keywords[CALLERS_FIELD], fields[CALLERS_FIELD].value),
        .per_success = per == 1,
        .initial = read_initial(loader, fields[INITIAL].value, range)};
}

/* --- The section, and a limit's `adaptive` ---------------------------------------------------- */

static bool has_key(const struct rules_node *map, const char *name)
{
    for (uint32_t i = 0; i < map->size; i += 2)
        if (strcmp(map->items[i]->text, name) == 0)
            return true;
    return false;
}

void rules_load_adaptive(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_rules *rules = loader->rules;

    if (node->kind != RULES_MAP) {
        rules_problem(loader, node,
                      "`adaptive` must be a mapping of names to controllers, see docs/adaptive.md");
        return;
    }
    rules->adaptive = rules_keep(loader, (node->size / 2 + 1) * sizeof(*rules->adaptive));
    for (uint32_t i = 0; i < node->size && rules->adaptive; i += 2) {
        struct weir_adaptive *adaptive = &rules->adaptive[rules->adaptive_count];
        const struct rules_node *value = node->items[i + 1];
        struct weir_bytes name;

        if (!rules_check_name(loader, node->items[i], "adaptive", &name))
            continue;
        adaptive->name = rules_keep_text(loader, name.data, name.size);
        rules->adaptive_count++;
        if (value->kind == RULES_MAP && has_key(value, "algorithm"))
            load_controller(loader, value, adaptive);
        else
            load_health(loader, value, adaptive);
    }
}

static int find_controller(const struct weir_rules *rules, struct weir_bytes name)
{
    for (uint32_t i = 0; i < rules->adaptive_count; i++)
        if (rules->adaptive[i].name && weir_bytes_are(name, rules->adaptive[i].name))
            return (int)i;
    return -1;
}

/* `max` is what the limit is while nothing is wrong; two different numbers would be a mistake. */
static void check_maximum(struct rules_loader *loader, const struct rules_field *field,
                          const struct weir_adaptive *adaptive, const struct rules_rule *rule)
{
    uint64_t most = adaptive->kind == WEIR_ADAPTIVE_AIMD        ? adaptive->aimd.max
                    : adaptive->kind == WEIR_ADAPTIVE_GRADIENT2 ? adaptive->gradient2.max
                                                                : 0;

    if (most != 0 && rule->algorithm == WEIR_CONCURRENCY && rule->rates.limits &&
        rule->rates.limits[0].spec.rate != most)
        rules_problem(loader, field->value,
                      "`max` of `%s` is %llu, but this limit is %llu: make them equal",
                      adaptive->name, (unsigned long long)most,
                      (unsigned long long)rule->rates.limits[0].spec.rate);
}

void rules_load_adaptive_room(struct rules_loader *loader, size_t limits)
{
    struct weir_rules *rules = loader->rules;

    if (rules->adaptive_count == 0)
        return;
    rules->adaptive_limits = rules_keep(loader, (limits + 1) * sizeof(*rules->adaptive_limits));
    rules->scales = rules_keep(loader, limits + 1);
    if (rules->scales)
        memset(rules->scales, 100, limits + 1);
}

void rules_load_limit_adaptive(struct rules_loader *loader, const struct rules_field *fields,
                               struct rules_rule *rule)
{
    const struct rules_field *field = &fields[RULES_LIMIT_ADAPTIVE];
    struct weir_rules *rules = loader->rules;
    struct rules_quote quote;
    struct weir_bytes name;
    int found;

    if (!field->value || !rules_read_text(loader, field->value, "adaptive", &name))
        return;
    found = find_controller(rules, name);
    if (found < 0) {
        rules_problem(loader, field->value, "the section `adaptive` has no controller %s",
                      rules_quote(&quote, name.data, name.size));
        return;
    }
    if (rules_rate_unlimited(fields))
        rules_problem(loader, field->key, "an unlimited rate has no scale: remove `adaptive`");
    check_maximum(loader, field, &rules->adaptive[found], rule);
    if (!rules->adaptive_limits)
        return;
    if (rules->adaptive_limit_count == UINT16_MAX) {
        rules_problem(loader, field->key, "at most %u limits can follow a controller", UINT16_MAX);
        return;
    }
    rules->adaptive_limits[rules->adaptive_limit_count++] =
        (struct weir_adaptive_limit){(uint32_t)(rule - rules->rules), (uint16_t)found};
    rule->adaptive = (uint16_t)rules->adaptive_limit_count;
}
