/* SPDX-License-Identifier: Apache-2.0 */
/* see jwt.h */
#include "rules/load/jwt.h"

#include <openssl/crypto.h>
#include <string.h>

#include "base/file.h"
#include "core/bytes.h"
#include "feature/identity/rules/json.h"
#include "feature/identity/rules/jwks.h"
#include "feature/identity/rules/jwt.h"
#include "rules/load/attributes.h"
#include "rules/load/environment.h"
#include "rules/load/fields.h"

/* --- `keys` and `algorithms` ------------------------------------------------------------------ */

#define KEY_FILE_MAX 262144 /* a set of some hundred keys with their certificates */

enum { KEY_FILE, KEY_SECRET_FILE, KEY_ID };

static const struct rules_keyword key_keywords[] = {
    [KEY_FILE] = {"file", RULES_FILE, .doc = "a public key in PEM, or a JWK set"},
    [KEY_SECRET_FILE] = {"secret_file", RULES_FILE,
                         .doc = "a secret for HS256 of at least 32 bytes"},
    [KEY_ID] = {"kid", RULES_TEXT, .absent = "any", .doc = "the `kid` of tokens that it verifies"},
};
static const struct rules_section key_section = RULES_SECTION("a key", key_keywords);

/* Takes a key over. */
static void add_key(struct rules_loader *loader, const struct rules_node *node,
                    struct rules_jwt_key *key)
{
    struct rules_jwt *jwt = loader->rules->jwt;
    if (jwt->key_count == RULES_JWT_KEYS_MAX) {
        rules_problem(loader, node, "more than %d keys", RULES_JWT_KEYS_MAX);
        rules_jwt_key_free(key);
        return;
    }
    jwt->keys[jwt->key_count++] = *key;
}

/* A key of its own, which must be of use. */
static void add_single(struct rules_loader *loader, const struct rules_node *node, const char *path,
                       struct rules_jwt_key *key, struct weir_bytes id)
{
    const struct rules_jwt *jwt = loader->rules->jwt;
    if (!jwt->algorithms[key->algorithm]) {
        rules_problem(loader, node, "%s is a key for %s, which is not in `algorithms`", path,
                      rules_algorithm_names[key->algorithm]);
        rules_jwt_key_free(key);
        return;
    }
    key->id = id;
    add_key(loader, node, key);
}

static void load_set(struct rules_loader *loader, const struct rules_node *node, const char *path,
                     struct weir_bytes text, bool named)
{
    struct rules_jwt_key keys[RULES_JWT_KEYS_MAX];
    const struct rules_jwt *jwt = loader->rules->jwt;
    uint32_t useful = 0;
    int count = rules_jwks_read(text, &loader->rules->arena, keys, RULES_JWT_KEYS_MAX);
    loader->no_memory |= count == WEIR_ERR_MEMORY;
    if (count == WEIR_ERR_SYNTAX)
        rules_problem(loader, node, "%s is not a JSON object with `keys` (RFC 7517)", path);
    if (count == WEIR_ERR_UNSUPPORTED)
        rules_problem(loader, node, "%s holds what " RULES_JWT_KEY_IS_PRIVATE, path);
    if (count > RULES_JWT_KEYS_MAX) {
        rules_problem(loader, node, "%s has more than %d keys", path, RULES_JWT_KEYS_MAX);
        count = RULES_JWT_KEYS_MAX;
    }
    if (named && count >= 0) {
        rules_problem(loader, node, "the keys in %s have identifiers of their own; remove `kid`",
                      path);
    }
    for (int i = 0; i < count; i++) {
        if (jwt->algorithms[keys[i].algorithm]) {
            add_key(loader, node, &keys[i]);
            useful++;
        } else {
            rules_jwt_key_free(&keys[i]);
        }
    }
    if (count >= 0 && useful == 0) {
        rules_problem(
            loader, node,
            "%s has no key that is allowed: RSA of 2048 bits at least, EC on P-256, oct of "
            "32 bytes at least, for signatures",
            path);
    }
}

static void load_public(struct rules_loader *loader, const struct rules_node *node,
                        const char *path, struct weir_bytes text, struct weir_bytes id)
{
    struct weir_reason reason = {{0}};
    struct rules_jwt_key key = {0};
    size_t at = 0;
    while (at < text.size && strchr(" \t\r\n", text.data[at]) && text.data[at] != '\0')
        at++;
    if (at < text.size && text.data[at] == '{') {
        load_set(loader, node, path, text, id.data);
        return;
    }
    int err = rules_jwt_key_pem(&key, text, &reason);
    loader->no_memory |= err == WEIR_ERR_MEMORY;
    if (err == 0)
        add_single(loader, node, path, &key, id);
    else if (err != WEIR_ERR_MEMORY)
        rules_problem(loader, node, "%s %s", path, reason.text);
}

