/* SPDX-License-Identifier: Apache-2.0 */
/* see section.h */
#include "feature/score/rules/section.h"

#include <string.h>

#include "core/bytes.h"
#include "rules/load/attribute_checks.h"
#include "rules/load/attributes.h"
#include "rules/load/limit/key.h"
#include "rules/load/limit/limit_fields.h"
#include "rules/load/limit/match.h"

#define SUSPICIOUS 30
#define MALICIOUS 60

/* --- `signals` -------------------------------------------------------------------------------- */

static void load_when(struct rules_loader *loader, const struct rules_node *node,
                      struct rules_signal *signal)
{
    uint32_t globs_only = loader->globs_only; /* signals are in no index */
    signal->when = rules_keep(loader, sizeof(*signal->when));
    if (!signal->when)
        return;
    if (node->kind == RULES_MAP && node->size == 0)
        rules_problem(loader, node, "`when` is empty: the signal would hold for all requests");
    else if (node->kind != RULES_MAP)
        rules_problem(loader, node, "`when` must be a mapping of attributes to values");
    else
        rules_load_match(loader, node, signal->when);
    loader->globs_only = globs_only;
}

enum { OVER, WITHIN, SPREAD };

static const struct rules_keyword regular_keywords[] = {
    [OVER] = {"over", RULES_NUMBER, RULES_RANGE(2, WEIR_RUN_MAX), .flags = RULES_REQUIRED,
              .doc = "how many gaps in a row"},
    [WITHIN] = {"within", RULES_DURATION, RULES_RANGE(RULES_MS, 10 * RULES_MINUTE),
                .doc = "each differs by less than this from the gap before; a shorter gap ends the "
                       "run"},
    [SPREAD] = {"spread", RULES_PERCENT, RULES_RANGE(1, 100), .example = 20,
                .doc = "in its place: each differs by less than this part of the gap before, "
                       "whatever the gap; one below 1 ms ends the run"},
};
static const struct rules_section regular_section = RULES_SECTION("regular", regular_keywords);

/* How alike gaps have to be, which all signals share, since a client's run is kept once. */
static void share_alike(struct rules_loader *loader, const struct rules_node *node,
                        struct rules_score *score, uint32_t within_ms, uint8_t spread)
{
    static const char both[] = "all signals with `regular` must have the same `within` or `spread`";
    bool known = score->within_ms != 0 || score->spread != 0;
    if (score->within_ms != 0 && score->within_ms != within_ms)
        rules_problem(loader, node, "%s, here %ums", both, score->within_ms);
    else if (known && score->spread != spread)
        rules_problem(loader, node, "%s, here %u%%", both, score->spread);
    score->within_ms = known ? score->within_ms : within_ms;
    score->spread = known ? score->spread : spread;
}

/* `{ over: 10, within: 50ms }`, `{ over: 10, spread: 20% }`. */
static void load_regular(struct rules_loader *loader, const struct rules_node *node,
                         struct rules_score *score, struct rules_signal *signal)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    uint64_t numbers[] = {0, 0, 0}; /* by the rows of the table */
    bool good = true;
    if (!rules_section_find(loader, &regular_section, node, fields))
        return;
    for (int i = 0; i < 3; i++)
        if (fields[i].value &&
            !rules_keyword_number(loader, &regular_keywords[i], fields[i].value, &numbers[i]))
            good = false;
    const struct rules_node *alike =
        fields[WITHIN].value ? fields[WITHIN].value : fields[SPREAD].value;
    if (!fields[OVER].value || !fields[WITHIN].value == !fields[SPREAD].value) {
        rules_problem(loader, node,
                      "`regular` needs `over`, and `within` or `spread`: "
                      "{ over: 10, within: 50ms }, { over: 10, spread: 20%% }");
        return;
    }
    if (!good)
        return;
    signal->over = (uint8_t)numbers[OVER];
    share_alike(loader, alike, score, (uint32_t)(numbers[WITHIN] / RULES_MS),
                (uint8_t)numbers[SPREAD]);
}

