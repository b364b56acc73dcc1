/* SPDX-License-Identifier: Apache-2.0 */
/* see section.h */
#include "feature/sticky/rules/section.h"

#include <string.h>

#include "base/file.h"
#include "core/bytes.h"
#include "feature/sticky/rules/peers.h"
#include "rules/load/environment.h"
#include "rules/load/limit/limit_fields.h"
#include "rules/load/server/redis.h"
#include "rules/load/server/sharing.h"
#include "rules/load/server/store.h"

enum { BY, PEERS, SELF, TOKEN, TOKEN_FILE, TLS, ON_STORE_ERROR };

static const struct rules_keyword keywords[] = {
    [BY] = {"by", RULES_TEXT, RULES_AT(struct weir_settings, sticky.by), .flags = RULES_REQUIRED,
            .doc = "the attribute of keys by which a node is chosen"},
    [PEERS] = {"peers", RULES_FILE, .flags = RULES_REQUIRED,
               .doc = "the file of all nodes, a name and a URL on each line"},
    [SELF] = {"self", RULES_PLACE, .flags = RULES_REQUIRED, .doc = "this node's name in the file"},
    [TOKEN] = {"token", RULES_TEXT, .absent = "none",
               .doc = "what every node's Redis listener asks for"},
    [TOKEN_FILE] = {"token_file", RULES_FILE, .doc = "a file that has it on one line"},
    [TLS] = {"tls", RULES_MAPPING, .section = &rules_section_redis_tls,
             .absent = "the system's authorities", .doc = "how the other nodes are verified"},
    [ON_STORE_ERROR] = {"on_store_error", RULES_CHOICE, .words = rules_failure_words,
                        .absent = "that of the file, or `local`",
                        .doc = "what happens while a node does not answer: `local`, `open`, "
                               "`closed`"},
    {"deadline", RULES_DURATION, RULES_AT(struct weir_settings, store.deadline_ns),
     RULES_RANGE(RULES_MS, 10 * RULES_S), .otherwise = "20ms",
     .doc = "how long a node may take to answer, 1ms to 10s"},
};
const struct rules_section rules_section_sticky = RULES_SECTION("sticky", keywords);

/* --- `sticky` --------------------------------------------------------------------------------- */

/* Keeps the peers of the file's text; false after a problem. */
static bool keep_peers(struct rules_loader *loader, const struct rules_node *node, const char *path,
                       struct weir_bytes text)
{
    struct weir_sticky_settings *sticky = &loader->rules->settings.sticky;
    struct rules_peer peers[RULES_PEERS_MAX];
    struct weir_reason reason = {{0}};
    bool secret = false; /* a URL has a password */
    uint32_t line;
    int count = rules_peers_parse(text, peers, &line, &reason);
    if (count < 0 && line > 0)
        rules_problem(loader, node, "%s, line %u: %s", path, line, reason.text);
    else if (count < 0)
        rules_problem(loader, node, "%s: %s", path, reason.text);
    struct weir_sticky_peer *kept =
        count > 0 ? rules_keep(loader, (size_t)count * sizeof(*kept)) : NULL;
    if (!kept)
        return false;
    for (int i = 0; i < count; i++) {
        kept[i].name = rules_keep_text(loader, peers[i].name.data, peers[i].name.size);
        kept[i].url = rules_keep_text(loader, peers[i].url.data, peers[i].url.size);
        secret = secret || memchr(peers[i].url.data, '@', peers[i].url.size);
    }
    if (secret)
        rules_note_secret_file(loader, "peers", path);
    sticky->file = rules_keep_text(loader, path, strlen(path));
    sticky->peers = kept;
    sticky->count = (uint32_t)count;
    return !loader->no_memory;
}

static bool load_peers(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_reason reason = {{0}};
    struct weir_bytes name;
    if (!rules_read_place(loader, node, "peers", &name))
        return false;
    const char *path = rules_path_of(loader, name);
    char *text = rules_borrow(loader, RULES_PEERS_FILE_MAX + 1);
    if (!path || !text)
        return false;
    long size = weir_file_read(path, text, RULES_PEERS_FILE_MAX + 1, &reason);
    if (size < 0) {
        rules_problem(loader, node, "cannot read %s: %s", path, reason.text);
        return false;
    }
    if (size > RULES_PEERS_FILE_MAX) {
        rules_problem(loader, node, "%s has more than %d bytes", path, RULES_PEERS_FILE_MAX);
        return false;
    }
    return keep_peers(loader, node, path, (struct weir_bytes){text, (size_t)size});
}

static void load_self(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_sticky_settings *sticky = &loader->rules->settings.sticky;
    const char *names[RULES_PEERS_MAX];
    struct rules_quote quote;
    struct rules_hint room;
    struct weir_bytes name;
    if (!rules_read_place(loader, node, "self", &name))
        return;
    for (uint32_t i = 0; i < sticky->count; i++) {
        if (weir_bytes_are(name, sticky->peers[i].name)) {
            sticky->self = i;
            return;
        }
        names[i] = sticky->peers[i].name;
    }
    rules_quote(&quote, name.data, name.size);
    rules_problem(loader, node, "`self` names no peer of the file: %s%s", quote.text,
                  rules_hint(&room, name.data, name.size, names, sticky->count));
}

