/* SPDX-License-Identifier: Apache-2.0 */
/* see section.h */
#include "feature/standing/rules/section.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/answer.h"
#include "core/bytes.h"
#include "feature/standing/rules/lists.h"
#include "rules/load/attribute_checks.h"
#include "rules/load/attributes.h"
#include "rules/load/environment.h"
#include "rules/load/limit/key.h"
#include "rules/load/limit/limit_fields.h"
#include "rules/load/limit/match_list.h"

#define BODY_MAX 4096 /* it goes into the buffer of a reply */
#define TYPE_MAX 100
#define STATUS_DEFAULT 403

/* --- `by` ------------------------------------------------------------------------------------- */

static bool is_held_by(const struct weir_rules *rules, const struct rules_key_part *part)
{
    return part->source == RULES_FROM_ADDRESS ||
           (part->source == RULES_FROM_ATTRIBUTE &&
            (rules->rows[part->attribute]->uses & RULES_FOR_STANDING) != 0);
}

/* Makes the key by which a kind is looked up and named. */
static bool make_rule(struct rules_loader *loader, const struct rules_key_part *part,
                      struct rules_rule *rule)
{
    static const char name[] = WEIR_ANSWER_BY_STANDING;
    struct rules_key_part *key = rules_keep(loader, sizeof(*key));
    uint8_t *prefix = rules_keep(loader, RULES_PREFIX_MAX);
    if (!key || !prefix)
        return false;
    *key = *part;
    prefix[0] = (uint8_t)(sizeof(name) - 1);
    memcpy(prefix + 1, name, sizeof(name) - 1);
    rule->name = name;
    rule->name_size = (uint8_t)(sizeof(name) - 1);
    rule->prefix = prefix;
    rule->prefix_size = (uint8_t)sizeof(name);
    rule->key = key;
    rule->key_count = 1;
    return true;
}

static void load_kind(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_rules *rules = loader->rules;
    struct weir_standing_settings *standing = rules->settings.standing;
    struct weir_standing_kind *kind = &standing->kinds[standing->kinds_count];
    struct rules_key_part part = {0};
    struct weir_bytes name;
    struct rules_quote quote;
    if (!rules_read_text(loader, node, "by", &name))
        return;
    if (weir_bytes_are(name, "standing") || (name.size > 5 && memcmp(name.data, "path.", 5) == 0))
        part.source = RULES_FROM_CAPTURE;
    else if (!rules_load_key_part(loader, node, "by", &part))
        return;
    if (!is_held_by(loader->rules, &part)) {
        rules_problem(loader, node,
                      "%s cannot have a standing: `by` takes what a caller is known by, such as "
                      "client.ip/64, user, org or a header",
                      rules_quote(&quote, name.data, name.size));
        return;
    }
    const char *text = rules->attribute_names[part.attribute];
    kind->name = weir_bytes_of(text);
    for (size_t i = 0; i < standing->kinds_count; i++) {
        if (weir_bytes_equal(standing->kinds[i].name, kind->name)) {
            rules_problem(loader, node, "`%s` is twice in `by`", text);
            return;
        }
    }
    kind->address = part.source == RULES_FROM_ADDRESS;
    if (kind->address && (part.bits4 == 0 || part.bits6 == 0)) {
        rules_problem(loader, node, "a prefix length of 0 is every address; give 1 or more");
        return;
    }
    kind->bits4 = part.bits4;
    kind->bits6 = part.bits6;
    kind->nat64 = rules->settings.nat64; /* `server` was read before */
    kind->nat64_count = rules->settings.nat64_count;
    kind->secret = part.secret || (name.size > 7 && strncasecmp(name.data, "header.", 7) == 0);
    part.secret = kind->secret;
    kind->credential = rules_has_scheme(text);
    if (make_rule(loader, &part, &rules->standing.kinds[standing->kinds_count]))
        standing->kinds_count++;
}

/* The address is looked up first and identities last: see feature/standing/rules/match.h. */
static int cost_of(const struct rules_key_part *part)
{
    return part->source == RULES_FROM_ADDRESS ? 0 : rules_about_caller(part->attribute) ? 2 : 1;
}

static void sort_kinds(struct weir_rules *rules)
{
    struct weir_standing_settings *standing = rules->settings.standing;
    struct rules_rule *rule = rules->standing.kinds;
    for (size_t i = 1; i < standing->kinds_count; i++) {
        for (size_t j = i; j > 0 && cost_of(rule[j - 1].key) > cost_of(rule[j].key); j--) {
            struct weir_standing_kind kind = standing->kinds[j];
            struct rules_rule moved = rule[j];
            standing->kinds[j] = standing->kinds[j - 1];
            rule[j] = rule[j - 1];
            standing->kinds[j - 1] = kind;
            rule[j - 1] = moved;
        }
    }
}

