/* SPDX-License-Identifier: Apache-2.0 */
/* see match.h */
#include "rules/load/limit/match.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/bytes.h"
#include "core/text/credential.h"
#include "feature/challenge/rules/section.h"
#include "feature/score/rules/section.h"
#include "feature/standing/rules/section.h"
#include "rules/foreign.h"
#include "rules/load/attributes.h"
#include "rules/load/fields.h"
#include "rules/load/limit/match_list.h"
#include "rules/match/host.h"
#include "rules/match/path.h"
#include "rules/match/pattern.h"
#include "rules/match/special.h"

#define WANTED_MAX 200 /* bytes of a part's values shown to people */

static bool has_star(struct weir_bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == '\\' && i + 1 < text.size)
            i++;
        else if (text.data[i] == '*')
            return true;
    return false;
}

/* A literal without its backslashes, in memory that stays. */
static struct weir_bytes unescape(struct rules_loader *loader, struct weir_bytes text)
{
    char *kept = rules_keep(loader, text.size + 1);
    size_t used = 0;
    for (size_t i = 0; kept && i < text.size; i++) {
        if (text.data[i] == '\\' && i + 1 < text.size)
            i++;
        kept[used++] = text.data[i];
    }
    return (struct weir_bytes){kept, used};
}

static const char *wanted_text(struct rules_loader *loader, const struct rules_part *part,
                               const struct rules_items *items)
{
    char text[WANTED_MAX] = "not ";
    size_t used = part->negated ? strlen(text) : 0;
    for (uint32_t i = 0; i < items->count && items->items[i]->kind == RULES_SCALAR; i++) {
        struct rules_quote quote;
        int size = snprintf(text + used, sizeof(text) - used, "%s%s", i > 0 ? ", " : "",
                            rules_quote(&quote, items->items[i]->text, items->items[i]->size));
        if (size < 0 || (size_t)size >= sizeof(text) - used - 5) {
            memcpy(text + used, ", ...", 5);
            used += 5;
            break;
        }
        used += (size_t)size;
    }
    return rules_keep_text(loader, text, used);
}

uint32_t rules_literal_atom(struct rules_loader *loader, uint16_t attribute,
                            struct weir_bytes value)
{
    struct weir_rules *rules = loader->rules;
    uint32_t atom =
        rules_string_map_find(&rules->literals, attribute, rules_text_hash(value.data, value.size),
                              value.data, value.size);
    if (atom == RULES_NONE && rules_keep_word(loader, &rules->literals, attribute, value.data,
                                              value.size, rules->atom_count))
        atom = rules->atom_count++;
    return atom;
}

/* A host as requests have it; a port or another form would never match. */
static bool check_host(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_bytes value, struct weir_bytes *normal)
{
    char room[WEIR_HOST_MAX];
    struct weir_reason reason;
    struct rules_quote quote;
    rules_quote(&quote, value.data, value.size);
    if (weir_host_normalise(normal, value, room, &reason) < 0) {
        rules_problem(loader, node, "host %s: %s", quote.text, reason.text + strlen("host: "));
        return false;
    }
    bool cut =
        value.data[0] != '[' ? normal->size != value.size : value.data[value.size - 1] != ']';
    if (cut) {
        rules_problem(loader, node,
                      "host %s: hosts are compared without port and final dot; remove them",
                      quote.text);
        return false;
    }
    normal->data = rules_keep_text(loader, normal->data, normal->size);
    return normal->data;
}

static char lower(char byte)
{
    return (char)(byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte);
}

