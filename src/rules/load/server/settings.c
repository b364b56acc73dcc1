/* SPDX-License-Identifier: Apache-2.0 */
/* see settings.h */
#include "rules/load/server/settings.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "rules/division.h"
#include "rules/load/environment.h"
#include "rules/load/fields.h"
#include "rules/load/numbers.h"
#include "rules/load/server/addresses.h"
#include "rules/load/server/redis.h"
#include "rules/load/server/sharing.h"
#include "rules/match/host.h"

/* --- `tls` of a listener ---------------------------------------------------------------------- */

#define NAMES_MAX 1000

/* A file beside the rules; NULL after a problem. Whether it is what it should be, only the server
 * can say: it reads the file at start and whenever it changes. */
static const char *read_file_name(struct rules_loader *loader, const struct rules_field *field)
{
    struct weir_bytes text;
    if (!field->value || !rules_read_place(loader, field->value, field->name, &text))
        return NULL;
    if (text.size == 0) {
        rules_problem(loader, field->value, "`%s` is empty", field->name);
        return NULL;
    }
    return rules_path_of(loader, text);
}

static void load_names(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_listener_tls *tls)
{
    struct rules_items items = rules_items_of(&node);
    if (items.count > NAMES_MAX) {
        rules_problem(loader, node, "`client_names` has more than %d entries", NAMES_MAX);
        return;
    }
    const char **names = rules_keep(loader, (items.count + 1) * sizeof(*names));
    tls->client_names = names;
    for (uint32_t i = 0; i < items.count && names; i++) {
        struct weir_bytes text;
        if (!rules_read_text(loader, items.items[i], "client_names", &text))
            continue;
        bool wild = text.size > 0 && text.data[0] == '*';
        if (text.size == 0 || (wild && (text.size < 3 || text.data[1] != '.'))) {
            rules_problem(loader, items.items[i],
                          "a client name is a name in a certificate, or `*.` and a domain");
            continue;
        }
        names[tls->client_name_count++] = rules_keep_text(loader, text.data, text.size);
    }
}

static void load_tls(struct rules_loader *loader, const struct rules_node *node,
                     struct weir_listener_tls *tls)
{
    enum { CERT, KEY, CLIENT_CA, CLIENT_NAMES, COUNT };
    struct rules_field fields[COUNT] = {{"cert", NULL, NULL},
                                        {"key", NULL, NULL},
                                        {"client_ca", NULL, NULL},
                                        {"client_names", NULL, NULL}};
    if (!rules_fields(loader, node, "tls", fields, COUNT))
        return;
    if (!fields[CERT].value || !fields[KEY].value)
        rules_problem(loader, node, "`tls` needs `cert` and `key`, files in PEM");
    tls->cert_file = read_file_name(loader, &fields[CERT]);
    tls->key_file = read_file_name(loader, &fields[KEY]);
    tls->client_ca_file = read_file_name(loader, &fields[CLIENT_CA]);
    if (!fields[CLIENT_NAMES].value)
        return;
    if (!fields[CLIENT_CA].value) {
        rules_problem(loader, fields[CLIENT_NAMES].key,
                      "`client_names` needs a `client_ca` that signs their certificates");
    }
    load_names(loader, fields[CLIENT_NAMES].value, tls);
    if (tls->client_name_count == 0) {
        rules_problem(
            loader, fields[CLIENT_NAMES].value,
            "`client_names` is empty; remove it to allow all certificates of `client_ca`");
    }
}

/* --- `server`, `state` and `headers` ---------------------------------------------------------- */

/* What the server and the table can take (server/daemon/limits.h, table/table.h): a file that is
 * found good must start. */
#define WORKERS_MAX 128
#define ADMIN_HOSTS_MAX 64
#define SPANS_MOST 90
#define SPANS_EXAMPLE 30
#define STATE_BYTES_MIN (UINT64_C(1) << 18)
#define STATE_BYTES_MAX (UINT64_C(1) << 42)
#define NS_PER_S UINT64_C(1000000000)
#define AGE_MAX_NS (366 * 86400 * NS_PER_S)

