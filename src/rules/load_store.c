/* `store` and `idempotency`; see loader.h */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rules/division.h"
#include "rules/loader.h"

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

#define PREFIX_DEFAULT "weir:"
#define PREFIX_MAX 64  /* keys of hundreds of bytes are slower than those of tens */
#define SECRET_MAX 512 /* what the client's URL can hold: store/redis/url.h */

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

enum redis_field {
    REDIS_URL,
    REDIS_MODE,
    REDIS_PREFIX,
    REDIS_NODES,
    REDIS_USER,
    REDIS_PASSWORD,
    REDIS_PASSWORD_FILE,
    REDIS_SENTINEL_USER,
    REDIS_SENTINEL_PASSWORD,
    REDIS_TLS,
    REDIS_LEASE,
    REDIS_REMEMBER,
    REDIS_FIELDS,
};

static struct weir_store_settings *settings_of(struct rules_loader *loader)
{
    return &loader->rules->settings.store;
}

/* The scheme of a URL; NULL after a problem. Here only what is wrong at a glance is found; what the
 * client makes of the rest is its own business. A URL may hold a password: it is never quoted. */
static const struct scheme *check_url(struct rules_loader *loader, const struct rules_node *node,
                                      struct weir_bytes url)
{
    const char *names[SCHEME_COUNT];
    struct rules_quote quote;
    const char *colon = memchr(url.data, ':', url.size);
    size_t size = colon != NULL ? (size_t)(colon - url.data) : 0;
    const struct scheme *scheme = NULL;
    for (size_t i = 0; i < SCHEME_COUNT; i++) {
        names[i] = schemes[i].name;
        if (rules_text_is((struct weir_bytes){url.data, size}, names[i])) {
            scheme = &schemes[i];
        }
    }
    if (scheme == NULL) {
        bool likely = size > 0 && size < 20; /* else it may be a secret */
        const char *nearest = likely ? rules_nearest(url.data, size, names, SCHEME_COUNT) : NULL;
        rules_problem(
            loader, node,
            "the URL of Redis begins with redis://, rediss://, unix:/, redis-sentinel://, "
            "rediss-sentinel://, redis-cluster:// or rediss-cluster://%s%s%s%s%s",
            likely ? ", not " : "", likely ? rules_quote(&quote, url.data, size) : "",
            nearest != NULL ? "; did you mean `" : "", nearest != NULL ? nearest : "",
            nearest != NULL ? "`?" : "");
        return NULL;
    }
    struct weir_bytes rest = {colon + 1, url.size - size - 1};
    bool path = strcmp(scheme->name, "unix") == 0;
    bool good = path ? rest.size > 1 && rest.data[0] == '/'
                     : rest.size > 2 && memcmp(rest.data, "//", 2) == 0 && rest.data[2] != '/';
    if (!good) {
        rules_problem(loader, node, "the URL of Redis names no %s; as in `%s`",
                      path ? "socket" : "host",
                      path ? "unix:/run/redis/redis.sock" : "redis://127.0.0.1:6379/0");
        return NULL;
    }
    return scheme;
}

/* A text of 1 to SECRET_MAX bytes; NULL after a problem. */
static const char *read_secret(struct rules_loader *loader, const struct rules_field *field)
{
    struct weir_bytes text;
    if (field->value == NULL || !rules_read_text(loader, field->value, field->name, &text)) {
        return NULL;
    }
    if (text.size == 0 || text.size > SECRET_MAX) {
        rules_problem(loader, field->value, "`%s` must have 1 to %d bytes", field->name,
                      SECRET_MAX);
        return NULL;
    }
    return rules_keep_text(loader, text.data, text.size);
}

/* The password that a file holds, without the end of its line. */
static const char *read_password_file(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_bytes name;
    char secret[SECRET_MAX + 3];
    if (!rules_read_text(loader, node, "password_file", &name)) {
        return NULL;
    }
    const char *path = rules_path_of(loader, name);
    if (path == NULL) {
        return NULL;
    }
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file >= 0 ? read(file, secret, sizeof(secret)) : -1;
    int error = errno;
    if (file >= 0) {
        close(file);
    }
    if (got < 0) {
        rules_problem(loader, node, "cannot read %s: %s", path, strerror(error));
        return NULL;
    }
    size_t size = (size_t)got;
    size -= size > 0 && secret[size - 1] == '\n';
    size -= size > 0 && size < (size_t)got && secret[size - 1] == '\r';
    if (size == 0 || size > SECRET_MAX || memchr(secret, '\0', size) != NULL ||
        memchr(secret, '\n', size) != NULL) {
        rules_problem(loader, node, "%s must hold a password of 1 to %d bytes on one line", path,
                      SECRET_MAX);
        return NULL;
    }
    const char *kept = rules_keep_text(loader, secret, size);
    memset(secret, 0, sizeof(secret));
    return kept;
}