/* A glob of what a pattern captures, in the form in which it captures it. */
static void load_captured(struct rules_loader *loader, const struct rules_node *node,
                          struct rules_part *part, struct weir_bytes text,
                          struct weir_bytes *values)
{
    unsigned options = loader->rules->path_options;
    char *kept = rules_keep(loader, text.size + 1);
    for (size_t i = 0; kept && i < text.size; i++) {
        bool encoded = (i >= 1 && text.data[i - 1] == '%') || (i >= 2 && text.data[i - 2] == '%');
        bool upper = text.data[i] >= 'A' && text.data[i] <= 'Z' && !encoded;
        bool fold = upper && (options & WEIR_PATH_FOLD_CASE) != 0;
        kept[i] = (char)(fold ? text.data[i] | 0x20 : text.data[i]);
        kept[i] = part->fold ? lower(kept[i]) : kept[i];
    }
    if ((options & WEIR_PATH_KEEP_PARAMETERS) == 0 && text.size > 0 &&
        memchr(text.data, ';', text.size)) {
        rules_problem(loader, node,
                      "path parameters (`;…`) are cut off before a pattern captures; remove them, "
                      "or set `paths: { parameters: keep }`");
    }
    values[part->count++] = (struct weir_bytes){kept, text.size};
    part->globs = true;
}

/* `absent`, which is no value; where it is meant as one, it is written `\absent`. */
static bool take_absent(struct rules_loader *loader, const struct rules_node *node,
                        struct rules_part *part, struct weir_bytes text)
{
    if (!weir_bytes_are(text, "absent"))
        return false;
    if ((loader->rules->rows[part->attribute]->flags & RULES_PRESENT) != 0)
        rules_problem(loader, node, "`%s` is never absent", part->name);
    part->absent = true;
    return true;
}

/* Reports what looks like an expression of another program, and so would match nothing. */
static void check_foreign(struct rules_loader *loader, const struct rules_node *node,
                          const struct rules_part *part, struct weir_bytes text)
{
    struct rules_foreign found;
    struct rules_quote quote;
    if (!rules_find_foreign(text, part->attribute, &found))
        return;
    bool refused = rules_deprecated(
        loader, node,
        "%s %s: %s is not special here, only `*` is, so that it would match this very text; give a "
        "list of values, and `ignore_case: true` for any case, or write `\\` before it if it is "
        "meant",
        part->name, rules_quote(&quote, text.data, text.size), found.what);
    if (!refused)
        rules_fix(loader, WEIR_FIX_ESCAPE, (struct weir_bytes){NULL, 0}, (uint32_t)found.at);
}

/* A value that any case of a text is equal to: always a glob, since only a glob is compared so. */
static void load_folded(struct rules_loader *loader, struct rules_part *part,
                        struct weir_bytes text, uint32_t *atoms, struct weir_bytes *values)
{
    char *kept = rules_keep(loader, text.size + 1);
    for (size_t i = 0; kept && i < text.size; i++)
        kept[i] = lower(text.data[i]);
    part->globs = true;
    atoms[part->count] = RULES_NONE;
    values[part->count++] = (struct weir_bytes){kept, text.size};
}

/* A credential, or a glob of its token, in the form that those of requests have. */
static struct weir_bytes canonical(struct rules_loader *loader, struct weir_bytes text)
{
    struct weir_credential credential;
    char *room = rules_keep(loader, text.size + 1);
    weir_credential_read(&credential, text);
    return room && !has_star(credential.scheme) ? weir_credential_form(text, room) : text;
}