/* A port, 0 (any free one) included. */
static bool is_port(const char *text, size_t size)
{
    uint64_t port;
    return size > 0 && size <= 5 && weir_digits_parse(&port, text, size) == (int)size &&
           port <= 65535;
}

/* Where the port of "host:port" begins, behind the last colon; 0: there is none. */
static size_t port_at(struct weir_bytes text)
{
    for (size_t i = text.size; i > 0; i--)
        if (text.data[i - 1] == ':')
            return i;
    return 0;
}

bool rules_read_listen(struct rules_loader *loader, const struct rules_node *node,
                       const char **address, bool *far)
{
    struct weir_bytes text;
    struct rules_quote quote;
    *far = false;
    if (!rules_read_place(loader, node, "address", &text))
        return false;
    bool unix_path = text.size > 6 && memcmp(text.data, "unix:/", 6) == 0;
    if (unix_path && text.size - 5 > RULES_UNIX_PATH_MAX) {
        rules_problem(loader, node, "the path of a Unix socket has at most %d bytes",
                      RULES_UNIX_PATH_MAX);
        return false;
    }
    if (unix_path || weir_bytes_are(text, "off")) {
        *address = rules_keep_text(loader, text.data, text.size);
        return true;
    }
    struct weir_address parsed = {0};
    size_t port = port_at(text), host = port > 0 ? port - 1 : 0;
    bool good = port > 0 && is_port(text.data + port, text.size - port);
    bool local = good && weir_bytes_are((struct weir_bytes){text.data, host}, "localhost");
    if (good && !local && !rules_check_zone(loader, node, "listener", text))
        return false;
    if (good && !local) {
        bool brackets = host > 2 && text.data[0] == '[' && text.data[host - 1] == ']';
        good =
            weir_address_parse(&parsed, text.data + brackets, host - 2 * (size_t)brackets) == 0 &&
            (memchr(text.data, ':', host) != NULL) == brackets;
    }
    if (!good) {
        rules_problem(
            loader, node,
            "%s is not an address to listen on; allowed are `127.0.0.1:8080`, `[::1]:8080`, "
            "`unix:/run/weir/http.sock` and `off`",
            rules_quote(&quote, text.data, text.size));
        return false;
    }
    if (local) {
        char resolved[32];
        int size = snprintf(resolved, sizeof(resolved), "127.0.0.1:%.*s", (int)(text.size - port),
                            text.data + port);
        *address = rules_keep_text(loader, resolved, (size_t)size);
        return true;
    }
    struct weir_cidr loopback4 = {{4, {127}}, 8}, loopback6 = {{6, {[15] = 1}}, 128};
    *far = !weir_cidr_contains(&loopback4, &parsed) && !weir_cidr_contains(&loopback6, &parsed);
    *address = rules_keep_text(loader, text.data, text.size);
    return true;
}

/* How old a connection may become. */
static void load_age(struct rules_loader *loader, const struct rules_node *node, const char *what,
                     uint64_t *value_ns)
{
    if (node)
        rules_read_duration(loader, node, what, NS_PER_S, AGE_MAX_NS, "1s to 366d", value_ns);
}

/* Names that the admin listener goes by, besides its addresses. */
static void load_hosts(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_listener_settings *listener)
{
    struct rules_items items = rules_items_of(&node);
    if (items.count > ADMIN_HOSTS_MAX) {
        rules_problem(loader, node, "`hosts` has more than %d entries", ADMIN_HOSTS_MAX);
        return;
    }
    const char **hosts = rules_keep(loader, (items.count + 1) * sizeof(*hosts));
    listener->hosts = hosts;
    for (uint32_t i = 0; i < items.count && hosts; i++) {
        struct weir_bytes text, normal;
        char room[WEIR_HOST_MAX];
        struct weir_reason reason;
        struct rules_quote quote;
        if (!rules_read_text(loader, items.items[i], "hosts", &text))
            continue;
        if (weir_host_normalise(&normal, text, room, &reason) < 0 || normal.size == 0) {
            rules_problem(loader, items.items[i],
                          "%s is not a host; use a name such as `weir.example.com`, or an address",
                          rules_quote(&quote, text.data, text.size));
            continue;
        }
        hosts[listener->host_count++] = rules_keep_text(loader, normal.data, normal.size);
    }
}

