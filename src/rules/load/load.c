/* SPDX-License-Identifier: Apache-2.0 */
/* see load.h */
#include "rules/load/load.h"

#include <string.h>

#include "feature/challenge/rules/section.h"
#include "feature/challenge/rules/solution.h"
#include "feature/envoy/rules/options.h"
#include "feature/identity/rules/jwt.h"
#include "feature/identity/rules/keys_load.h"
#include "feature/identity/rules/override.h"
#include "feature/kernel/settings.h"
#include "feature/penalties/rules/section.h"
#include "feature/region/rules/section.h"
#include "feature/standing/settings.h"
#include "feature/sticky/rules/section.h"
#include "feature/use/rules/section.h"
#include "feature/webhook/rules/warn.h"
#include "rules/charge/scale.h"
#include "rules/charge/settle.h"
#include "rules/load/attributes.h"
#include "rules/load/callers.h"
#include "rules/load/environment.h"
#include "rules/load/fields.h"
#include "rules/load/grammar.h"
#include "rules/load/limit/limits.h"
#include "rules/load/server/sharing.h"
#include "rules/load/server/store.h"
#include "rules/match/checks.h"

#define HASH_DIGITS 64 /* of SHA-256 */

static void load_keys(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_rules *rules = loader->rules;
    struct weir_bytes name;
    if (!rules_read_place(loader, node, "keys", &name))
        return;
    const char *path = rules_path_of(loader, name);
    if (!path)
        return;
    /* Without sound limits their overrides mean nothing. */
    struct weir_reason reason = {{0}};
    int err = rules_keys_load(rules, path, loader->wrong == 0, loader->problems, &reason);
    if (err == WEIR_ERR_IO || err == WEIR_ERR_NOT_FOUND)
        rules_problem(loader, node, "cannot read %s: %s", path, reason.text);
    loader->wrong += err == WEIR_ERR_RULES;
    loader->no_memory |= err == WEIR_ERR_MEMORY;
}

/* For the whole file; `store` and limits may say otherwise. */
static void load_on_store_error(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_settings *settings = &loader->rules->settings;
    settings->on_store_error = rules_read_failure(loader, node);
    settings->on_store_error_given = true;
    settings->store.on_store_error = settings->on_store_error;
}

static void load_version(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_quote quote;
    if (node->kind != RULES_SCALAR || strcmp(node->text, "1") != 0) {
        rules_problem(loader, node, "`version` must be 1, not %s",
                      node->kind == RULES_SCALAR ? rules_quote(&quote, node->text, node->size)
                                                 : "that");
    }
}

/* A keys file maps SHA-256 in hexadecimal to callers. */
static bool is_keys_file(const struct rules_node *root)
{
    if (root->kind != RULES_MAP || root->size == 0 || root->items[0]->kind != RULES_SCALAR ||
        root->items[1]->kind != RULES_MAP)
        return false;
    const struct rules_node *first = root->items[0];
    return first->size == HASH_DIGITS &&
           strspn(first->text, "0123456789abcdefABCDEF") == HASH_DIGITS;
}

/* A fleet has one way to share its states. */
static void load_sticky(struct rules_loader *loader, const struct rules_field *fields)
{
    static const int others[] = {TOP_STORE, TOP_REGIONS, TOP_ENVOY};
    const struct rules_field *other = NULL;
    for (int i = 0; i < 3 && !other; i++)
        if (fields[others[i]].value)
            other = &fields[others[i]];
    rules_load_sticky(loader, &fields[TOP_STICKY], other);
}

/* Reads these sections, in this order. */
static void load_sections(struct rules_loader *loader, const struct rules_field *fields,
                          const uint8_t *which, size_t count)
{
    for (size_t i = 0; i < count && !loader->no_memory; i++)
        if (fields[which[i]].value)
            rules_section_file.keywords[which[i]].load(loader, fields[which[i]].value);
}