/* One value of a part: a glob, or a literal with its atom. */
static void load_value(struct rules_loader *loader, const struct rules_node *node,
                       struct rules_part *part, uint32_t *atoms, struct weir_bytes *values)
{
    struct weir_bytes text;
    if (!rules_read_text(loader, node, part->name, &text))
        return;
    const struct rules_attribute_row *row = loader->rules->rows[part->attribute];
    if (rules_has_scheme(loader->rules->attribute_names[part->attribute]))
        text = canonical(loader, text);
    bool glob = has_star(text), host = part->attribute == WEIR_ATTR_HOST;
    check_foreign(loader, node, part, text);
    if (part->kind == RULES_PART_CAPTURE) {
        load_captured(loader, node, part, text, values);
        return;
    }
    if (take_absent(loader, node, part, text))
        return;
    struct weir_bytes value = {NULL, text.size};
    uint32_t atom = RULES_NONE;
    bool worded = (row->flags & RULES_NO_GLOBS) != 0;
    if (worded && !row->allows(loader, node, part->attribute, text))
        return;
    if (part->fold) {
        if (glob && !weir_glob_fits(text))
            rules_problem(loader, node, "between two `*` there are at most %d bytes",
                          WEIR_GLOB_PIECE_MAX);
        load_folded(loader, part, text, atoms, values);
        return;
    }
    if (glob) {
        char *kept = rules_keep(loader, text.size + 1);
        for (size_t i = 0; kept && i < text.size; i++) {
            bool upper = host && text.data[i] >= 'A' && text.data[i] <= 'Z';
            kept[i] = (char)(upper ? text.data[i] | 0x20 : text.data[i]);
        }
        value.data = kept;
        if (host && memchr(text.data, ':', text.size))
            rules_problem(loader, node, "hosts are compared without port; remove it");
        if (!weir_glob_fits(text))
            rules_problem(loader, node, "between two `*` there are at most %d bytes",
                          WEIR_GLOB_PIECE_MAX);
        part->globs = true;
    } else {
        value = unescape(loader, text);
        if (!value.data)
            return;
        bool good = true;
        if (host && value.size > 0)
            good = check_host(loader, node, value, &value);
        else if (row->allows)
            good = row->allows(loader, node, part->attribute, value);
        if (!good)
            return;
        atom = rules_literal_atom(loader, part->attribute, value);
    }
    atoms[part->count] = atom;
    values[part->count++] = value;
}

static void check_foreign_path(struct rules_loader *loader, const struct rules_node *node,
                               struct weir_bytes text)
{
    struct rules_foreign found;
    struct rules_quote quote;
    if (!rules_find_foreign_path(text, &found))
        return;
    (void)rules_deprecated(
        loader, node,
        "path pattern %s: %s is not special here, so that it would match this very text; `:name` "
        "or `*` matches one segment, `**` the rest; write `%%%02X` if it is meant",
        rules_quote(&quote, text.data, text.size), found.what, (unsigned)text.data[found.at]);
}

int rules_read_pattern(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_bytes text, struct weir_path_pattern *pattern, uint32_t *atom,
                       struct weir_reason *reason)
{
    char room[WEIR_PATH_MAX];
    size_t used;
    int err =
        weir_path_pattern_compile(pattern, text, loader->rules->path_options, room, &used, reason);
    if (err < 0)
        return err;
    const char *kept = rules_keep_text(loader, room, used);
    if (!kept)
        return WEIR_ERR_MEMORY;
    for (uint8_t i = 0; i < pattern->count; i++) {
        struct weir_bytes *segment = &pattern->segments[i].text;
        segment->data = segment->data ? kept + (segment->data - room) : NULL;
    }
    check_foreign_path(loader, node, text);
    struct weir_rules *rules = loader->rules;
    uint32_t atoms = rules->atom_count;
    *atom = rules_path_trie_add(&rules->paths, pattern, &rules->atom_count);
    bool added = *atom != RULES_NONE;
    if (rules->atom_count > atoms) { /* no pattern before was the same */
        const char *shown = rules_keep_text(loader, text.data, text.size);
        added = shown &&
                rules_routes_add(&rules->routes, *atom, (struct weir_bytes){shown, text.size}) == 0;
    }
    loader->no_memory |= !added;
    return added ? 0 : WEIR_ERR_MEMORY;
}

static void load_pattern(struct rules_loader *loader, const struct rules_node *node,
                         struct rules_part *part, uint32_t *atoms)
{
    struct weir_bytes text;
    struct weir_reason reason;
    if (!rules_read_text(loader, node, "path", &text))
        return;
    int err = rules_read_pattern(loader, node, text, &loader->patterns[loader->pattern_count],
                                 &atoms[part->count], &reason);
    if (err == WEIR_ERR_MEMORY)
        return;
    if (err < 0) {
        rules_problem(loader, node, "%s", reason.text);
        return;
    }
    loader->pattern_count++;
    part->count++;
}