static void load_by(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_rules *rules = loader->rules;
    struct rules_items items = rules_items_of(&node);
    if (node->kind == RULES_MAP || items.count == 0 || items.count > WEIR_STANDING_KINDS_MAX) {
        rules_problem(loader, node, "`by` must be a list of 1 to %d attributes",
                      WEIR_STANDING_KINDS_MAX);
        return;
    }
    rules->standing.kinds = rules_keep(loader, items.count * sizeof(*rules->standing.kinds));
    for (uint32_t i = 0; i < items.count && !loader->no_memory; i++)
        load_kind(loader, items.items[i]);
    sort_kinds(rules);
}

/* --- `lists` ---------------------------------------------------------------------------------- */

/* The kind that a list's values are of: an address without prefix lengths, or one of `by`. -1 after
 * a problem. */
static int find_kind(struct rules_loader *loader, const struct rules_node *node)
{
    const struct weir_standing_settings *standing = loader->rules->settings.standing;
    struct weir_bytes name;
    struct rules_quote quote;
    struct rules_hint hint;
    const char *names[WEIR_STANDING_KINDS_MAX];
    if (!rules_read_text(loader, node, "by", &name))
        return -1;
    for (size_t i = 0; i < standing->kinds_count; i++) {
        names[i] = standing->kinds[i].name.data;
        if (weir_bytes_equal(standing->kinds[i].name, name))
            return (int)i;
    }
    rules_quote(&quote, name.data, name.size);
    if (name.size > 9 && memcmp(name.data, "client.ip", 9) == 0 && name.data[9] == '/')
        rules_problem(loader, node, "%s: a list has its prefixes in its lines; write `client.ip`",
                      quote.text);
    else
        rules_problem(loader, node, "%s is not in `by` of `standing`%s", quote.text,
                      rules_hint(&hint, name.data, name.size, names, standing->kinds_count));
    return -1;
}

static void load_reason(struct rules_loader *loader, const struct rules_node *node,
                        struct weir_bytes *reason)
{
    struct weir_bytes text;
    if (!rules_read_text(loader, node, "reason", &text))
        return;
    bool printable = true;
    for (size_t i = 0; i < text.size; i++)
        printable = printable && (unsigned char)text.data[i] >= 0x20 && text.data[i] != 0x7f;
    if (text.size > WEIR_STANDING_REASON_MAX || !printable) {
        rules_problem(loader, node, "`reason` must be at most %d bytes on one line",
                      WEIR_STANDING_REASON_MAX);
        return;
    }
    reason->data = rules_keep_text(loader, text.data, text.size);
    reason->size = reason->data ? text.size : 0;
}

static int pass_over(void *context, const struct weir_list_item *item, struct weir_reason *reason)
{
    (void)context;
    (void)item;
    (void)reason;
    return 0;
}

/* What is in it is kept by the map of standing, not by the rules. */
static void check_list(struct rules_loader *loader, const struct rules_node *node,
                       const struct weir_standing_list *list)
{
    const struct weir_standing_settings *standing = loader->rules->settings.standing;
    struct weir_reason reason = {{0}};
    int err = weir_list_read(&standing->kinds[list->kind], list->path, pass_over, NULL, &reason);
    if (err == WEIR_ERR_MEMORY)
        loader->no_memory = true;
    else if (err < 0)
        rules_problem(loader, node, "%s", reason.text);
}

enum { LIST_FILE, LIST_BY, LIST_LEVEL, LIST_REASON, LIST_NAME };

static const struct rules_keyword list_keywords[] = {
    [LIST_FILE] = {"file", RULES_FILE, .flags = RULES_REQUIRED,
                   .doc = "a file with a value on each line"},
    [LIST_BY] = {"by", RULES_TEXT, .flags = RULES_REQUIRED,
                 .doc = "what its values are: one of `by` of `standing`"},
    [LIST_LEVEL] = {"level", RULES_CHOICE, .flags = RULES_REQUIRED,
                    RULES_WORDS("trusted", "warned", "throttled", "challenged", "suspended",
                                "revoked"),
                    .doc = "the [level](standing.md#the-levels) of its callers"},
    [LIST_REASON] = {"reason", RULES_TEXT, .absent = "none",
                     .doc = "what answers tell as the reason"},
    [LIST_NAME] = {"name", RULES_NAME, .absent = "that of the file, without its ending",
                   .doc = "how `list` of a [match](score.md#absent-not-list) names it"},
};
static const struct rules_section list_section = RULES_SECTION("a list", list_keywords);

