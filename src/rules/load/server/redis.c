/* SPDX-License-Identifier: Apache-2.0 */
/* see redis.h */
#include "rules/load/server/redis.h"

#include <string.h>

#include "core/bytes.h"
#include "rules/load/environment.h"
#include "rules/load/fields.h"

#define PREFIX_MAX 64 /* keys of hundreds of bytes are slower than those of tens */

/* What Redis is, in the order of their schemes in a URL. */
struct scheme {
    const char *name;
    bool tls, sentinel;
};

static const struct scheme schemes[] = {
    {"redis", false, false},         {"rediss", true, false},
    {"unix", false, false},          {"redis-sentinel", false, true},
    {"rediss-sentinel", true, true}, {"redis-cluster", false, false},
    {"rediss-cluster", true, false},
};
#define SCHEME_COUNT (sizeof(schemes) / sizeof(schemes[0]))

/* The scheme of a URL; NULL after a problem. Here only what is wrong at a glance is found; what the
 * client makes of the rest is its own business. A URL may hold a password: it is never quoted. */
static const struct scheme *check_url(struct rules_loader *loader, const struct rules_node *node,
                                      struct weir_bytes url)
{
    const char *names[SCHEME_COUNT];
    struct rules_quote quote;
    const char *colon = memchr(url.data, ':', url.size);
    size_t size = colon ? (size_t)(colon - url.data) : 0;
    const struct scheme *scheme = NULL;
    for (size_t i = 0; i < SCHEME_COUNT; i++) {
        names[i] = schemes[i].name;
        if (weir_bytes_are((struct weir_bytes){url.data, size}, names[i]))
            scheme = &schemes[i];
    }
    if (!scheme) {
        bool likely = size > 0 && size < 20; /* else it may be a secret */
        struct rules_hint room;
        const char *hint = likely ? rules_hint(&room, url.data, size, names, SCHEME_COUNT) : "";
        rules_problem(
            loader, node,
            "the URL of Redis begins with redis://, rediss://, unix:/, redis-sentinel://, "
            "rediss-sentinel://, redis-cluster:// or rediss-cluster://%s%s%s",
            likely ? ", not " : "", likely ? rules_quote(&quote, url.data, size) : "", hint);
        return NULL;
    }
    struct weir_bytes rest = {colon + 1, url.size - size - 1};
    bool path = strcmp(scheme->name, "unix") == 0;
    bool good = path ? rest.size > 1 && rest.data[0] == '/'
                     : rest.size > 2 && memcmp(rest.data, "//", 2) == 0 && rest.data[2] != '/';
    if (!good) {
        rules_problem(loader, node, "the URL of Redis has no %s; as in `%s`",
                      path ? "socket" : "host",
                      path ? "unix:/run/redis/redis.sock" : "redis://127.0.0.1:6379/0");
        return NULL;
    }
    return scheme;
}

/* A text of 1 to RULES_SECRET_MAX bytes; NULL after a problem. */
static const char *read_secret(struct rules_loader *loader, const struct rules_field *field)
{
    struct weir_bytes text;
    if (!field->value || !rules_read_text(loader, field->value, field->name, &text))
        return NULL;
    if (text.size == 0 || text.size > RULES_SECRET_MAX) {
        rules_problem(loader, field->value, "`%s` must have 1 to %d bytes", field->name,
                      RULES_SECRET_MAX);
        return NULL;
    }
    return rules_keep_text(loader, text.data, text.size);
}

/* In the rules, or in a file. */
static const char *read_password(struct rules_loader *loader, const struct rules_field *field,
                                 const struct rules_field *file)
{
    if (!file->value)
        return read_secret(loader, field);
    if (field->value) {
        rules_problem(loader, file->key, "`%s` and `%s` are the same; give one", field->name,
                      file->name);
        return NULL;
    }
    return rules_read_secret_file(loader, file->value, file->name, "a password");
}

static void load_access(struct rules_loader *loader, const struct rules_field *fields,
                        const struct scheme *scheme, struct weir_bytes url,
                        struct weir_redis_access *access)
{
    access->user = read_secret(loader, &fields[RULES_REDIS_USER]);
    access->password =
        read_password(loader, &fields[RULES_REDIS_PASSWORD], &fields[RULES_REDIS_PASSWORD_FILE]);
    access->sentinel_user = read_secret(loader, &fields[RULES_REDIS_SENTINEL_USER]);
    access->sentinel_password = read_password(loader, &fields[RULES_REDIS_SENTINEL_PASSWORD],
                                              &fields[RULES_REDIS_SENTINEL_PASSWORD_FILE]);
    bool in_url = memchr(url.data, '@', url.size);
    for (int i = RULES_REDIS_USER; i <= RULES_REDIS_SENTINEL_PASSWORD_FILE; i++) {
        if (!fields[i].value)
            continue;
        if (i <= RULES_REDIS_PASSWORD_FILE && in_url) {
            rules_problem(loader, fields[i].key, "`%s` is also in the URL; give it once",
                          fields[i].name);
        }
        if (i >= RULES_REDIS_SENTINEL_USER && scheme && !scheme->sentinel) {
            rules_problem(loader, fields[i].key,
                          "`%s` belongs to redis-sentinel://, not to %s:", fields[i].name,
                          scheme->name);
        }
    }
}