static void load_access(struct rules_loader *loader, const struct rules_field *fields,
                        const struct scheme *scheme, struct weir_bytes url)
{
    struct weir_store_settings *store = settings_of(loader);
    const struct rules_field *file = &fields[REDIS_PASSWORD_FILE];
    store->redis.user = read_secret(loader, &fields[REDIS_USER]);
    store->redis.password = read_secret(loader, &fields[REDIS_PASSWORD]);
    if (file->value != NULL && fields[REDIS_PASSWORD].value != NULL) {
        rules_problem(loader, file->key, "`password` and `password_file` are the same; give one");
    } else if (file->value != NULL) {
        store->redis.password = read_password_file(loader, file->value);
    }
    store->redis.sentinel_user = read_secret(loader, &fields[REDIS_SENTINEL_USER]);
    store->redis.sentinel_password = read_secret(loader, &fields[REDIS_SENTINEL_PASSWORD]);
    bool in_url = memchr(url.data, '@', url.size) != NULL;
    for (int i = REDIS_USER; i <= REDIS_SENTINEL_PASSWORD; i++) {
        if (fields[i].value == NULL) {
            continue;
        }
        if (i <= REDIS_PASSWORD_FILE && in_url) {
            rules_problem(loader, fields[i].key, "`%s` stands beside a URL that has one",
                          fields[i].name);
        }
        if (i >= REDIS_SENTINEL_USER && scheme != NULL && !scheme->sentinel) {
            rules_problem(loader, fields[i].key,
                          "`%s` belongs to redis-sentinel://, not to %s:", fields[i].name,
                          scheme->name);
        }
    }
}

static const char *read_path(struct rules_loader *loader, const struct rules_field *field)
{
    struct weir_bytes name;
    if (field->value == NULL || !rules_read_text(loader, field->value, field->name, &name)) {
        return NULL;
    }
    if (name.size == 0) {
        rules_problem(loader, field->value, "`%s` is empty", field->name);
    }
    return rules_path_of(loader, name);
}

static void load_tls(struct rules_loader *loader, const struct rules_field *tls,
                     const struct scheme *scheme)
{
    enum { CA, CERT, KEY, SERVER_NAME, INSECURE, COUNT };
    struct rules_field fields[COUNT] = {{"ca", NULL, NULL},
                                        {"cert", NULL, NULL},
                                        {"key", NULL, NULL},
                                        {"server_name", NULL, NULL},
                                        {"insecure", NULL, NULL}};
    struct weir_store_settings *store = settings_of(loader);
    if (!rules_fields(loader, tls->value, "tls", fields, COUNT)) {
        return;
    }
    store->redis.ca_file = read_path(loader, &fields[CA]);
    store->redis.cert_file = read_path(loader, &fields[CERT]);
    store->redis.key_file = read_path(loader, &fields[KEY]);
    store->redis.server_name = read_secret(loader, &fields[SERVER_NAME]);
    if (fields[INSECURE].value != NULL) {
        rules_read_bool(loader, fields[INSECURE].value, "insecure", &store->redis.insecure);
    }
    if ((fields[CERT].value == NULL) != (fields[KEY].value == NULL)) {
        rules_problem(loader, fields[fields[CERT].value != NULL ? CERT : KEY].key,
                      "`cert` and `key` belong together; give both");
    }
    if (store->redis.insecure && fields[CA].value != NULL) {
        rules_problem(loader, fields[INSECURE].key,
                      "`insecure` verifies nothing, so `ca` has no use; give one");
    }
    if (scheme != NULL && !scheme->tls) {
        rules_problem(
            loader, tls->key,
            "`tls` belongs to rediss://, rediss-sentinel:// and rediss-cluster://, not to "
            "%s:",
            scheme->name);
    }
}

static void load_prefix(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_bytes text;
    if (!rules_read_text(loader, node, "prefix", &text)) {
        return;
    }
    bool good = text.size <= PREFIX_MAX;
    for (size_t i = 0; i < text.size; i++) {
        good &=
            text.data[i] > ' ' && text.data[i] < 0x7F && text.data[i] != '{' && text.data[i] != '}';
    }
    if (!good) {
        rules_problem(loader, node,
                      "`prefix` has at most %d graphic ASCII characters, and no braces, which "
                      "choose the slot of a key",
                      PREFIX_MAX);
        return;
    }
    settings_of(loader)->prefix = rules_keep_text(loader, text.data, text.size);
}

static void load_nodes(struct rules_loader *loader, const struct rules_field *field)
{
    uint64_t nodes = 0;
    if (settings_of(loader)->nodes != 0) {
        rules_problem(loader, field->key, "`nodes` is given twice, in `store` and in `redis`");
    } else if (rules_read_number(loader, field->value, "nodes", 1, WEIR_NODES_MAX, &nodes)) {
        settings_of(loader)->nodes = (uint32_t)nodes;
    }
}