static void load_list(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_standing_settings *standing = loader->rules->settings.standing;
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct weir_standing_list list = {.path = NULL};
    struct weir_bytes text;
    uint32_t wrong = loader->wrong;
    int kind = -1;
    if (!rules_section_find(loader, &list_section, node, fields))
        return;
    for (int i = LIST_FILE; i <= LIST_LEVEL; i++)
        if (!fields[i].value)
            rules_problem(loader, node, "`%s` is missing in a list", fields[i].name);
    if (fields[LIST_BY].value)
        kind = find_kind(loader, fields[LIST_BY].value);
    if (fields[LIST_LEVEL].value &&
        rules_read_text(loader, fields[LIST_LEVEL].value, "level", &text) &&
        rules_read_level(loader, fields[LIST_LEVEL].value, "level", text, &list.level) &&
        list.level == WEIR_STANDING_GOOD)
        rules_problem(loader, fields[LIST_LEVEL].value,
                      "`good` is what callers are who are in no list; use another level");
    if (list.level == WEIR_STANDING_CHALLENGED && !loader->challenge)
        rules_problem(loader, fields[LIST_LEVEL].value,
                      "the level `challenged` needs the section `challenge:`, which says how "
                      "clients prove themselves; without it, use `throttled`");
    if (fields[LIST_REASON].value)
        load_reason(loader, fields[LIST_REASON].value, &list.reason);
    if (fields[LIST_FILE].value && rules_read_place(loader, fields[LIST_FILE].value, "file", &text))
        list.path = rules_path_of(loader, text);
    if (loader->wrong != wrong || loader->no_memory || kind < 0)
        return;
    if (!rules_name_list(loader, fields[LIST_FILE].value, fields[LIST_NAME].value))
        return;
    list.kind = (uint16_t)kind;
    check_list(loader, fields[LIST_FILE].value, &list);
    standing->lists[standing->lists_count++] = list;
}

static void load_lists(struct rules_loader *loader, const struct rules_node *node)
{
    if (node->kind != RULES_LIST || node->size > WEIR_STANDING_LISTS_MAX) {
        rules_problem(loader, node, "`lists` must be a list of at most %d mappings",
                      WEIR_STANDING_LISTS_MAX);
        return;
    }
    for (uint32_t i = 0; i < node->size && !loader->no_memory; i++)
        load_list(loader, node->items[i]);
}

/* --- `answer` --------------------------------------------------------------------------------- */

static void load_status(struct rules_loader *loader, const struct rules_node *node,
                        uint16_t *status)
{
    static const uint16_t statuses[] = {401, 403, 404, 410, 429, 451, 503};
    struct rules_quote quote;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        char text[8];
        snprintf(text, sizeof(text), "%u", (unsigned)statuses[i]);
        if (node->kind == RULES_SCALAR && strcmp(node->text, text) == 0) {
            *status = statuses[i];
            return;
        }
    }
    rules_problem(loader, node, "`status` must be 401, 403, 404, 410, 429, 451 or 503%s%s",
                  node->kind == RULES_SCALAR ? ", not " : "",
                  node->kind == RULES_SCALAR ? rules_quote(&quote, node->text, node->size) : "");
}

static void load_body(struct rules_loader *loader, const struct rules_node *node,
                      struct rules_refusal *refusal)
{
    struct weir_bytes text;
    if (!rules_read_text(loader, node, "body", &text))
        return;
    if (text.size > BODY_MAX) {
        rules_problem(loader, node, "`body` has more than %d bytes", BODY_MAX);
        return;
    }
    refusal->body = (struct weir_bytes){rules_keep_text(loader, text.data, text.size), text.size};
}

static void load_type(struct rules_loader *loader, const struct rules_field *field,
                      struct rules_refusal *refusal)
{
    struct weir_bytes text;
    if (!rules_read_text(loader, field->value, "content_type", &text))
        return;
    bool good = text.size <= TYPE_MAX && memchr(text.data, '/', text.size);
    for (size_t i = 0; i < text.size; i++)
        good = good && text.data[i] >= 0x20 && text.data[i] < 0x7f;
    if (!good) {
        rules_problem(loader, field->value,
                      "`content_type` must be a media type such as `application/json`");
    } else if (!refusal->body.data) {
        rules_problem(loader, field->key, "`content_type` needs a `body`");
    } else {
        refusal->content_type =
            (struct weir_bytes){rules_keep_text(loader, text.data, text.size), text.size};
    }
}