static void load_prefix(struct rules_loader *loader, const struct rules_node *node,
                        struct rules_part *part, uint32_t *atoms)
{
    struct weir_bytes text;
    struct weir_cidr cidr;
    struct rules_quote quote;
    if (!rules_read_text(loader, node, "client.ip", &text))
        return;
    if (weir_cidr_parse(&cidr, text.data, text.size) < 0) {
        rules_problem(loader, node,
                      "client.ip %s must be an address, or a prefix such as `10.0.0.0/8` (all bits "
                      "after the prefix must be zero)",
                      rules_quote(&quote, text.data, text.size));
        return;
    }
    struct weir_rules *rules = loader->rules;
    uint32_t atom = rules_address_trie_add(&rules->addresses, &cidr, &rules->atom_count);
    loader->no_memory |= atom == RULES_NONE;
    atoms[part->count++] = atom;
}

static int compare_atoms(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static int compare_places(const void *a, const void *b)
{
    const struct rules_place *x = a, *y = b;
    return x->atom != y->atom ? (x->atom < y->atom ? -1 : 1) : x->at < y->at ? -1 : x->at > y->at;
}

/* Patterns stay in the order of the file, which says whose captures count; to find one among
 * thousands, there is a list by atom. */
static void sort_places(struct rules_loader *loader, struct rules_part *part, const uint32_t *atoms)
{
    struct rules_place *places = rules_keep(loader, (part->count + 1) * sizeof(*places));
    for (uint32_t i = 0; places && i < part->count; i++)
        places[i] = (struct rules_place){atoms[i], i};
    if (places)
        qsort(places, part->count, sizeof(*places), compare_places);
    part->places = places;
}

static void make_special(struct rules_loader *loader, struct rules_part *part)
{
    part->of = part->kind;
    part->kind = RULES_PART_SPECIAL;
    part->supplied_by = loader->rules->rows[part->attribute]->absence;
}

enum { NOT, AT_LEAST };

static const struct rules_keyword special_keywords[] = {
    [NOT] = {"not", RULES_TEXT, .many = RULES_SEVERAL,
             .doc = "the attribute is [present, and none of these](score.md#absent-not-list)"},
    [AT_LEAST] = {"at_least", RULES_NUMBER, RULES_RANGE(1, RULES_SCORE_MAX),
                  .doc = "of `client.score`: from this score on"},
};
static const struct rules_section special_section =
    RULES_SECTION("a value of a match", special_keywords);

/* `{ not: … }`: returns the values that must not hold. `{ at_least: 45 }`: NULL, as there are none.
 * NULL after a problem, too. */
static const struct rules_node *load_special(struct rules_loader *loader,
                                             const struct rules_node *node, struct rules_part *part)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    uint64_t least = 0;
    if (!rules_section_find(loader, &special_section, node, fields))
        return NULL;
    part->negated = fields[NOT].value;
    if (fields[AT_LEAST].value && part->attribute != WEIR_ATTR_SCORE) {
        rules_problem(loader, fields[AT_LEAST].key, "`at_least` is for `client.score` only");
    } else if (fields[AT_LEAST].value && fields[NOT].value) {
        rules_problem(loader, fields[AT_LEAST].key, "give `not` or `at_least`, not both");
    } else if (fields[AT_LEAST].value) {
        if (!rules_keyword_number(loader, &special_keywords[AT_LEAST], fields[AT_LEAST].value,
                                  &least))
            return NULL;
        char text[32];
        int size = snprintf(text, sizeof(text), "at least %u", (unsigned)least);
        part->at_least = (uint16_t)least;
        part->wanted = rules_keep_text(loader, text, (size_t)size);
        make_special(loader, part);
    } else if (!fields[NOT].value) {
        rules_problem(loader, node, "a value of a match is a text, a list, or `{ not: … }`");
    } else if (fields[NOT].value->kind != RULES_MAP) {
        return fields[NOT].value;
    } else {
        rules_problem(loader, fields[NOT].value, "`not` must be a value or a list of values");
    }
    return NULL;
}