/* Whether what should be a secret is PEM, behind whatever text, or a JWK set: as a rule everybody
 * knows those, and then everybody could sign. */
static bool holds_keys(struct weir_bytes text)
{
    static const char pem[] = "-----BEGIN ";
    json_t *object = rules_json_read(text, UINT32_MAX);
    bool json = object;
    json_decref(object);
    return json || memmem(text.data, text.size, pem, sizeof(pem) - 1);
}

/* The bytes of the file but the end of its last line. */
static void load_secret(struct rules_loader *loader, const struct rules_node *node,
                        const char *path, struct weir_bytes text, struct weir_bytes id)
{
    struct rules_jwt_key key = {.algorithm = RULES_HS256};
    text.size -= text.size > 0 && text.data[text.size - 1] == '\n';
    text.size -= text.size > 0 && text.data[text.size - 1] == '\r';
    if (holds_keys(text)) {
        rules_problem(loader, node, "%s is a key, not a secret: give it as `file`", path);
        return;
    }
    if (text.size < RULES_SECRET_BYTES_MIN) {
        rules_problem(loader, node, "%s must hold a secret of %d bytes at least", path,
                      RULES_SECRET_BYTES_MIN);
        return;
    }
    key.secret = (struct weir_bytes){rules_keep_text(loader, text.data, text.size), text.size};
    if (key.secret.data)
        add_single(loader, node, path, &key, id);
}

static void load_file(struct rules_loader *loader, const struct rules_node *node, bool secret,
                      struct weir_bytes id)
{
    struct weir_bytes name;
    if (!rules_read_place(loader, node, secret ? "secret_file" : "file", &name))
        return;
    const char *path = rules_path_of(loader, name);
    char *bytes = rules_borrow(loader, KEY_FILE_MAX);
    if (!path || !bytes)
        return;
    struct weir_reason reason = {{0}};
    long size = weir_file_read(path, bytes, KEY_FILE_MAX, &reason);
    if (size < 0) {
        rules_problem(loader, node, "cannot read %s: %s", path, reason.text);
    } else if (size == KEY_FILE_MAX) {
        rules_problem(loader, node, "%s is larger than %d KiB", path, KEY_FILE_MAX / 1024 - 1);
    } else if (secret) {
        rules_note_secret_file(loader, "secret_file", path);
        load_secret(loader, node, path, (struct weir_bytes){bytes, (size_t)size}, id);
        OPENSSL_cleanse(bytes, (size_t)size);
    } else {
        load_public(loader, node, path, (struct weir_bytes){bytes, (size_t)size}, id);
    }
}

/* A key: {file: …} or {secret_file: …}, or the name of a file. */
static void load_key(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct weir_bytes id = {NULL, 0};
    if (node->kind == RULES_SCALAR) {
        load_file(loader, node, false, id);
        return;
    }
    if (!rules_section_find(loader, &key_section, node, fields))
        return;
    const struct rules_field *file = &fields[KEY_FILE], *secret = &fields[KEY_SECRET_FILE];
    if ((file->value != NULL) == (secret->value != NULL)) {
        rules_problem(loader, node,
                      "a key has either `file` (PEM or JWK set) or `secret_file` (for HS256)");
        return;
    }
    if (fields[KEY_ID].value) {
        if (!rules_read_text(loader, fields[KEY_ID].value, "kid", &id))
            return;
        id.data = rules_keep_text(loader, id.data, id.size);
    }
    load_file(loader, secret->value ? secret->value : file->value, secret->value, id);
}

static void load_algorithms(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_jwt *jwt = loader->rules->jwt;
    struct rules_items items = {NULL, 0};
    if (node)
        items = rules_items_of(&node);
    for (int i = 0; i < RULES_ALGORITHMS; i++)
        jwt->algorithms[i] = !node;
    for (uint32_t i = 0; i < items.count; i++) {
        int algorithm = rules_read_choice(loader, items.items[i], "algorithms",
                                          rules_algorithm_names, RULES_ALGORITHMS);
        if (algorithm >= 0)
            jwt->algorithms[algorithm] = true;
    }
}

/* What is allowed without a key for it would never count. */
static void check_algorithms(struct rules_loader *loader, const struct rules_node *node)
{
    const struct rules_jwt *jwt = loader->rules->jwt;
    for (int i = 0; node && i < RULES_ALGORITHMS; i++) {
        bool found = !jwt->algorithms[i];
        for (uint8_t k = 0; k < jwt->key_count; k++)
            found = found || jwt->keys[k].algorithm == i;
        if (!found) {
            rules_problem(loader, node, "`algorithms` has %s, but no key is for it",
                          rules_algorithm_names[i]);
        }
    }
}