/* --- `tls` ------------------------------------------------------------------------------------ */

enum { CA, CERT, KEY, SERVER_NAME, INSECURE };

#define AT(member) RULES_AT(struct weir_redis_access, member)
static const struct rules_keyword tls_keywords[] = {
    [CA] = {"ca", RULES_FILE, .absent = "the system's",
            .doc = "PEM of the authorities that verify the server's certificate"},
    [CERT] = {"cert", RULES_FILE, .absent = "none", .doc = "PEM of weir's own certificate"},
    [KEY] = {"key", RULES_FILE, .absent = "none", .doc = "PEM of its key"},
    [SERVER_NAME] = {"server_name", RULES_TEXT, .absent = "the host of the URL",
                     .doc = "the name that the server's certificate must have"},
    [INSECURE] = {"insecure", RULES_FLAG, AT(insecure), .otherwise = "false",
                  .doc = "`true`: no certificate is verified"},
};
const struct rules_section rules_section_redis_tls = RULES_SECTION("tls", tls_keywords);

static const char *read_path(struct rules_loader *loader, const struct rules_field *field)
{
    struct weir_bytes name;
    if (!field->value || !rules_read_place(loader, field->value, field->name, &name))
        return NULL;
    if (name.size == 0)
        rules_problem(loader, field->value, "`%s` is empty", field->name);
    return rules_path_of(loader, name);
}

static void load_tls(struct rules_loader *loader, const struct rules_field *tls,
                     const struct scheme *scheme, struct weir_redis_access *access)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    if (!rules_section_load(loader, &rules_section_redis_tls, tls->value, fields, access))
        return;
    access->ca_file = read_path(loader, &fields[CA]);
    access->cert_file = read_path(loader, &fields[CERT]);
    access->key_file = read_path(loader, &fields[KEY]);
    access->server_name = read_secret(loader, &fields[SERVER_NAME]);
    if ((fields[CERT].value == NULL) != (fields[KEY].value == NULL)) {
        rules_problem(loader, fields[fields[CERT].value != NULL ? CERT : KEY].key,
                      "`cert` and `key` belong together; give both");
    }
    if (access->insecure && fields[CA].value) {
        rules_problem(loader, fields[INSECURE].key,
                      "`insecure` verifies nothing, so `ca` has no effect; give one");
    }
    if (scheme && !scheme->tls) {
        rules_problem(
            loader, tls->key,
            "`tls` belongs to rediss://, rediss-sentinel:// and rediss-cluster://, not to "
            "%s:",
            scheme->name);
    }
}

/* --- The whole -------------------------------------------------------------------------------- */

void rules_load_redis(struct rules_loader *loader, const struct rules_node *node,
                      const struct rules_field fields[RULES_REDIS_FIELDS],
                      struct weir_redis_access *access)
{
    const struct rules_field *at = &fields[RULES_REDIS_URL];
    const struct scheme *scheme = NULL;
    struct weir_bytes url = {"", 0};
    if (!at->value) {
        rules_problem(loader, node, "`%s` is missing", at->name);
    } else if (rules_read_place(loader, at->value, at->name, &url)) {
        scheme = check_url(loader, at->value, url);
        access->url = rules_keep_text(loader, url.data, url.size);
    }
    load_access(loader, fields, scheme, url, access);
    if (fields[RULES_REDIS_TLS].value)
        load_tls(loader, &fields[RULES_REDIS_TLS], scheme, access);
}

void rules_load_redis_access(struct rules_loader *loader,
                             const struct rules_field fields[RULES_REDIS_FIELDS],
                             struct weir_redis_access *access)
{
    load_access(loader, fields, NULL, (struct weir_bytes){"", 0}, access);
    if (fields[RULES_REDIS_TLS].value)
        load_tls(loader, &fields[RULES_REDIS_TLS], NULL, access);
}

bool rules_parse_prefix(struct rules_loader *loader, const struct rules_keyword *keyword,
                        const struct rules_node *node, void *field)
{
    struct weir_bytes text;
    const char **prefix = field;
    if (!rules_read_text(loader, node, keyword->name, &text))
        return false;
    bool good = text.size <= PREFIX_MAX;
    for (size_t i = 0; i < text.size; i++) {
        good &=
            text.data[i] > ' ' && text.data[i] < 0x7F && text.data[i] != '{' && text.data[i] != '}';
    }
    if (good)
        *prefix = rules_keep_text(loader, text.data, text.size);
    else
        rules_problem(loader, node,
                      "`prefix` has at most %d graphic ASCII characters, and no braces, which "
                      "choose the slot of a key",
                      PREFIX_MAX);
    return good;
}