/* The two fields that only this listener has: fields[0] and fields[1]. */
static void load_own(struct rules_loader *loader, const struct rules_field *fields, bool grpc,
                     struct weir_listener_settings *listener)
{
    if (grpc) {
        load_age(loader, fields[0].value, "max_connection_age", &listener->max_connection_age_ns);
        load_age(loader, fields[1].value, "max_connection_age_grace",
                 &listener->max_connection_age_grace_ns);
        return;
    }
    if (fields[0].value)
        load_hosts(loader, fields[0].value, listener);
    if (fields[1].value)
        rules_read_bool(loader, fields[1].value, "metrics_open", &listener->metrics_open);
}

/* A secret in the rules, or in a file. */
static void load_token(struct rules_loader *loader, const struct rules_field *inline_,
                       const struct rules_field *file, struct weir_listener_settings *listener)
{
    struct weir_bytes token;
    if (inline_->value && file->value) {
        rules_problem(loader, file->key, "`token` and `token_file` are the same; give one");
    } else if (file->value) {
        listener->token = rules_read_secret_file(loader, file->value, "token_file", "a token");
    } else if (inline_->value && rules_read_text(loader, inline_->value, "token", &token)) {
        if (token.size == 0)
            rules_problem(loader, inline_->value, "`token` is empty");
        listener->token = rules_keep_text(loader, token.data, token.size);
    }
}

static void load_listener(struct rules_loader *loader, const struct rules_field *field,
                          struct weir_listener_settings *listener)
{
    bool grpc = listener == &loader->rules->settings.grpc;
    bool admin = listener == &loader->rules->settings.admin;
    bool http = listener == &loader->rules->settings.http;
    /* The last two are of one listener alone; of http there is one. */
    enum {
        ADDRESS,
        LISTEN,
        TOKEN,
        TOKEN_FILE,
        OPEN,
        TRUSTED,
        PROXY_PROTOCOL,
        TLS,
        OWN,
        OWN_TOO,
        COUNT
    };
    struct rules_field fields[COUNT] = {
        {"address", NULL, NULL},
        {"listen", NULL, NULL},
        {"token", NULL, NULL},
        {"token_file", NULL, NULL},
        {"open", NULL, NULL},
        {"trusted", NULL, NULL},
        {"proxy_protocol", NULL, NULL},
        {"tls", NULL, NULL},
        {grpc   ? "max_connection_age"
         : http ? "hold"
                : "hosts",
         NULL, NULL},
        {grpc ? "max_connection_age_grace" : "metrics_open", NULL, NULL}};
    const struct rules_node *address = field->value;
    bool far = false;
    if (field->value->kind == RULES_MAP) {
        rules_fields(loader, field->value, "a listener", fields,
                     grpc || admin ? COUNT : OWN + http);
        address = fields[ADDRESS].value ? fields[ADDRESS].value : fields[LISTEN].value;
        if (fields[ADDRESS].value && fields[LISTEN].value) {
            rules_problem(loader, fields[LISTEN].key,
                          "`listen` and `address` are the same; give one");
        }
        if (fields[TLS].value)
            load_tls(loader, fields[TLS].value, &listener->tls);
    }
    load_token(loader, &fields[TOKEN], &fields[TOKEN_FILE], listener);
    if (fields[OPEN].value)
        rules_read_bool(loader, fields[OPEN].value, "open", &listener->open);
    if (fields[TRUSTED].value) {
        listener->trusted_set =
            rules_read_bool(loader, fields[TRUSTED].value, "trusted", &listener->trusted);
    }
    if (fields[PROXY_PROTOCOL].value) {
        rules_read_bool(loader, fields[PROXY_PROTOCOL].value, "proxy_protocol",
                        &listener->proxy_protocol);
    }
    if (http && fields[OWN].value)
        rules_read_bool(loader, fields[OWN].value, "hold", &listener->hold);
    if (!http)
        load_own(loader, &fields[OWN], grpc, listener);
    if (address && rules_read_listen(loader, address, &listener->address, &far) && far &&
        !listener->open && !fields[TOKEN].value && !fields[TOKEN_FILE].value &&
        !listener->tls.client_ca_file) {
        rules_problem(loader, address,
                      "`%s` is open to other machines: give it a `token` or a `tls.client_ca`, or "
                      "set `open: true`",
                      field->name);
    }
}