static void load_part(struct rules_loader *loader, const struct rules_node *node,
                      struct rules_part *part)
{
    if (node->kind == RULES_MAP) {
        node = load_special(loader, node, part);
        if (!node)
            return;
    }
    struct rules_items items = rules_items_of(&node);
    if (items.count == 0) {
        rules_problem(loader, node, "`%s` is an empty list: nothing would match", part->name);
        return;
    }
    uint32_t *atoms = rules_keep(loader, items.count * sizeof(*atoms));
    struct weir_bytes *values = rules_keep(loader, items.count * sizeof(*values));
    part->wanted = wanted_text(loader, part, &items);
    if (part->kind == RULES_PART_PATH)
        loader->patterns = rules_borrow(loader, items.count * sizeof(*loader->patterns));
    for (uint32_t i = 0; i < items.count && !loader->no_memory; i++)
        if (part->kind == RULES_PART_PATH)
            load_pattern(loader, items.items[i], part, atoms);
        else if (part->kind == RULES_PART_ADDRESS)
            load_prefix(loader, items.items[i], part, atoms);
        else
            load_value(loader, items.items[i], part, atoms, values);
    if (part->kind == RULES_PART_PATH && atoms)
        sort_places(loader, part, atoms);
    else if (!part->globs && atoms)
        qsort(atoms, part->count, sizeof(*atoms), compare_atoms);
    part->atoms = atoms;
    part->values = values;
    if (part->absent || part->negated)
        make_special(loader, part);
}

const int8_t *rules_capture(struct rules_loader *loader, const struct rules_node *node,
                            struct weir_bytes name)
{
    struct weir_bytes wanted = {name.data + 5, name.size - 5}; /* behind "path." */
    int8_t *segments = rules_keep(loader, loader->pattern_count + 1);
    bool found = false;
    for (uint32_t p = 0; segments && p < loader->pattern_count; p++) {
        const struct weir_path_pattern *pattern = &loader->patterns[p];
        segments[p] = -1;
        for (uint8_t i = 0; i < pattern->count; i++) {
            const struct weir_bytes *text = &pattern->segments[i].text;
            if (pattern->segments[i].kind == WEIR_SEGMENT_ANY && text->data &&
                text->size == wanted.size && memcmp(text->data, wanted.data, text->size) == 0) {
                segments[p] = (int8_t)i;
                found = true;
            }
        }
    }
    if (!found && segments) {
        struct rules_quote quote;
        rules_problem(loader, node, "%s: the `path` of this limit's match names no `:%.*s`",
                      rules_quote(&quote, name.data, name.size), (int)wanted.size, wanted.data);
        return NULL;
    }
    return segments;
}

/* Tells what kind of part a key of `match` is; false after a problem. */
static bool name_part(struct rules_loader *loader, const struct rules_node *key,
                      struct rules_part *part)
{
    struct weir_bytes name;
    if (!rules_read_text(loader, key, "match", &name))
        return false;
    uint8_t bits4, bits6;
    int address = rules_read_address_name(loader, key, name, &bits4, &bits6);
    if (address < 0)
        return false;
    if (name.size > 5 && memcmp(name.data, "path.", 5) == 0) {
        part->kind = RULES_PART_CAPTURE;
        part->attribute = WEIR_ATTR_PATH;
        part->segments = rules_capture(loader, key, name);
        part->name = rules_keep_text(loader, name.data, name.size);
        return part->segments && part->name;
    }
    if (address > 0 && !weir_bytes_are(name, "client.ip")) {
        rules_problem(loader, key,
                      "in `match`, put the prefix into the value: `client.ip: "
                      "10.0.0.0/8`");
        return false;
    }
    int attribute = rules_intern_attribute(loader, key, name);
    if (attribute < 0)
        return false;
    part->kind = attribute == WEIR_ATTR_PATH        ? RULES_PART_PATH
                 : attribute == WEIR_ATTR_CLIENT_IP ? RULES_PART_ADDRESS
                                                    : RULES_PART_VALUES;
    part->secret = rules_is_secret(loader->rules, (uint16_t)attribute);
    part->attribute = (uint16_t)attribute;
    part->name = loader->rules->attribute_names[attribute];
    return true;
}