enum { STATUS, BODY, CONTENT_TYPE };

static const struct rules_keyword refusal_keywords[] = {
    [STATUS] = {"status", RULES_CHOICE,
                RULES_WORDS("401", "403", "404", "410", "429", "451", "503"), .otherwise = "403",
                .doc = "401, 403, 404, 410, 429, 451 or 503",
                .why = "waiting does not help, so it is no 429"},
    [BODY] = {"body", RULES_TEXT, .absent = "`reject` of the file, with the reason",
              .doc = "at most 4096 bytes"},
    [CONTENT_TYPE] = {"content_type", RULES_TEXT, .otherwise = "text/plain; charset=utf-8",
                      .doc = "the type of the body"},
};
/* A problem names such a mapping by its key. */
static const struct rules_section refusal_section = RULES_SECTION(NULL, refusal_keywords);

static void load_refusal(struct rules_loader *loader, const struct rules_field *field,
                         struct rules_refusal *refusal)
{
    static const char plain[] = "text/plain; charset=utf-8";
    struct rules_field fields[RULES_KEYWORDS_MAX];
    rules_section_name(&refusal_section, fields);
    if (!rules_fields(loader, field->value, field->name, fields, refusal_section.count))
        return;
    if (fields[STATUS].value)
        load_status(loader, fields[STATUS].value, &refusal->status);
    if (fields[BODY].value)
        load_body(loader, fields[BODY].value, refusal);
    if (refusal->body.data)
        refusal->content_type = (struct weir_bytes){plain, sizeof(plain) - 1};
    if (fields[CONTENT_TYPE].value)
        load_type(loader, &fields[CONTENT_TYPE], refusal);
}

enum { SUSPENDED, REVOKED };

static const struct rules_keyword answer_keywords[] = {
    [SUSPENDED] = {"suspended", RULES_MAPPING, .section = &refusal_section,
                   .absent = "403 and problem details",
                   .doc = "how requests of [suspended](standing.md#the-levels) callers are "
                          "answered"},
    [REVOKED] = {"revoked", RULES_MAPPING, .section = &refusal_section,
                 .absent = "403 and problem details", .doc = "how those of revoked callers are"},
};
static const struct rules_section answer_section = RULES_SECTION("`answer`", answer_keywords);

static void load_answer(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_standing *standing = &loader->rules->standing;
    struct rules_field fields[RULES_KEYWORDS_MAX];
    if (!rules_section_find(loader, &answer_section, node, fields))
        return;
    if (fields[SUSPENDED].value)
        load_refusal(loader, &fields[SUSPENDED], &standing->suspended);
    if (fields[REVOKED].value)
        load_refusal(loader, &fields[REVOKED], &standing->revoked);
}

/* --- The section ------------------------------------------------------------------------------ */

/* Where the map lies: beside `file`, unless `map` (NULL: absent) says another place, which other
 * users of the machine may read. */
static void load_map(struct rules_loader *loader, const struct rules_node *node,
                     struct weir_standing_settings *standing)
{
    struct weir_bytes text;
    if (!node) {
        char *path =
            standing->file ? rules_keep(loader, strlen(standing->file) + sizeof ".map") : NULL;
        if (path)
            sprintf(path, "%s.map", standing->file);
        standing->map = path;
        return;
    }
    if (!standing->file)
        rules_problem(loader, node,
                      "`map` needs `file`, the history that the map is made from at each start");
    if (!rules_read_place(loader, node, "map", &text))
        return;
    if (text.size == 0)
        rules_problem(loader, node, "`map` is empty; remove it, and the map lies beside `file`");
    else
        standing->map = rules_path_of(loader, text);
}

enum { BY, HISTORY, MAP, LISTS, ANSWER, ON_STORE_ERROR };