static void load_workers(struct rules_loader *loader, const struct rules_node *node)
{
    uint64_t workers = 0;
    if (node->kind == RULES_SCALAR && strcmp(node->text, "auto") == 0)
        return;
    if (rules_read_number(loader, node, "workers", 1, WORKERS_MAX, &workers))
        loader->rules->settings.workers = (uint32_t)workers;
}

/* --- `server.connections` */

#define PEER_CONNECTIONS_MAX 1000000
#define PEER_WINDOW_MAX_NS (86400 * NS_PER_S)

/* How often new connections of one address come. */
static void load_pace(struct rules_loader *loader, const struct rules_node *node,
                      struct weir_peer_settings *connections)
{
    struct weir_bytes text;
    struct weir_rate rate;
    struct weir_reason reason = {{0}};
    if (!rules_read_text(loader, node, "rate", &text))
        return;
    if (weir_rate_parse(&rate, text.data, text.size, &reason) < 0) {
        rules_problem(loader, node, "`rate`: %s", reason.text);
        return;
    }
    if (rate.kind != WEIR_RATE_COUNT || rate.count == 0 || rate.window_ns > PEER_WINDOW_MAX_NS) {
        rules_problem(loader, node,
                      "`rate` must be a number of connections in at most a day, such as `20/s` or "
                      "`20/s burst 100`");
        return;
    }
    const struct weir_limit_spec spec = {.algorithm = WEIR_GCRA,
                                         .rate = rate.count,
                                         .window_ns = rate.window_ns,
                                         .burst = rate.burst};
    if (weir_limit_init(&connections->pace, &spec, &reason) < 0)
        rules_problem(loader, node, "`rate`: %s", reason.text);
    else
        connections->paced = true;
}

static void load_connections(struct rules_loader *loader, const struct rules_node *node)
{
    enum { ADDRESS, PREFIX, RATE, COUNT };
    struct rules_field fields[COUNT] = {
        {"per_address", NULL, NULL}, {"per_prefix", NULL, NULL}, {"rate", NULL, NULL}};
    struct weir_peer_settings *connections = &loader->rules->settings.connections;
    uint32_t *numbers[] = {&connections->per_address, &connections->per_prefix};
    if (!rules_fields(loader, node, "connections", fields, COUNT))
        return;
    for (int i = ADDRESS; i <= PREFIX; i++) {
        uint64_t number = 0;
        if (fields[i].value && rules_read_number(loader, fields[i].value, fields[i].name, 1,
                                                 PEER_CONNECTIONS_MAX, &number))
            *numbers[i] = (uint32_t)number;
    }
    if (fields[RATE].value)
        load_pace(loader, fields[RATE].value, connections);
    if (connections->per_prefix && connections->per_prefix < connections->per_address)
        rules_problem(
            loader, fields[PREFIX].value,
            "`per_prefix` must be at least `per_address`, for a prefix holds the address");
}