static void count_globs(struct rules_loader *loader, const struct rules_node *node,
                        const struct rules_rule *rule)
{
    for (uint32_t i = 0; i < rule->part_count; i++)
        if (!rule->parts[i].globs && rule->parts[i].kind != RULES_PART_SPECIAL)
            return;
    if (rule->part_count > 0 && ++loader->globs_only == RULES_GLOBS_MAX + 1) {
        rules_problem(loader, node,
                      "more than %d limits can be found only by a glob, `not` or `absent`; give "
                      "this one a literal, a "
                      "path or an address to match",
                      RULES_GLOBS_MAX);
    }
}

static const char ignore_case[] = "ignore_case";

/* What a match may say, for the schema: attributes have rows of their own in attribute_table.c. */
#define MATCHES(name_, doc_)                                                                       \
    {                                                                                              \
        name_, RULES_TEXT, .many = RULES_SEVERAL, .section = &special_section, .doc = (doc_)       \
    }
static const struct rules_keyword match_keywords[] = {
    MATCHES("method", "`POST`; case matters, as in HTTP"),
    MATCHES("path", "a pattern, see below"),
    MATCHES("host", "`example.com`, `*.example.com`; lower case, no port"),
    MATCHES("client.ip", "an address or a prefix: `10.0.0.0/8`, `2001:db8::/32`"),
    MATCHES("plan", "the plan of the [caller](#who-is-calling)"),
    MATCHES("user", "the user"),
    MATCHES("org", "the organisation"),
    MATCHES("standing", "[levels](standing.md#the-levels) of the caller: `[warned, throttled]`; "
                        "only with the section `standing`"),
    MATCHES("client.class", "the class of the client's [score](score.md): `[suspicious, "
                            "malicious]`; only with the section `score`"),
    MATCHES("client.score", "the score itself: `{ at_least: 45 }`; likewise"),
    MATCHES("list", "a [list](score.md#absent-not-list) of `standing` that the caller is in"),
    {ignore_case, RULES_FLAG, .otherwise = "false",
     .doc = "`true`: values are compared without regard to case, see below"},
};
static const struct rules_keyword any_attribute =
    MATCHES(NULL, "any other [attribute](#attributes): `header.x-tenant: acme`; `path.NAME`: what "
                  "a pattern of the same match captured");
const struct rules_section rules_section_match = {.what = "match",
                                                  .keywords = match_keywords,
                                                  .count = sizeof(match_keywords) /
                                                           sizeof(match_keywords[0]),
                                                  .others = &any_attribute};

/* `ignore_case` of a match: whether its values are compared without regard to case. */
static bool load_ignore_case(struct rules_loader *loader, const struct rules_node *match)
{
    bool folds = false;
    for (uint32_t i = 0; i < match->size; i += 2) {
        const struct rules_node *key = match->items[i];
        if (key->kind == RULES_SCALAR &&
            weir_bytes_are((struct weir_bytes){key->text, key->size}, ignore_case))
            (void)rules_read_bool(loader, match->items[i + 1], ignore_case, &folds);
    }
    return folds;
}

/* Whether the values of a part are texts that come in any case: not words of weir's own, and not
 * what has a normal form. */
static bool may_fold(const struct rules_part *part)
{
    return part->kind == RULES_PART_CAPTURE ||
           (part->kind == RULES_PART_VALUES &&
            (part->attribute >= WEIR_ATTR_FIRST_NAMED || part->attribute == WEIR_ATTR_USER ||
             part->attribute == WEIR_ATTR_ORG || part->attribute == WEIR_ATTR_METHOD));
}