/* Where states are: of the sections that are there, one says it. */
static void load_places(struct rules_loader *loader, struct rules_field *fields)
{
    if (fields[TOP_STORE].value)
        rules_load_store(loader, fields[TOP_STORE].value, fields[TOP_REGIONS].value != NULL);
    if (fields[TOP_REGIONS].value)
        rules_load_regions(loader, &fields[TOP_REGIONS]);
    loader->sticky = fields[TOP_STICKY].value;
    if (loader->sticky)
        load_sticky(loader, fields);
}

/* What limits do not read, or read as a setting; in the order in which they need each other:
 * names before all that names any, patterns of paths and controllers before the limits. */
static void load_settings(struct rules_loader *loader, struct rules_field *fields)
{
    static const uint8_t first[] = {TOP_ATTRIBUTES, TOP_SERVER, TOP_STATE, TOP_HEADERS, TOP_REJECT};
    static const uint8_t then[] = {TOP_IDENTITIES, TOP_IDEMPOTENCY, TOP_ENVOY, TOP_WEBHOOK,
                                   TOP_DENIALS,    TOP_TIMEZONE,    TOP_JWT,   TOP_CHALLENGE,
                                   TOP_PATHS,      TOP_ADAPTIVE};
    if (fields[TOP_VERSION].value)
        load_version(loader, fields[TOP_VERSION].value);
    if (fields[TOP_STRICT_ATTRIBUTES].value)
        rules_read_bool(loader, fields[TOP_STRICT_ATTRIBUTES].value, "strict_attributes",
                        &loader->rules->strict_attributes);
    if (fields[TOP_ON_STORE_ERROR].value)
        load_on_store_error(loader, fields[TOP_ON_STORE_ERROR].value); /* before `store` */
    load_sections(loader, fields, first, sizeof(first));
    load_places(loader, fields);
    load_sections(loader, fields, then, sizeof(then));
}

/* Who callers are, and what is held for or against them: before the limits. Classes of priorities,
 * standing (after what makes secrets), and scores (after the lists of standing). */
static void load_callers(struct rules_loader *loader, struct rules_field *fields)
{
    static const uint8_t sections[] = {TOP_ON_UNKNOWN, TOP_PRIORITY, TOP_STANDING, TOP_KERNEL,
                                       TOP_SCORE};
    rules_load_plans(loader, fields[TOP_PLANS].value, fields[TOP_DEFAULT_PLAN].value);
    loader->callers = fields[TOP_KEYS].value || fields[TOP_IDENTITIES].value;
    if (fields[TOP_IDENTIFY].value && !loader->no_memory)
        rules_load_identify(loader, fields[TOP_IDENTIFY].value, loader->callers);
    load_sections(loader, fields, sections, sizeof(sections));
    rules_check_difficulty(loader);
}

static void load_top(struct rules_loader *loader, const struct rules_node *root)
{
    struct rules_field fields[TOP_FIELDS];
    if (is_keys_file(root)) {
        rules_problem(
            loader, root,
            "this is a keys file, not a rules file: name it by `keys` of a rules file, and "
            "validate that one");
        return;
    }
    if (!rules_section_find(loader, &rules_section_file, root, fields) ||
        !rules_fixed_attributes(loader))
        return;
    loader->rules->server_only = rules_server_only(fields);
    load_settings(loader, fields);
    load_callers(loader, fields);
    if (!fields[TOP_LIMITS].value)
        rules_problem(loader, root, "`limits` is missing; write `limits: []` for none");
    else if (!loader->no_memory)
        rules_load_limits(loader, fields[TOP_LIMITS].value);
    if (loader->rules->regions && loader->wrong == 0 && !loader->no_memory)
        rules_check_regions(loader, &fields[TOP_REGIONS]);
    if (fields[TOP_PENALTIES].value && !loader->no_memory)
        rules_load_penalties(loader, &fields[TOP_PENALTIES]);
    if (!loader->no_memory)
        rules_load_repeated(loader, fields[TOP_REPEATED_CREDENTIALS].value);
    if (fields[TOP_KEYS].value && !loader->no_memory)
        load_keys(loader, fields[TOP_KEYS].value);
    if (loader->wrong == 0 && !loader->no_memory) {
        rules_count_overrides(loader->rules);
        rules_find_alone(loader->rules);
    }
    if (!loader->no_memory)
        rules_check_nodes(loader);
}