/* Whether some token could need more tries than it gets: keys of one identifier, or without one. */
static bool too_many_alike(const struct rules_jwt *jwt, const struct rules_jwt_key *key)
{
    uint32_t alike = 0;
    for (uint8_t i = 0; i < jwt->key_count; i++) {
        const struct rules_jwt_key *other = &jwt->keys[i];
        bool same = !other->id.data || (key->id.data && weir_bytes_equal(key->id, other->id));
        alike += other->algorithm == key->algorithm && same;
    }
    return alike > RULES_JWT_TRIES_MAX;
}

static void load_keys(struct rules_loader *loader, const struct rules_node *keys,
                      const struct rules_node *algorithms)
{
    const struct rules_jwt *jwt = loader->rules->jwt;
    uint32_t wrong = loader->wrong;
    struct rules_items items = rules_items_of(&keys);
    load_algorithms(loader, algorithms);
    if (items.count == 0)
        rules_problem(loader, keys, "`keys` is empty: no token would be accepted");
    for (uint32_t i = 0; i < items.count && !loader->no_memory; i++)
        load_key(loader, items.items[i]);
    if (loader->wrong > wrong)
        return;
    check_algorithms(loader, algorithms);
    for (uint8_t i = 0; i < jwt->key_count; i++) {
        if (too_many_alike(jwt, &jwt->keys[i])) {
            rules_problem(
                loader, keys,
                "more than %d keys of %s share a `kid` or have none: give each key its own `kid`",
                RULES_JWT_TRIES_MAX, rules_algorithm_names[jwt->keys[i].algorithm]);
            return;
        }
    }
}

#define LEEWAY_MAX_NS (5 * RULES_MINUTE) /* clocks that differ by more are wrong, not apart */

enum {
    JWT_FROM,
    JWT_KEYS,
    JWT_ALGORITHMS,
    JWT_ISSUER,
    JWT_AUDIENCE,
    JWT_USER,
    JWT_ORG,
    JWT_PLAN,
};

#define AT(member) RULES_AT(struct rules_jwt, member)
static const struct rules_keyword keywords[] = {
    [JWT_FROM] = {"from", RULES_TEXT, .many = RULES_SEVERAL, .otherwise = "header.authorization",
                  .doc = "where the token is: a header or another attribute, or up to 4, of which "
                         "the first with a valid token counts"},
    [JWT_KEYS] = {"keys", RULES_FILE, .many = RULES_SEVERAL, .section = &key_section,
                  .flags = RULES_REQUIRED,
                  .doc =
                      "list of `{file: …}` or `{secret_file: …}`, each with an optional `kid`; a "
                      "plain path is a `file`; at most 64 keys"},
    [JWT_ALGORITHMS] = {"algorithms", RULES_CHOICE, RULES_WORDS("RS256", "ES256", "HS256"),
                        .many = RULES_SEVERAL, .absent = "those that the keys are for",
                        .doc = "of `RS256`, `ES256`, `HS256`"},
    [JWT_ISSUER] = {"issuer", RULES_TEXT, .many = RULES_SEVERAL, .absent = "any",
                    .doc = "the name, or names, of which one must equal the token's `iss` exactly"},
    [JWT_AUDIENCE] = {"audience", RULES_TEXT, .many = RULES_SEVERAL, .flags = RULES_REQUIRED,
                      .absent = "required, because tokens for other services would count",
                      .doc = "the name, or names, of which the token's `aud` must have one; `any` "
                             "accepts all"},
    [JWT_USER] = {"user", RULES_TEXT, .otherwise = "sub",
                  .doc = "the claim that is the [user](rules.md#who-is-calling)"},
    [JWT_ORG] = {"org", RULES_TEXT, .absent = "none", .doc = "the claim that is the organisation"},
    [JWT_PLAN] = {"plan", RULES_TEXT, .absent = "none", .doc = "the claim that is the plan"},
    {"leeway", RULES_DURATION, AT(leeway_ns), RULES_RANGE(0, LEEWAY_MAX_NS), .absent = "none",
     .doc = "`30s`: tolerance after `exp` and before `nbf`, up to 5min"},
    {"max_age", RULES_DURATION, AT(max_age_ns), RULES_RANGE(RULES_S, 366 * RULES_DAY),
     .absent = "what `exp` says",
     .doc = "`12h`: how long after its `iat` a token counts, whatever its `exp` says; the token "
            "then must have an `iat`"},
    {"require_exp", RULES_FLAG, AT(require_exp), .otherwise = "true",
     .doc = "`false`: tokens without expiry count too"},
};
const struct rules_section rules_section_jwt = RULES_SECTION("`jwt`", keywords);

/* --- Where tokens are ------------------------------------------------------------------------- */