enum { FRESH_OVER, FRESH_FROM };

static const struct rules_keyword fresh_keywords[] = {
    [FRESH_OVER] = {"over", RULES_NUMBER, RULES_RANGE(2, WEIR_RUN_MAX), .flags = RULES_REQUIRED,
                    .doc = "how many requests in a row"},
    [FRESH_FROM] = {"from", RULES_TEXT, .otherwise = "connection.requests",
                    .doc = "the attribute that has the number of the request on its connection: "
                           "1 is a new one"},
};
static const struct rules_section fresh_section = RULES_SECTION("new_connections", fresh_keywords);

/* `10`, or `{ over: 10, from: header.x-connection-requests }`. All signals share the attribute. */
static void load_fresh(struct rules_loader *loader, const struct rules_node *node,
                       struct rules_score *score, struct rules_signal *signal)
{
    static const char name[] = "connection.requests";
    struct rules_field fields[RULES_KEYWORDS_MAX] = {{0}};
    struct weir_bytes from = {name, sizeof name - 1};
    uint64_t over = 0;
    fields[FRESH_OVER].value = node;
    if (node->kind == RULES_MAP && !rules_section_find(loader, &fresh_section, node, fields))
        return;
    if (!fields[FRESH_OVER].value) {
        rules_problem(loader, node, "`new_connections` needs `over`: how many requests in a row");
        return;
    }
    if (rules_keyword_number(loader, &fresh_keywords[FRESH_OVER], fields[FRESH_OVER].value, &over))
        signal->fresh = (uint8_t)over;
    const struct rules_node *at = fields[FRESH_FROM].value;
    if (at && !rules_read_text(loader, at, "from", &from))
        return;
    int attribute = rules_intern_attribute(loader, at ? at : node, from);
    if (attribute < 0)
        return;
    if (score->connection != 0 && score->connection != attribute)
        rules_problem(loader, at ? at : node,
                      "all signals with `new_connections` must have the same `from`");
    score->connection = (uint16_t)attribute;
}

/* The name of a signal, which no other one has. */
static void load_name(struct rules_loader *loader, const struct rules_node *node,
                      struct rules_score *score, struct weir_answer_signal *shown)
{
    struct weir_bytes name;
    if (!rules_check_name(loader, node, "name", &name))
        return;
    for (uint8_t i = 0; i < score->info.signal_count; i++) {
        if (weir_bytes_equal(score->shown[i].name, name)) {
            rules_problem(loader, node, "the name `%.*s` is given to two signals", (int)name.size,
                          name.data);
            return;
        }
    }
    shown->name = (struct weir_bytes){rules_keep_text(loader, name.data, name.size), name.size};
}

enum { NAME, ADD, WHEN, REGULAR, SAME_ROUTE, NEW_CONNECTIONS };

static const struct rules_keyword signal_keywords[] = {
    [NAME] = {"name", RULES_NAME, .flags = RULES_REQUIRED, .doc = "1 to 64 of `a-z 0-9 . _ -`"},
    [ADD] = {"add", RULES_NUMBER, RULES_RANGE(1, RULES_ADD_MAX), .flags = RULES_REQUIRED,
             .doc = "what it adds to the score"},
    [WHEN] = {"when", RULES_MAPPING, .section = &rules_section_match, .absent = "every request",
              .doc = "the attributes and values of `match`, except `client.score` and "
                     "`client.class`"},
    [REGULAR] = {"regular", RULES_MAPPING, .section = &regular_section,
                 .doc = "`{ over: N, within: D }`, `{ over: N, spread: P }`: the client has sent "
                        "with N gaps in a row that each differ by less than D, or P percent, from "
                        "the gap before"},
    [SAME_ROUTE] = {"same_route", RULES_NUMBER, RULES_RANGE(2, WEIR_RUN_MAX),
                    .doc = "it is the Nth request in a row, or a later one, of its client to one "
                           "route"},
    [NEW_CONNECTIONS] = {"new_connections", RULES_NUMBER, RULES_RANGE(2, WEIR_RUN_MAX),
                         .section = &fresh_section,
                         .doc = "it is the Nth request in a row, or a later one, of its client "
                                "that comes on a new connection"},
};
static const struct rules_section signal_section = RULES_SECTION("a signal", signal_keywords);

