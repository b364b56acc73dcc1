/* SPDX-License-Identifier: Apache-2.0 */
/* `keys` and `algorithms` of `jwt`; see loader.h and identity/jwt_key.h */
#include <string.h>

#include <openssl/crypto.h>

#include "core/bytes.h"
#include "rules/identity/json.h"
#include "rules/identity/jwks.h"
#include "rules/identity/jwt.h"
#include "rules/load/loader.h"

#define KEY_FILE_MAX 262144 /* a set of some hundred keys with their certificates */

enum key_field { KEY_FILE, KEY_SECRET_FILE, KEY_ID, KEY_FIELDS };

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
        rules_problem(loader, node, "%s is no JSON object with `keys` (RFC 7517)", path);
    if (count == WEIR_ERR_UNSUPPORTED)
        rules_problem(loader, node, "%s holds what " RULES_JWT_KEY_IS_PRIVATE, path);
    if (count > RULES_JWT_KEYS_MAX) {
        rules_problem(loader, node, "%s has more than %d keys", path, RULES_JWT_KEYS_MAX);
        count = RULES_JWT_KEYS_MAX;
    }
    if (named && count >= 0) {
        rules_problem(loader, node, "the keys in %s have identifiers of their own; leave `kid` out",
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
    while (at < text.size && strchr(" \t\r\n", text.data[at]) != NULL && text.data[at] != '\0')
        at++;
    if (at < text.size && text.data[at] == '{') {
        load_set(loader, node, path, text, id.data != NULL);
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
    bool json = object != NULL;
    json_decref(object);
    return json || memmem(text.data, text.size, pem, sizeof(pem) - 1) != NULL;
}

/* The bytes of the file but the end of its last line. */
static void load_secret(struct rules_loader *loader, const struct rules_node *node,
                        const char *path, struct weir_bytes text, struct weir_bytes id)
{
    struct rules_jwt_key key = {.algorithm = RULES_HS256};
    text.size -= text.size > 0 && text.data[text.size - 1] == '\n';
    text.size -= text.size > 0 && text.data[text.size - 1] == '\r';
    if (holds_keys(text)) {
        rules_problem(loader, node, "%s is a key, which is no secret: give it as `file`", path);
        return;
    }
    if (text.size < RULES_SECRET_BYTES_MIN) {
        rules_problem(loader, node, "%s must hold a secret of %d bytes at least", path,
                      RULES_SECRET_BYTES_MIN);
        return;
    }
    key.secret = (struct weir_bytes){rules_keep_text(loader, text.data, text.size), text.size};
    if (key.secret.data != NULL)
        add_single(loader, node, path, &key, id);
}

static void load_file(struct rules_loader *loader, const struct rules_node *node, bool secret,
                      struct weir_bytes id)
{
    struct weir_bytes name;
    if (!rules_read_text(loader, node, secret ? "secret_file" : "file", &name))
        return;
    const char *path = rules_path_of(loader, name);
    char *bytes = rules_borrow(loader, KEY_FILE_MAX);
    if (path == NULL || bytes == NULL)
        return;
    struct weir_reason reason = {{0}};
    long size = rules_read_file(path, bytes, KEY_FILE_MAX, &reason);
    if (size < 0) {
        rules_problem(loader, node, "cannot read %s: %s", path, reason.text);
    } else if (size == KEY_FILE_MAX) {
        rules_problem(loader, node, "%s is larger than %d KiB", path, KEY_FILE_MAX / 1024 - 1);
    } else if (secret) {
        load_secret(loader, node, path, (struct weir_bytes){bytes, (size_t)size}, id);
        OPENSSL_cleanse(bytes, (size_t)size);
    } else {
        load_public(loader, node, path, (struct weir_bytes){bytes, (size_t)size}, id);
    }
}

/* A key: {file: …} or {secret_file: …}, or the name of a file. */
static void load_key(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_field fields[KEY_FIELDS] = {
        {"file", NULL, NULL}, {"secret_file", NULL, NULL}, {"kid", NULL, NULL}};
    struct weir_bytes id = {NULL, 0};
    if (node->kind == RULES_SCALAR) {
        load_file(loader, node, false, id);
        return;
    }
    if (!rules_fields(loader, node, "a key", fields, KEY_FIELDS))
        return;
    const struct rules_field *file = &fields[KEY_FILE], *secret = &fields[KEY_SECRET_FILE];
    if ((file->value != NULL) == (secret->value != NULL)) {
        rules_problem(loader, node,
                      "a key has either `file` (PEM or JWK set) or `secret_file` (for HS256)");
        return;
    }
    if (fields[KEY_ID].value != NULL) {
        if (!rules_read_text(loader, fields[KEY_ID].value, "kid", &id))
            return;
        id.data = rules_keep_text(loader, id.data, id.size);
    }
    load_file(loader, secret->value != NULL ? secret->value : file->value, secret->value != NULL,
              id);
}

static void load_algorithms(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_jwt *jwt = loader->rules->jwt;
    struct rules_items items = {NULL, 0};
    if (node != NULL)
        items = rules_items_of(&node);
    for (int i = 0; i < RULES_ALGORITHMS; i++)
        jwt->algorithms[i] = node == NULL;
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
    for (int i = 0; node != NULL && i < RULES_ALGORITHMS; i++) {
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
        bool same = other->id.data == NULL ||
                    (key->id.data != NULL && weir_bytes_equal(key->id, other->id));
        alike += other->algorithm == key->algorithm && same;
    }
    return alike > RULES_JWT_TRIES_MAX;
}

void rules_load_jwt_keys(struct rules_loader *loader, const struct rules_node *keys,
                         const struct rules_node *algorithms)
{
    const struct rules_jwt *jwt = loader->rules->jwt;
    uint32_t wrong = loader->wrong;
    struct rules_items items = rules_items_of(&keys);
    load_algorithms(loader, algorithms);
    if (items.count == 0)
        rules_problem(loader, keys, "`keys` is empty, so that no token would count");
    for (uint32_t i = 0; i < items.count && !loader->no_memory; i++)
        load_key(loader, items.items[i]);
    if (loader->wrong > wrong)
        return;
    check_algorithms(loader, algorithms);
    for (uint8_t i = 0; i < jwt->key_count; i++) {
        if (too_many_alike(jwt, &jwt->keys[i])) {
            rules_problem(loader, keys,
                          "more than %d keys of %s have one `kid` or none: a token could not say "
                          "which of them it is signed with",
                          RULES_JWT_TRIES_MAX, rules_algorithm_names[jwt->keys[i].algorithm]);
            return;
        }
    }
}