/* RFC 6052 2.1 */
static const struct weir_cidr well_known_nat64 = {{6, {0, 0x64, 0xff, 0x9b}}, 96};

/* Those that rules.h only names. */
static bool make_settings(struct rules_loader *loader)
{
    struct weir_settings *settings = &loader->rules->settings;

    settings->envoy = rules_keep(loader, sizeof *settings->envoy);
    settings->kernel = rules_keep(loader, sizeof *settings->kernel);
    settings->standing = rules_keep(loader, sizeof *settings->standing);
    return settings->envoy && settings->kernel && settings->standing;
}

/* What counts where the file says nothing: design of the server, and loopback as proxy. */
static bool set_defaults(struct rules_loader *loader)
{
    struct weir_settings *settings = &loader->rules->settings;
    struct weir_cidr *proxies = rules_keep(loader, 2 * sizeof(*proxies));
    loader->rules->unknown = rules_keep(loader, sizeof(*loader->rules->unknown));
    if (!proxies || !loader->rules->unknown || !make_settings(loader))
        return false;
    proxies[0] = (struct weir_cidr){{4, {127}}, 8};
    proxies[1] = (struct weir_cidr){{6, {[15] = 1}}, 128};
    settings->nat64 = &well_known_nat64;
    settings->nat64_count = 1;
    settings->trusted_proxies = proxies;
    settings->trusted_proxy_count = 2;
    settings->trust_unix = true;
    settings->headers = WEIR_HEADERS_DRAFT | WEIR_HEADERS_X_EPOCH;
    rules_section_defaults(&rules_section_idempotency, settings);
    rules_section_defaults(&rules_section_denials, &settings->denials);
    return true;
}

static int load_document(struct rules_loader *loader, const char *text, size_t size)
{
    struct rules_node *root;
    int err =
        rules_document_parse(&root, &loader->scratch, loader->file, text, size, loader->problems);
    if (err == WEIR_ERR_MEMORY || !set_defaults(loader))
        return WEIR_ERR_MEMORY;
    if (root)
        load_top(loader, root);
    if (loader->no_memory)
        return WEIR_ERR_MEMORY;
    if (err < 0 || loader->wrong > 0)
        return WEIR_ERR_RULES;
    const struct weir_limit_spec idempotency = {.algorithm = WEIR_GCRA,
                                                .rate = 1,
                                                .window_ns = loader->rules->settings.idempotency_ns,
                                                .burst = 1};
    err = weir_limit_init(&loader->rules->idempotency, &idempotency, NULL);
    if (err == 0)
        err = rules_make_settled(loader->rules);
    if (err == 0)
        err = rules_make_warned(loader->rules);
    if (err == 0)
        err = rules_make_solved(loader->rules);
    if (err < 0)
        return err; /* not within the range that the loader admits */
    rules_checks_prepare(loader->rules);
    err = loader->rules->jwt ? rules_jwt_seal(loader->rules->jwt) : 0;
    return err < 0 ? err : rules_index_build(loader->rules);
}

int rules_load_text(struct weir_rules *rules, const char *name, const char *folder,
                    const char *text, size_t size, struct weir_problems *problems)
{
    struct rules_loader loader = {
        .rules = rules, .problems = problems, .file = name, .folder = folder ? folder : ""};
    int err = load_document(&loader, text, size);
    rules_string_map_free(&loader.plan_limits);
    rules_arena_free(&loader.scratch);
    rules_problems_sort(problems);
    return err;
}