static void load_signal(struct rules_loader *loader, const struct rules_node *node,
                        struct rules_score *score)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct rules_signal *signal = &score->signals[score->info.signal_count];
    struct weir_answer_signal *shown = &score->shown[score->info.signal_count];
    uint64_t number = 0;
    if (!rules_section_find(loader, &signal_section, node, fields))
        return;
    if (fields[NAME].value)
        load_name(loader, fields[NAME].value, score, shown);
    else
        rules_problem(loader, node, "`name` is missing");
    if (!fields[ADD].value)
        rules_problem(loader, node, "`add` is missing: what the signal adds to the score");
    else if (rules_keyword_number(loader, &signal_keywords[ADD], fields[ADD].value, &number))
        shown->add = (uint16_t)number;
    if (!fields[WHEN].value && !fields[REGULAR].value && !fields[SAME_ROUTE].value &&
        !fields[NEW_CONNECTIONS].value)
        rules_problem(loader, node,
                      "a signal needs `when`, `regular`, `same_route` or `new_connections`");
    if (fields[WHEN].value)
        load_when(loader, fields[WHEN].value, signal);
    if (fields[REGULAR].value)
        load_regular(loader, fields[REGULAR].value, score, signal);
    if (fields[SAME_ROUTE].value && rules_keyword_number(loader, &signal_keywords[SAME_ROUTE],
                                                         fields[SAME_ROUTE].value, &number))
        signal->same_route = (uint8_t)number;
    if (fields[NEW_CONNECTIONS].value)
        load_fresh(loader, fields[NEW_CONNECTIONS].value, score, signal);
    score->info.signal_count++;
}

static void load_signals(struct rules_loader *loader, const struct rules_node *node,
                         struct rules_score *score)
{
    if (node->kind != RULES_LIST || node->size == 0 || node->size > WEIR_SIGNALS_MAX) {
        rules_problem(loader, node, "`signals` must be a list of 1 to %d signals",
                      WEIR_SIGNALS_MAX);
        return;
    }
    loader->scoring = true;
    for (uint32_t i = 0; i < node->size && !loader->no_memory; i++)
        load_signal(loader, node->items[i], score);
    loader->scoring = false;
}

/* --- The other keys --------------------------------------------------------------------------- */

/* In the order of enum weir_class, of which the first is no score at all. */
static const struct rules_keyword class_keywords[] = {
    {"suspicious", RULES_NUMBER, RULES_RANGE(1, RULES_SCORE_MAX), .absent = "never",
     .doc = "the score from which a client is suspicious"},
    {"malicious", RULES_NUMBER, RULES_RANGE(1, RULES_SCORE_MAX), .absent = "never",
     .doc = "the score from which a client is malicious"},
};
static const struct rules_section classes_section = RULES_SECTION("classes", class_keywords);

static void load_classes(struct rules_loader *loader, const struct rules_node *node,
                         struct weir_score_info *info)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    uint64_t from = 0;
    uint32_t wrong = loader->wrong;
    if (!rules_section_find(loader, &classes_section, node, fields))
        return;
    for (int i = 0; i < 2; i++) {
        info->from[i + 1] = UINT16_MAX;
        if (fields[i].value &&
            rules_keyword_number(loader, &class_keywords[i], fields[i].value, &from))
            info->from[i + 1] = (uint16_t)from;
    }
    if (!fields[0].value && !fields[1].value)
        rules_problem(loader, node, "`classes` is empty; give `suspicious`, `malicious` or both");
    else if (fields[0].value && fields[1].value && loader->wrong == wrong &&
             info->from[WEIR_CLASS_SUSPICIOUS] >= info->from[WEIR_CLASS_MALICIOUS])
        rules_problem(loader, fields[1].value, "`malicious` must be more than `suspicious`");
}