void rules_load_server(struct rules_loader *loader, const struct rules_node *node)
{
    enum { HTTP, REDIS, GRPC, ADMIN, WORKERS, PROXIES, HEADERS, CONNECTIONS, NAT64, COUNT };
    struct rules_field fields[COUNT] = {
        {"http", NULL, NULL},    {"redis", NULL, NULL},       {"grpc", NULL, NULL},
        {"admin", NULL, NULL},   {"workers", NULL, NULL},     {"trusted_proxies", NULL, NULL},
        {"headers", NULL, NULL}, {"connections", NULL, NULL}, {"nat64", NULL, NULL}};
    struct weir_settings *settings = &loader->rules->settings;
    struct weir_listener_settings *listeners[] = {&settings->http, &settings->redis,
                                                  &settings->grpc, &settings->admin};
    if (!rules_fields(loader, node, "server", fields, COUNT))
        return;
    for (int i = HTTP; i <= ADMIN; i++)
        if (fields[i].value)
            load_listener(loader, &fields[i], listeners[i]);
    if (fields[WORKERS].value)
        load_workers(loader, fields[WORKERS].value);
    if (fields[PROXIES].value)
        rules_load_proxies(loader, fields[PROXIES].value);
    if (fields[HEADERS].value)
        rules_load_headers(loader, fields[HEADERS].value);
    if (fields[CONNECTIONS].value)
        load_connections(loader, fields[CONNECTIONS].value);
    if (fields[NAT64].value)
        rules_load_nat64(loader, fields[NAT64].value);
}

/* `mode` of a state file: three or four octal digits, of which only bits to read and write are set,
 * and those of the owner are. */
static bool parse_mode(struct weir_bytes text, uint32_t *mode)
{
    *mode = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '7')
            return false;
        *mode = *mode << 3 | (uint32_t)(text.data[i] - '0');
    }
    return (text.size == 3 || text.size == 4) && (*mode & 0600) == 0600 && (*mode & ~0666u) == 0;
}

/* `owner`, `group` and `mode` of a new state file. */
static void load_state_access(struct rules_loader *loader, const struct rules_field *fields)
{
    struct weir_settings *settings = &loader->rules->settings;
    const char **names[] = {&settings->state_owner, &settings->state_group};
    struct weir_bytes text;
    struct rules_quote quote;
    for (int i = 0; i < 2; i++)
        if (fields[i].value && rules_read_text(loader, fields[i].value, fields[i].name, &text)) {
            if (text.size == 0)
                rules_problem(loader, fields[i].value, "`%s` is empty; remove it", fields[i].name);
            *names[i] = rules_keep_text(loader, text.data, text.size);
        }
    if (fields[2].value && rules_read_text(loader, fields[2].value, "mode", &text) &&
        !parse_mode(text, &settings->state_mode))
        rules_problem(loader, fields[2].value,
                      "`mode` must be octal digits for reading and writing, such as \"0660\" or "
                      "\"0600\", not %s",
                      rules_quote(&quote, text.data, text.size));
}

void rules_load_state(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_field fields[] = {{"file", NULL, NULL},  {"size", NULL, NULL},
                                   {"spans", NULL, NULL}, {"owner", NULL, NULL},
                                   {"group", NULL, NULL}, {"mode", NULL, NULL}};
    struct weir_settings *settings = &loader->rules->settings;
    struct weir_bytes text;
    struct weir_reason reason;
    struct rules_quote quote;
    if (!rules_fields(loader, node, "state", fields, 6))
        return;
    load_state_access(loader, &fields[3]);
    if (fields[2].value) {
        rules_read_percent(loader, fields[2].value, "spans", 1, SPANS_MOST, SPANS_EXAMPLE,
                           &settings->state_spans);
    }
    if (fields[0].value && rules_read_place(loader, fields[0].value, "file", &text)) {
        if (text.size == 0)
            rules_problem(loader, fields[0].value, "`file` is empty; remove it for private memory");
        settings->state_file = rules_moved_path_of(loader, fields[0].value, "state.file", text);
    }
    if (!fields[1].value || !rules_read_text(loader, fields[1].value, "size", &text))
        return;
    if (weir_size_parse(&settings->state_bytes, text.data, text.size, &reason) < 0) {
        rules_problem(loader, fields[1].value, "%s", reason.text);
    } else if (settings->state_bytes < STATE_BYTES_MIN || settings->state_bytes > STATE_BYTES_MAX) {
        rules_problem(loader, fields[1].value, "`size` must be 256KiB to 4TiB, not %s",
                      rules_quote(&quote, text.data, text.size));
    }
}