#define AT(member) RULES_AT(struct weir_standing_settings, member)
static const struct rules_keyword keywords[] = {
    [BY] = {"by", RULES_TEXT, .many = RULES_SEVERAL, .flags = RULES_REQUIRED,
            .doc = "[what has a standing](standing.md#what-to-key-by), 1 to 16 attributes"},
    [HISTORY] =
        {"file", RULES_FILE, .absent = "it is forgotten at the end of the process",
         .doc =
             "where what operators and penalties set is kept; a relative path starts at the folder "
             "of the rules file ([with `store: redis`](standing.md#several-nodes): in Redis)"},
    [MAP] = {"map", RULES_FILE, .absent = "`FILE.map`, beside `file`",
             .doc = "the file of what is in force, which other programs on this machine "
                    "[read](standing.md#libweir-and-replay)"},
    [LISTS] = {"lists", RULES_MAPPING, .many = RULES_LISTED, .section = &list_section,
               .absent = "none",
               .doc = "up to 64 of `{ file, by, level, reason }`; files are relative to the rules "
                      "file and are read again with it"},
    [ANSWER] = {"answer", RULES_MAPPING, .section = &answer_section,
                .absent = "403 and problem details",
                .doc = "[what refused clients see](standing.md#what-a-refused-client-sees)"},
    [ON_STORE_ERROR] =
        {"on_store_error", RULES_CHOICE, AT(closed), RULES_WORDS("open", "closed"),
         .absent = "`on_store_error` at the top of the file, where it is `closed`; else `open`",
         .doc = "what nginx and libweir decide while [there should be a map and is "
                "none](standing.md#what-is-kept): `open`: all callers are good; `closed`: all are "
                "denied"},
    {"entries", RULES_NUMBER, AT(entries_max),
     RULES_RANGE(WEIR_STANDING_ENTRIES_MIN, WEIR_STANDING_ENTRIES_MAX), .absent = "`1000000`",
     .doc = "the most entries in force, 16 to 64000000", .why = "66 MiB; a large botnet"},
};
const struct rules_section rules_section_standing = RULES_SECTION("`standing`", keywords);

void rules_load_standing(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_rules *rules = loader->rules;
    struct weir_standing_settings *standing = rules->settings.standing;
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct weir_bytes text;
    loader->standing = true;
    rules->standing.suspended.status = rules->standing.revoked.status = STATUS_DEFAULT;
    if (!rules_section_load(loader, &rules_section_standing, node, fields, standing))
        return;
    standing->failure_given = fields[ON_STORE_ERROR].value;
    if (fields[BY].value)
        load_by(loader, fields[BY].value);
    else
        rules_problem(loader, node,
                      "`standing` needs `by`, which says what callers are known by: "
                      "`by: [client.ip/64, user]`");
    if (fields[HISTORY].value && rules_read_place(loader, fields[HISTORY].value, "file", &text)) {
        if (text.size == 0)
            rules_problem(loader, fields[HISTORY].value,
                          "`file` is empty; remove it to keep nothing across restarts");
        standing->file = rules_moved_path_of(loader, fields[HISTORY].value, "standing.file", text);
    }
    load_map(loader, fields[MAP].value, standing);
    if (fields[LISTS].value)
        load_lists(loader, fields[LISTS].value);
    if (fields[ANSWER].value)
        load_answer(loader, fields[ANSWER].value);
}

/* --- `by_standing` ---------------------------------------------------------------------------- */

static void load_scale(struct rules_loader *loader, const struct rules_node *name,
                       const struct rules_node *value, uint8_t *scales)
{
    struct weir_bytes text;
    uint8_t level;
    if (!rules_read_text(loader, name, "by_standing", &text) ||
        !rules_read_level(loader, name, "by_standing", text, &level))
        return;
    if (level != WEIR_STANDING_WARNED && level != WEIR_STANDING_THROTTLED &&
        level != WEIR_STANDING_CHALLENGED) {
        rules_problem(loader, name,
                      "`by_standing` takes warned, throttled and challenged: suspended and revoked "
                      "callers meet no limit, and others meet it as it is");
        return;
    }
    (void)rules_read_scale(loader, RULES_LIMIT_BY_STANDING, text.data, value, &scales[level]);
}

void rules_load_by_standing(struct rules_loader *loader, const struct rules_field *fields,
                            struct rules_rule *rule)
{
    const struct rules_field *field = &fields[RULES_LIMIT_BY_STANDING];
    const struct rules_node *node = field->value;
    uint32_t wrong = loader->wrong;
    if (!loader->standing) {
        rules_problem(loader, field->key, "`by_standing` needs the section `standing:`");
        return;
    }
    if (node->kind != RULES_MAP || node->size == 0) {
        rules_problem(loader, node,
                      "`by_standing` must be a mapping of levels to percentages: "
                      "`{ throttled: 20%% }`");
        return;
    }
    if (rules_rate_unlimited(fields))
        rules_problem(loader, field->key, "an unlimited rate has no scale: remove `by_standing`");
    uint8_t *scales = rules_keep(loader, WEIR_STANDING_LEVELS);
    if (!scales)
        return;
    memset(scales, 100, WEIR_STANDING_LEVELS);
    for (uint32_t i = 0; i < node->size; i += 2)
        load_scale(loader, node->items[i], node->items[i + 1], scales);
    if (loader->wrong == wrong)
        rule->by_standing = scales;
}