static void load_routes(struct rules_loader *loader, const struct rules_node *node,
                        struct rules_score *score)
{
    struct rules_items items = rules_items_of(&node);
    if (node->kind == RULES_MAP || items.count == 0 || items.count > RULES_SCORE_ROUTES_MAX) {
        rules_problem(loader, node, "`routes` must be a list of 1 to %d patterns of paths",
                      RULES_SCORE_ROUTES_MAX);
        return;
    }
    uint32_t *routes = rules_keep(loader, items.count * sizeof(*routes));
    for (uint32_t i = 0; i < items.count && routes; i++) {
        struct weir_path_pattern pattern;
        struct weir_reason reason;
        struct weir_bytes text;
        if (!rules_read_text(loader, items.items[i], "routes", &text))
            continue;
        int err = rules_read_pattern(loader, items.items[i], text, &pattern,
                                     &routes[score->route_count], &reason);
        if (err == 0)
            score->route_count++;
        else if (err != WEIR_ERR_MEMORY)
            rules_problem(loader, items.items[i], "%s", reason.text);
    }
    score->routes = routes;
}

/* What tells clients apart. */
static void load_key(struct rules_loader *loader, const struct rules_node *node,
                     struct rules_score *score)
{
    static const char name[] = "score~"; /* no limit's name has a '~' */
    uint8_t *prefix = rules_keep(loader, RULES_PREFIX_MAX);
    struct rules_items items = rules_items_of(&node);
    score->key = rules_keep(loader, sizeof(*score->key));
    if (!score->key || !prefix)
        return;
    prefix[0] = (uint8_t)(sizeof(name) - 1);
    memcpy(prefix + 1, name, sizeof(name) - 1);
    score->key->name = name;
    score->key->name_size = (uint8_t)(sizeof(name) - 1);
    score->key->prefix = prefix;
    score->key->prefix_size = (uint8_t)sizeof(name);
    loader->pattern_count = 0;
    loader->scoring = true;
    if (node->kind != RULES_MAP && items.count == 0)
        rules_problem(loader, node, "`key` is empty: all clients would be one");
    else
        rules_load_key(loader, node, NULL, score->key);
    loader->scoring = false;
}

/* The table, for signals that look at behaviour. */
static void open_behaviour(struct rules_loader *loader, struct rules_score *score)
{
    bool behaves = false;
    for (uint8_t i = 0; i < score->info.signal_count; i++)
        behaves = behaves || score->signals[i].over > 0 || score->signals[i].same_route > 0 ||
                  score->signals[i].fresh > 0;
    if (!behaves || loader->wrong > 0 || loader->no_memory)
        return;
    if (score->within_ms == 0 && score->spread == 0)
        score->within_ms = 1; /* no signal reads the run */
    if (weir_behaviour_open(&score->behaviour, score->clients) < 0)
        loader->no_memory = true;
    score->info.behaviour = score->behaviour;
}

enum { KEY, SIGNALS, CLASSES, ROUTES };