/* One part; false after a problem with its key. */
static bool load_named(struct rules_loader *loader, const struct rules_node *key,
                       const struct rules_node *value, bool folds, struct rules_part *part)
{
    if (weir_bytes_are((struct weir_bytes){key->text, key->size}, "list"))
        return rules_load_match_list(loader, value, part);
    if (!name_part(loader, key, part))
        return false;
    part->fold = folds && may_fold(part);
    load_part(loader, value, part);
    if (part->kind == RULES_PART_SPECIAL && part->of == RULES_PART_PATH)
        loader->pattern_count = 0; /* they name no segments */
    return true;
}

void rules_load_match(struct rules_loader *loader, const struct rules_node *node,
                      struct rules_rule *rule)
{
    loader->pattern_count = 0;
    loader->patterns = NULL;
    if (!node)
        return;
    if (node->kind != RULES_MAP) {
        rules_problem(loader, node, "`match` must be a mapping of attributes to values");
        return;
    }
    if (node->size / 2 > RULES_PARTS_MAX) {
        rules_problem(loader, node, "`match` has more than %d parts", RULES_PARTS_MAX);
        return;
    }
    struct rules_part *parts = rules_keep(loader, (node->size / 2 + 1) * sizeof(*parts));
    bool folds = load_ignore_case(loader, node), folded = false;
    uint32_t wrong = loader->wrong;
    rule->parts = parts;
    /* The path first, because its names are parts themselves; what is about the caller last. */
    for (int turn = 0; turn < 3; turn++) {
        for (uint32_t i = 0; i < node->size && !loader->no_memory; i += 2) {
            const struct rules_node *key = node->items[i];
            struct weir_bytes name = {key->text, key->size};
            if (key->kind != RULES_SCALAR || weir_bytes_are(name, ignore_case))
                continue;
            bool caller = weir_bytes_are(name, "user") || weir_bytes_are(name, "org") ||
                          weir_bytes_are(name, "plan");
            if ((weir_bytes_are(name, "path") ? 0 : caller ? 2 : 1) != turn)
                continue;
            struct rules_part *part = &parts[rule->part_count];
            memset(part, 0, sizeof(*part));
            if (load_named(loader, key, node->items[i + 1], folds, part)) {
                rule->path_part = part->kind == RULES_PART_PATH ? part : rule->path_part;
                rule->for_trusted |= part->attribute == WEIR_ATTR_STANDING;
                folded |= part->fold;
                rule->part_count++;
            }
        }
    }
    if (folds && !folded && loader->wrong == wrong)
        rules_problem(loader, node,
                      "`ignore_case` has no effect here: hosts have no case, paths follow `paths`, "
                      "and weir's own words are exact");
    count_globs(loader, node, rule);
}

/* --- `paths` ---------------------------------------------------------------------------------- */

/* Of each the second word sets an option. */
static const struct rules_keyword paths_keywords[] = {
    {"parameters", RULES_CHOICE, RULES_WORDS("strip", "keep"), .otherwise = "strip",
     .doc = "whether what follows a `;` in a segment is cut off, or an ordinary part of it"},
    {"case", RULES_CHOICE, RULES_WORDS("sensitive", "insensitive"), .otherwise = "sensitive",
     .doc = "whether `/Login` differs from `/login`"},
    {"trailing_slash", RULES_CHOICE, RULES_WORDS("exact", "ignore"), .otherwise = "exact",
     .doc = "whether `/login/` differs from `/login`"},
};
const struct rules_section rules_section_paths = RULES_SECTION("paths", paths_keywords);

void rules_load_paths(struct rules_loader *loader, const struct rules_node *node)
{
    static const uint8_t options[] = {WEIR_PATH_KEEP_PARAMETERS, WEIR_PATH_FOLD_CASE,
                                      WEIR_PATH_DROP_SLASH};
    struct rules_field fields[RULES_KEYWORDS_MAX];
    if (!rules_section_find(loader, &rules_section_paths, node, fields))
        return;
    for (uint32_t i = 0; i < rules_section_paths.count; i++)
        if (fields[i].value && rules_read_choice(loader, fields[i].value, fields[i].name,
                                                 paths_keywords[i].words, 2) == 1)
            loader->rules->path_options |= options[i];
}