void rules_load_headers(struct rules_loader *loader, const struct rules_node *node)
{
    static const char *const names[] = {"draft",   "draft-03", "x-epoch",
                                        "x-delta", "cost",     "standing"};
    static const uint32_t bits[] = {WEIR_HEADERS_DRAFT,   WEIR_HEADERS_DRAFT_03,
                                    WEIR_HEADERS_X_EPOCH, WEIR_HEADERS_X_DELTA,
                                    WEIR_HEADERS_COST,    WEIR_HEADERS_STANDING};
    struct rules_items items = rules_items_of(&node);
    loader->rules->settings.headers = 0;
    if (loader->headers_given)
        rules_problem(loader, node, "`headers` is given twice, in the file and in `server`");
    loader->headers_given = true;
    for (uint32_t i = 0; i < items.count; i++) {
        int choice = rules_read_choice(loader, items.items[i], "headers", names, 6);
        if (choice >= 0)
            loader->rules->settings.headers |= bits[choice];
    }
    uint32_t both = WEIR_HEADERS_X_EPOCH | WEIR_HEADERS_X_DELTA;
    if ((loader->rules->settings.headers & both) == both)
        rules_problem(loader, node, "x-epoch and x-delta use the same fields; give one");
}

/* --- `store` and `idempotency` ---------------------------------------------------------------- */

#define NS_PER_MS UINT64_C(1000000)

#define PREFIX_DEFAULT "weir:"

/* Behind those that say which Redis. */
enum redis_field {
    REDIS_MODE = RULES_REDIS_FIELDS,
    REDIS_PREFIX,
    REDIS_NODES,
    REDIS_LEASE,
    REDIS_REMEMBER,
    REDIS_FIELDS,
};

static struct weir_store_settings *settings_of(struct rules_loader *loader)
{
    return &loader->rules->settings.store;
}