#define AT(member) RULES_AT(struct rules_score, member)
static const struct rules_keyword keywords[] = {
    [KEY] = {"key", RULES_TEXT, .many = RULES_SEVERAL, .flags = RULES_REQUIRED,
             .doc = "what tells clients apart: attributes as in the key of a limit, such as "
                    "`client.ip/64` or `user`"},
    [SIGNALS] = {"signals", RULES_MAPPING, .many = RULES_LISTED, .section = &signal_section,
                 .flags = RULES_REQUIRED, .doc = "up to 32 [signals](score.md#the-section)"},
    [CLASSES] = {"classes", RULES_MAPPING, .section = &classes_section,
                 .otherwise = "{ suspicious: 30, malicious: 60 }",
                 .doc = "the score from which a client is `suspicious`, and `malicious`; a class "
                        "that is not named is never given",
                 .why = "one strong signal, and two"},
    [ROUTES] = {"routes", RULES_TEXT, .many = RULES_SEVERAL, .absent = "none: each path is a route",
                .doc = "patterns of paths that are one route each, for `same_route`: `/items/:id`"},
    {"clients", RULES_NUMBER, AT(clients), RULES_RANGE(1000, WEIR_BEHAVIOUR_CLIENTS_MAX),
     .otherwise = "250000", .doc = "how many clients' behaviour is kept, 1,000 to 50,000,000",
     .why = "4 MB"},
    {"debug", RULES_FLAG, AT(info.debug), .otherwise = "false",
     .doc = "answers list the signals that hold",
     .why = "answers do not explain to a bot how it was found"},
};
const struct rules_section rules_section_score = RULES_SECTION("`score`", keywords);

void rules_load_score(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct rules_score *score = rules_keep(loader, sizeof(*score));
    loader->score = true;
    if (!score || !rules_section_load(loader, &rules_section_score, node, fields, score))
        return;
    score->info.signals = score->shown;
    score->info.from[WEIR_CLASS_SUSPICIOUS] = SUSPICIOUS;
    score->info.from[WEIR_CLASS_MALICIOUS] = MALICIOUS;
    if (fields[KEY].value)
        load_key(loader, fields[KEY].value, score);
    else
        rules_problem(loader, node,
                      "`score` needs `key`, which tells clients apart: "
                      "`key: [client.ip/64]`");
    if (fields[SIGNALS].value)
        load_signals(loader, fields[SIGNALS].value, score);
    else
        rules_problem(loader, node, "`score` needs `signals`");
    if (fields[CLASSES].value)
        load_classes(loader, fields[CLASSES].value, &score->info);
    if (fields[ROUTES].value)
        load_routes(loader, fields[ROUTES].value, score);
    loader->rules->score = score; /* which gives the table back */
    open_behaviour(loader, score);
}

/* --- `by_class` ------------------------------------------------------------------------------- */

static void load_scale(struct rules_loader *loader, const struct rules_node *name,
                       const struct rules_node *value, uint8_t *scales)
{
    struct weir_bytes text;
    if (!rules_read_text(loader, name, "by_class", &text) ||
        !rules_check_score_value(loader, name, WEIR_ATTR_CLASS, text))
        return;
    (void)rules_read_scale(loader, RULES_LIMIT_BY_CLASS, text.data, value,
                           &scales[weir_class_of(text)]);
}

void rules_load_by_class(struct rules_loader *loader, const struct rules_field *fields,
                         struct rules_rule *rule)
{
    const struct rules_field *field = &fields[RULES_LIMIT_BY_CLASS];
    const struct rules_node *node = field->value, *rate = fields[RULES_LIMIT_RATE].value;
    uint32_t wrong = loader->wrong;
    if (!loader->score) {
        rules_problem(loader, field->key, "`by_class` needs the section `score:`");
        return;
    }
    if (node->kind != RULES_MAP || node->size == 0) {
        rules_problem(loader, node,
                      "`by_class` must be a mapping of classes to percentages: "
                      "`{ suspicious: 50%% }`");
        return;
    }
    if (rate && rate->kind == RULES_SCALAR &&
        weir_bytes_are((struct weir_bytes){rate->text, rate->size}, "unlimited"))
        rules_problem(loader, field->key, "an unlimited rate has no scale: remove `by_class`");
    uint8_t *scales = rules_keep(loader, WEIR_CLASSES);
    if (!scales)
        return;
    memset(scales, 100, WEIR_CLASSES);
    for (uint32_t i = 0; i < node->size; i += 2)
        load_scale(loader, node->items[i], node->items[i + 1], scales);
    if (loader->wrong == wrong)
        rule->by_class = scales;
}