/* What every node's Redis listener asks for, and the authority that it is verified by. */
static void load_access(struct rules_loader *loader, const struct rules_field *fields)
{
    struct rules_field access[RULES_REDIS_FIELDS] = {{NULL, NULL, NULL}};
    access[RULES_REDIS_PASSWORD] = fields[TOKEN];
    access[RULES_REDIS_PASSWORD_FILE] = fields[TOKEN_FILE];
    access[RULES_REDIS_TLS] = fields[TLS];
    rules_load_redis_access(loader, access, &loader->rules->settings.sticky.access);
}

void rules_load_sticky(struct rules_loader *loader, const struct rules_field *field,
                       const struct rules_field *other)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct weir_settings *settings = &loader->rules->settings;
    if (other) {
        rules_problem(loader, field->key, "`sticky` does not go with `%s`: give one", other->name);
        return;
    }
    rules_store_defaults(loader);
    if (!rules_section_load(loader, &rules_section_sticky, field->value, fields, settings))
        return;
    for (int i = BY; i <= SELF; i++)
        if (!fields[i].value)
            rules_problem(loader, field->key, "`sticky` needs `%s`", fields[i].name);
    bool known = fields[PEERS].value && load_peers(loader, fields[PEERS].value);
    if (known && fields[SELF].value)
        load_self(loader, fields[SELF].value);
    load_access(loader, fields);
    if (fields[ON_STORE_ERROR].value)
        settings->store.on_store_error = rules_read_failure(loader, fields[ON_STORE_ERROR].value);
    settings->store.nodes = settings->sticky.count;
    loader->rules->shared = true;
}

/* --- Limits ----------------------------------------------------------------------------------- */

/* Whether this limit's `by` keeps as many bits of an address as that of the limits before it: a tag
 * is of a prefix, and a decision goes to the home of its first tag. */
static bool same_prefix(struct rules_loader *loader, const struct rules_node *node,
                        const struct rules_key_part *part)
{
    const struct rules_key_part *first = loader->home;
    if (!first)
        loader->home = part;
    if (!first || (first->bits4 == part->bits4 && first->bits6 == part->bits6))
        return true;
    rules_problem(loader, node,
                  "`%s` chooses the node by another prefix than `%s` of a limit above: keep one "
                  "prefix length, or set `per_node: true`",
                  part->name, first->name);
    return false;
}

/* Its attribute `by` becomes what chooses the node, as `hash_tag` does in a Cluster. */
static void set_home(struct rules_loader *loader, const struct rules_field *fields,
                     const struct rules_field *refused, const struct rules_node *limit,
                     struct rules_rule *rule)
{
    const char *by = loader->rules->settings.sticky.by;
    const struct rules_field *key = &fields[RULES_LIMIT_KEY];
    int part = by ? rules_key_find(loader, rule, weir_bytes_of(by)) : 0;
    if (part < 0) {
        rules_problem(loader, key->key ? key->key : limit,
                      "`%s`, by which `sticky` chooses the node, is not in `key`: add it, or set "
                      "`per_node: true`",
                      by);
        return;
    }
    if (refused)
        rules_problem(loader, refused->key,
                      "`%s` does not work with `sticky`: set `per_node: true`", refused->name);
    if (rule->instead_count > 0)
        rules_problem(loader, fields[RULES_LIMIT_ON_MISSING].value,
                      "with `sticky`, `on_missing` is skip, shared or deny: another attribute "
                      "would choose another node");
    if (!by || rule->key_count == 0 ||
        !same_prefix(loader, key->key ? key->key : limit, &rule->key[part]))
        return;
    const char **names = rules_keep(loader, sizeof(*names));
    if (!names)
        return;
    names[0] = rule->key[part].name;
    rule->tag_names = names;
    rule->tag[0] = (uint8_t)part;
    rule->tag_count = 1;
}

void rules_load_home(struct rules_loader *loader, const struct rules_field *fields,
                     const struct rules_field *refused, const struct rules_node *limit,
                     struct rules_rule *rule)
{
    const struct rules_field *field = &fields[RULES_LIMIT_PER_NODE];
    bool per_node = false;
    if (!loader->sticky) {
        if (field->value)
            rules_problem(loader, field->key, "`per_node` goes with the section `sticky`");
        return;
    }
    if (field->value)
        rules_read_bool(loader, field->value, "per_node", &per_node);
    /* Also beside the limits that have a home: one node would decide all, and leases are not sent.
     */
    if (rule->algorithm == WEIR_CONCURRENCY)
        rules_problem(loader, limit,
                      "concurrency does not work with `sticky`: remove this limit, or share a "
                      "store (`store.redis`)");
    if (!per_node)
        set_home(loader, fields, refused, limit, rule);
}