/* A denial of no age is never found again. */
#define REMEMBER_OFF_NS 1

static void load_remember(struct rules_loader *loader, const struct rules_node *node)
{
    if (node->kind == RULES_SCALAR && strcmp(node->text, "off") == 0) {
        settings_of(loader)->remember_ns = REMEMBER_OFF_NS;
        return;
    }
    rules_read_duration(loader, node, "remember", NS_PER_MS, 100 * NS_PER_MS,
                        "1ms to 100ms, or off", &settings_of(loader)->remember_ns);
}

/* The mapping of `redis`, or its short form, the URL alone. */
static void load_redis(struct rules_loader *loader, const struct rules_field *redis)
{
    static const char *const modes[] = {"exact", "leased"};
    static const char *const names[REDIS_FIELDS] = {
        "url",           "mode",          "prefix",
        "nodes",         "user",          "password",
        "password_file", "sentinel_user", "sentinel_password",
        "tls",           "lease",         "remember",
    };
    struct weir_store_settings *store = settings_of(loader);
    struct rules_field fields[REDIS_FIELDS];
    struct weir_bytes url = {"", 0};
    for (int i = 0; i < REDIS_FIELDS; i++) {
        fields[i] = (struct rules_field){names[i], NULL, NULL};
    }
    if (redis->value->kind != RULES_MAP) {
        fields[REDIS_URL].value = redis->value;
    } else {
        rules_fields(loader, redis->value, "redis", fields, REDIS_FIELDS);
    }
    const struct scheme *scheme = NULL;
    if (fields[REDIS_URL].value == NULL) {
        rules_problem(loader, redis->value, "`url` is missing");
    } else if (rules_read_text(loader, fields[REDIS_URL].value,
                               redis->value->kind != RULES_MAP ? "redis" : "url", &url)) {
        scheme = check_url(loader, fields[REDIS_URL].value, url);
        store->redis.url = rules_keep_text(loader, url.data, url.size);
    }
    if (fields[REDIS_MODE].value != NULL) {
        store->leased = rules_read_choice(loader, fields[REDIS_MODE].value, "mode", modes, 2) == 1;
    }
    if (fields[REDIS_PREFIX].value != NULL) {
        load_prefix(loader, fields[REDIS_PREFIX].value);
    }
    if (fields[REDIS_NODES].value != NULL) {
        load_nodes(loader, &fields[REDIS_NODES]);
    }
    load_access(loader, fields, scheme, url);
    if (fields[REDIS_TLS].value != NULL) {
        load_tls(loader, &fields[REDIS_TLS], scheme);
    }
    if (fields[REDIS_LEASE].value != NULL) {
        rules_read_duration(loader, fields[REDIS_LEASE].value, "lease", 20 * NS_PER_MS, NS_PER_S,
                            "20ms to 1s", &store->lease_ns);
    }
    if (fields[REDIS_REMEMBER].value != NULL) {
        load_remember(loader, fields[REDIS_REMEMBER].value);
    }
}

void rules_load_store(struct rules_loader *loader, const struct rules_node *node)
{
    enum { REDIS, NODES, DEADLINE, ON_STORE_ERROR, COUNT };
    struct rules_field fields[COUNT] = {{"redis", NULL, NULL},
                                        {"nodes", NULL, NULL},
                                        {"deadline", NULL, NULL},
                                        {"on_store_error", NULL, NULL}};
    struct weir_store_settings *store = settings_of(loader);
    store->prefix = PREFIX_DEFAULT;
    store->lease_ns = NS_PER_S;
    store->remember_ns = 100 * NS_PER_MS;
    store->deadline_ns = 20 * NS_PER_MS;
    if (!rules_fields(loader, node, "store", fields, COUNT)) {
        return;
    }
    if (fields[NODES].value != NULL) {
        load_nodes(loader, &fields[NODES]);
    }
    if (fields[DEADLINE].value != NULL) {
        rules_read_duration(loader, fields[DEADLINE].value, "deadline", NS_PER_MS, 10 * NS_PER_S,
                            "1ms to 10s", &store->deadline_ns);
    }
    if (fields[ON_STORE_ERROR].value != NULL) {
        store->on_store_error = rules_read_failure(loader, fields[ON_STORE_ERROR].value);
    }
    if (fields[REDIS].value == NULL) {
        rules_problem(loader, node,
                      "`redis` is missing; without `store`, states are in this machine's memory");
        return;
    }
    loader->rules->shared = true;
    loader->redis = fields[REDIS].key;
    load_redis(loader, &fields[REDIS]);
}

void rules_load_idempotency(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_field life = {"life", NULL, NULL};
    if (rules_fields(loader, node, "idempotency", &life, 1) && life.value != NULL) {
        rules_read_duration(loader, life.value, "life", NS_PER_S, 30 * 86400 * NS_PER_S,
                            "1s to 30d", &loader->rules->settings.idempotency_ns);
    }
}