static void load_nodes(struct rules_loader *loader, const struct rules_field *field)
{
    uint64_t nodes = 0;
    if (settings_of(loader)->nodes != 0)
        rules_problem(loader, field->key, "`nodes` is given twice, in `store` and in `redis`");
    else if (rules_read_number(loader, field->value, "nodes", 1, WEIR_NODES_MAX, &nodes))
        settings_of(loader)->nodes = (uint32_t)nodes;
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
void rules_load_store_redis(struct rules_loader *loader, const struct rules_field *redis)
{
    static const char *const modes[] = {"exact", "leased"};
    struct weir_store_settings *store = settings_of(loader);
    struct rules_field fields[REDIS_FIELDS] = {
        [REDIS_MODE] = {"mode", NULL, NULL},         [REDIS_PREFIX] = {"prefix", NULL, NULL},
        [REDIS_NODES] = {"nodes", NULL, NULL},       [REDIS_LEASE] = {"lease", NULL, NULL},
        [REDIS_REMEMBER] = {"remember", NULL, NULL},
    };
    bool mapping = redis->value->kind == RULES_MAP;
    rules_name_redis(fields, mapping ? "url" : "redis");
    if (mapping)
        rules_fields(loader, redis->value, "redis", fields, REDIS_FIELDS);
    else
        fields[RULES_REDIS_URL].value = redis->value;
    if (fields[REDIS_MODE].value)
        store->leased = rules_read_choice(loader, fields[REDIS_MODE].value, "mode", modes, 2) == 1;
    if (fields[REDIS_PREFIX].value)
        rules_read_prefix(loader, fields[REDIS_PREFIX].value, &store->prefix);
    if (fields[REDIS_NODES].value)
        load_nodes(loader, &fields[REDIS_NODES]);
    rules_load_redis(loader, redis->value, fields, &store->redis);
    if (fields[REDIS_LEASE].value) {
        rules_read_duration(loader, fields[REDIS_LEASE].value, "lease", 20 * NS_PER_MS, NS_PER_S,
                            "20ms to 1s", &store->lease_ns);
    }
    if (fields[REDIS_REMEMBER].value)
        load_remember(loader, fields[REDIS_REMEMBER].value);
}

void rules_store_defaults(struct rules_loader *loader)
{
    struct weir_store_settings *store = settings_of(loader);
    store->prefix = PREFIX_DEFAULT;
    store->lease_ns = NS_PER_S;
    store->remember_ns = 100 * NS_PER_MS;
    store->deadline_ns = 20 * NS_PER_MS;
}

void rules_load_store(struct rules_loader *loader, const struct rules_node *node, bool regions)
{
    enum { REDIS, NODES, DEADLINE, ON_STORE_ERROR, COUNT };
    struct rules_field fields[COUNT] = {{"redis", NULL, NULL},
                                        {"nodes", NULL, NULL},
                                        {"deadline", NULL, NULL},
                                        {"on_store_error", NULL, NULL}};
    struct weir_store_settings *store = settings_of(loader);
    rules_store_defaults(loader);
    if (!rules_fields(loader, node, "store", fields, COUNT))
        return;
    if (fields[NODES].value)
        load_nodes(loader, &fields[NODES]);
    if (fields[DEADLINE].value) {
        rules_read_duration(loader, fields[DEADLINE].value, "deadline", NS_PER_MS, 10 * NS_PER_S,
                            "1ms to 10s", &store->deadline_ns);
    }
    if (fields[ON_STORE_ERROR].value)
        store->on_store_error = rules_read_failure(loader, fields[ON_STORE_ERROR].value);
    if (regions) {
        if (fields[REDIS].value)
            rules_problem(loader, fields[REDIS].key,
                          "with the section `regions`, each region has its `redis` there; remove "
                          "it here");
        return;
    }
    if (!fields[REDIS].value) {
        rules_problem(loader, node,
                      "`redis` is missing; without `store`, states are in this machine's memory");
        return;
    }
    loader->rules->shared = true;
    loader->redis = fields[REDIS].key;
    rules_load_store_redis(loader, &fields[REDIS]);
}

void rules_load_idempotency(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_field life = {"life", NULL, NULL};
    if (rules_fields(loader, node, "idempotency", &life, 1) && life.value) {
        rules_read_duration(loader, life.value, "life", NS_PER_S, 30 * 86400 * NS_PER_S,
                            "1s to 30d", &loader->rules->settings.idempotency_ns);
    }
}

/* --- `webhook` -------------------------------------------------------------------------------- */

#define TIMEOUT_NS (5 * NS_PER_S)
#define TIMEOUT_MIN_NS (NS_PER_S / 10)
#define TIMEOUT_MAX_NS (30 * NS_PER_S) /* what the specification says a receiver may take */
#define URL_MAX 2048
#define BASE64_MAX 88 /* of 64 bytes */

enum webhook_field {
    WEBHOOK_URL,
    WEBHOOK_SECRET,
    WEBHOOK_SECRET_FILE,
    WEBHOOK_TIMEOUT,
    WEBHOOK_CA,
    WEBHOOK_FIELDS,
};

/* A URL may hold a password: it is never quoted. */
static void load_url(struct rules_loader *loader, const struct rules_node *node,
                     struct weir_webhook_settings *webhook)
{
    static const char *const schemes[] = {"http://", "https://"};
    struct weir_bytes url;
    bool plain = true, good = false;
    if (!rules_read_place(loader, node, "url", &url))
        return;
    for (size_t i = 0; i < url.size; i++)
        plain = plain && url.data[i] > ' ' && url.data[i] < 0x7f;
    for (int i = 0; i < 2; i++) {
        size_t size = strlen(schemes[i]);
        good = good || (url.size > size && memcmp(url.data, schemes[i], size) == 0 &&
                        !strchr("/?#:@", url.data[size]));
    }
    if (!plain || !good || url.size > URL_MAX) {
        rules_problem(loader, node,
                      "the URL of a webhook begins with https:// or http:// and a host, and has at "
                      "most %d bytes of plain ASCII",
                      URL_MAX);
        return;
    }
    webhook->url = rules_keep_text(loader, url.data, url.size);
}

/* False: it is no base64 of the right length. */
static bool decode(const char *text, struct weir_webhook_secret *secret)
{
    static const char prefix[] = "whsec_";
    unsigned char bytes[BASE64_MAX];
    size_t skip = strncmp(text, prefix, sizeof(prefix) - 1) == 0 ? sizeof(prefix) - 1 : 0;
    size_t size = strlen(text + skip), padding = 0;
    if (size == 0 || size > BASE64_MAX || size % 4 != 0)
        return false;
    while (padding < 2 && text[skip + size - 1 - padding] == '=')
        padding++;
    if (strspn(text + skip, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") !=
        size - padding)
        return false;
    int got = EVP_DecodeBlock(bytes, (const unsigned char *)text + skip, (int)size);
    size_t count = got < 0 ? 0 : (size_t)got - padding;
    if (count < WEIR_WEBHOOK_SECRET_MIN || count > WEIR_WEBHOOK_SECRET_MAX)
        return false;
    memcpy(secret->bytes, bytes, count);
    secret->size = (uint8_t)count;
    return true;
}

static const char *read_secret(struct rules_loader *loader, const struct rules_node *node,
                               bool file)
{
    struct weir_bytes text;
    if (file)
        return rules_read_secret_file(loader, node, "secret_file", "a secret");
    return rules_read_text(loader, node, "secret", &text) ? text.data : NULL;
}

static void load_secrets(struct rules_loader *loader, const struct rules_field *field, bool file,
                         struct weir_webhook_settings *webhook)
{
    struct rules_items items = rules_items_of(&field->value);
    if (field->value->kind == RULES_MAP || items.count == 0 ||
        items.count > WEIR_WEBHOOK_SECRETS_MAX) {
        rules_problem(loader, field->value, "`%s` must be one secret%s, or two in a list",
                      field->name, file ? "'s file" : "");
        return;
    }
    for (uint32_t i = 0; i < items.count; i++) {
        const char *text = read_secret(loader, items.items[i], file);
        if (text && !decode(text, &webhook->secrets[webhook->secret_count++])) {
            rules_problem(loader, items.items[i],
                          "a webhook's secret is base64 of %d to %d bytes, as `openssl rand "
                          "-base64 32` prints it, with or without `whsec_` before it",
                          WEIR_WEBHOOK_SECRET_MIN, WEIR_WEBHOOK_SECRET_MAX);
        }
    }
}

void rules_load_webhook(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_webhook_settings *webhook = &loader->rules->settings.webhook;
    struct rules_field fields[WEBHOOK_FIELDS] = {
        [WEBHOOK_URL] = {"url", NULL, NULL},
        [WEBHOOK_SECRET] = {"secret", NULL, NULL},
        [WEBHOOK_SECRET_FILE] = {"secret_file", NULL, NULL},
        [WEBHOOK_TIMEOUT] = {"timeout", NULL, NULL},
        [WEBHOOK_CA] = {"ca", NULL, NULL},
    };
    const struct rules_field *secret = &fields[WEBHOOK_SECRET],
                             *file = &fields[WEBHOOK_SECRET_FILE];
    struct weir_bytes ca;
    if (!rules_fields(loader, node, "webhook", fields, WEBHOOK_FIELDS))
        return;
    webhook->timeout_ns = TIMEOUT_NS;
    if (fields[WEBHOOK_URL].value)
        load_url(loader, fields[WEBHOOK_URL].value, webhook);
    else
        rules_problem(loader, node, "`webhook` needs `url`, where warnings are sent to");
    if (secret->value && file->value) {
        rules_problem(loader, file->key, "`secret` and `secret_file` are the same; give one");
    } else if (!secret->value && !file->value) {
        rules_problem(loader, node,
                      "`webhook` needs `secret` or `secret_file`: receivers verify the signature "
                      "of a message");
    } else {
        webhook->secret_inline = secret->value;
        load_secrets(loader, file->value ? file : secret, file->value, webhook);
    }
    if (fields[WEBHOOK_TIMEOUT].value) {
        rules_read_duration(loader, fields[WEBHOOK_TIMEOUT].value, "timeout", TIMEOUT_MIN_NS,
                            TIMEOUT_MAX_NS, "100ms to 30s", &webhook->timeout_ns);
    }
    if (fields[WEBHOOK_CA].value && rules_read_place(loader, fields[WEBHOOK_CA].value, "ca", &ca))
        webhook->ca_file = rules_path_of(loader, ca);
}