static void add_source(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_bytes name)
{
    struct rules_jwt *jwt = loader->rules->jwt;
    struct rules_quote quote;
    if (jwt->source_count == RULES_JWT_SOURCES_MAX) {
        rules_problem(loader, node, "`from` has more than %d attributes", RULES_JWT_SOURCES_MAX);
        return;
    }
    if (!rules_attribute_is_for(name, RULES_FOR_TOKEN)) {
        rules_problem(loader, node, "%s holds no token; a header or another attribute can",
                      rules_quote(&quote, name.data, name.size));
        return;
    }
    int attribute = rules_intern_attribute(loader, node, name);
    if (attribute < 0)
        return;
    const char *known = loader->rules->attribute_names[attribute];
    jwt->schemes[jwt->source_count] = strcmp(known, "header.authorization") == 0 ||
                                      strcmp(known, "header.proxy-authorization") == 0;
    jwt->sources[jwt->source_count++] = (uint16_t)attribute;
}

static void load_sources(struct rules_loader *loader, const struct rules_node *node)
{
    static const struct rules_node otherwise = {
        .kind = RULES_SCALAR, .size = 20, .text = "header.authorization"};
    const struct rules_node *sources = node ? node : &otherwise;
    struct rules_items items = rules_items_of(&sources);
    if (items.count == 0)
        rules_problem(loader, node, "`from` is an empty list: no token would be found");
    for (uint32_t i = 0; i < items.count && !loader->no_memory; i++) {
        struct weir_bytes name;
        if (rules_read_text(loader, items.items[i], "from", &name))
            add_source(loader, items.items[i], name);
    }
}

/* --- Whose tokens, and for whom --------------------------------------------------------------- */

static uint8_t load_names(struct rules_loader *loader, const struct rules_field *field,
                          struct weir_bytes names[RULES_JWT_NAMES_MAX])
{
    struct rules_items items = rules_items_of(&field->value);
    uint8_t count = 0;
    if (items.count == 0) {
        rules_problem(loader, field->value, "`%s` is an empty list: no token would be accepted",
                      field->name);
    }
    if (items.count > RULES_JWT_NAMES_MAX) {
        rules_problem(loader, field->value, "`%s` has more than %d values", field->name,
                      RULES_JWT_NAMES_MAX);
        return 0;
    }
    for (uint32_t i = 0; i < items.count && !loader->no_memory; i++) {
        struct weir_bytes text;
        if (rules_read_text(loader, items.items[i], field->name, &text)) {
            names[count++] =
                (struct weir_bytes){rules_keep_text(loader, text.data, text.size), text.size};
        }
    }
    return count;
}

static void load_parties(struct rules_loader *loader, const struct rules_node *node,
                         const struct rules_field *fields)
{
    struct rules_jwt *jwt = loader->rules->jwt;
    const struct rules_node *audience = fields[JWT_AUDIENCE].value;
    if (fields[JWT_ISSUER].value)
        jwt->issuer_count = load_names(loader, &fields[JWT_ISSUER], jwt->issuers);
    if (!audience) {
        rules_problem(loader, node,
                      "`audience` is missing: tokens for other services would be accepted; name "
                      "this service, or set `audience: any`");
    } else if (audience->kind != RULES_SCALAR || strcmp(audience->text, "any") != 0) {
        jwt->audience_count = load_names(loader, &fields[JWT_AUDIENCE], jwt->audiences);
    }
}

static uint8_t load_claim(struct rules_loader *loader, const struct rules_field *field,
                          const char *otherwise)
{
    struct weir_bytes name = {otherwise, otherwise ? strlen(otherwise) : 0};
    bool given = field->value;
    if (!given && !otherwise)
        return RULES_CLAIM_NONE;
    if (given && !rules_read_text(loader, field->value, field->name, &name))
        return RULES_CLAIM_NONE;
    int claim = rules_intern_claim(loader, field->value, name);
    return claim >= 0 ? (uint8_t)claim : RULES_CLAIM_NONE;
}

/* --- The whole -------------------------------------------------------------------------------- */

void rules_load_jwt(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct rules_jwt *jwt = rules_keep(loader, sizeof(*jwt));
    loader->rules->jwt = jwt;
    if (!jwt || !rules_section_load(loader, &rules_section_jwt, node, fields, jwt))
        return;
    jwt->user = jwt->org = jwt->plan = RULES_CLAIM_NONE;
    load_sources(loader, fields[JWT_FROM].value);
    if (!fields[JWT_KEYS].value)
        rules_problem(loader, node, "`keys` is missing: without keys no signature can be verified");
    else
        load_keys(loader, fields[JWT_KEYS].value, fields[JWT_ALGORITHMS].value);
    load_parties(loader, node, fields);
    jwt->user = load_claim(loader, &fields[JWT_USER], "sub");
    jwt->org = load_claim(loader, &fields[JWT_ORG], NULL);
    jwt->plan = load_claim(loader, &fields[JWT_PLAN], NULL);
}
