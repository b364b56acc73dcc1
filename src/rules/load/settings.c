/* SPDX-License-Identifier: Apache-2.0 */
/* `server`, `state` and `headers`; see loader.h */
#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "rules/load/loader.h"
#include "rules/match/path.h"

/* What the server and the table can take (server/daemon/limits.h, table/table.h): a file that is
 * found good must start. */
#define WORKERS_MAX 128
#define PROXIES_MAX 10000 /* all prefixes of a large content network */
#define ADMIN_HOSTS_MAX 64
#define SPANS_MOST 90
#define SPANS_EXAMPLE 30
#define STATE_BYTES_MIN (UINT64_C(1) << 18)
#define STATE_BYTES_MAX (UINT64_C(1) << 42)
#define NS_PER_S UINT64_C(1000000000)
#define AGE_MAX_NS (366 * 86400 * NS_PER_S)
#define UNIX_PATH_MAX 107 /* sun_path of struct sockaddr_un, less its NUL */

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

/* "127.0.0.1:8080", "[::1]:8080", "localhost:8080", "unix:/path", "off". *address is the address as
 * the server takes it, *open whether others than this machine can reach it. */
static bool check_address(struct rules_loader *loader, const struct rules_node *node,
                          const char **address, bool *far)
{
    struct weir_bytes text;
    struct rules_quote quote;
    *far = false;
    if (!rules_read_text(loader, node, "address", &text))
        return false;
    bool unix_path = text.size > 6 && memcmp(text.data, "unix:/", 6) == 0;
    if (unix_path && text.size - 5 > UNIX_PATH_MAX) {
        rules_problem(loader, node, "the path of a Unix socket has at most %d bytes",
                      UNIX_PATH_MAX);
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
    if (good && !local) {
        bool brackets = host > 2 && text.data[0] == '[' && text.data[host - 1] == ']';
        good =
            weir_address_parse(&parsed, text.data + brackets, host - 2 * (size_t)brackets) == 0 &&
            (memchr(text.data, ':', host) != NULL) == brackets;
    }
    if (!good) {
        rules_problem(loader, node,
                      "%s is no address to listen on; allowed are `127.0.0.1:8080`, `[::1]:8080`, "
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
    if (node != NULL)
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
    for (uint32_t i = 0; i < items.count && hosts != NULL; i++) {
        struct weir_bytes text, normal;
        char room[WEIR_HOST_MAX];
        struct weir_reason reason;
        struct rules_quote quote;
        if (!rules_read_text(loader, items.items[i], "hosts", &text))
            continue;
        if (weir_host_normalise(&normal, text, room, &reason) < 0 || normal.size == 0) {
            rules_problem(loader, items.items[i],
                          "%s is no host; allowed are names as in "
                          "`weir.example.com`, and addresses",
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
    if (fields[0].value != NULL)
        load_hosts(loader, fields[0].value, listener);
    if (fields[1].value != NULL)
        rules_read_bool(loader, fields[1].value, "metrics_open", &listener->metrics_open);
}

static void load_listener(struct rules_loader *loader, const struct rules_field *field,
                          struct weir_listener_settings *listener)
{
    bool grpc = listener == &loader->rules->settings.grpc;
    bool admin = listener == &loader->rules->settings.admin;
    /* The last two are of one listener alone. */
    enum { ADDRESS, LISTEN, TOKEN, OPEN, TRUSTED, PROXY_PROTOCOL, TLS, OWN, OWN_TOO, COUNT };
    struct rules_field fields[COUNT] = {
        {"address", NULL, NULL},
        {"listen", NULL, NULL},
        {"token", NULL, NULL},
        {"open", NULL, NULL},
        {"trusted", NULL, NULL},
        {"proxy_protocol", NULL, NULL},
        {"tls", NULL, NULL},
        {grpc ? "max_connection_age" : "hosts", NULL, NULL},
        {grpc ? "max_connection_age_grace" : "metrics_open", NULL, NULL}};
    const struct rules_node *address = field->value;
    struct weir_bytes token;
    bool far = false;
    if (field->value->kind == RULES_MAP) {
        rules_fields(loader, field->value, "a listener", fields, grpc || admin ? COUNT : OWN);
        address = fields[ADDRESS].value != NULL ? fields[ADDRESS].value : fields[LISTEN].value;
        if (fields[ADDRESS].value != NULL && fields[LISTEN].value != NULL) {
            rules_problem(loader, fields[LISTEN].key,
                          "`listen` and `address` are the same; give one");
        }
        if (fields[TLS].value != NULL)
            rules_load_tls(loader, fields[TLS].value, &listener->tls);
    }
    if (fields[TOKEN].value != NULL &&
        rules_read_text(loader, fields[TOKEN].value, "token", &token)) {
        if (token.size == 0)
            rules_problem(loader, fields[TOKEN].value, "`token` is empty");
        listener->token = rules_keep_text(loader, token.data, token.size);
    }
    if (fields[OPEN].value != NULL)
        rules_read_bool(loader, fields[OPEN].value, "open", &listener->open);
    if (fields[TRUSTED].value != NULL) {
        listener->trusted_set =
            rules_read_bool(loader, fields[TRUSTED].value, "trusted", &listener->trusted);
    }
    if (fields[PROXY_PROTOCOL].value != NULL) {
        rules_read_bool(loader, fields[PROXY_PROTOCOL].value, "proxy_protocol",
                        &listener->proxy_protocol);
    }
    load_own(loader, &fields[OWN], grpc, listener);
    if (address != NULL && check_address(loader, address, &listener->address, &far) && far &&
        !listener->open && fields[TOKEN].value == NULL && listener->tls.client_ca_file == NULL) {
        rules_problem(loader, address,
                      "`%s` listens beyond this machine: give it a `token` or a `tls.client_ca`, "
                      "or say `open: true`",
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

static void load_proxies(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_settings *settings = &loader->rules->settings;
    struct rules_items items = rules_items_of(&node);
    if (items.count > PROXIES_MAX) {
        rules_problem(loader, node, "`trusted_proxies` has more than %d entries", PROXIES_MAX);
        return;
    }
    struct weir_cidr *proxies = rules_keep(loader, (items.count + 1) * sizeof(*proxies));
    settings->trusted_proxies = proxies;
    settings->trusted_proxy_count = 0;
    settings->trust_unix = false;
    for (uint32_t i = 0; i < items.count && proxies != NULL; i++) {
        struct weir_bytes text;
        struct rules_quote quote;
        if (!rules_read_text(loader, items.items[i], "trusted_proxies", &text))
            continue;
        if (weir_bytes_are(text, "unix")) {
            settings->trust_unix = true;
        } else if (weir_cidr_parse(&proxies[settings->trusted_proxy_count], text.data, text.size) <
                   0) {
            rules_problem(loader, items.items[i],
                          "trusted proxy %s is no address, no prefix as in `10.0.0.0/8`, and not "
                          "`unix`",
                          rules_quote(&quote, text.data, text.size));
        } else {
            settings->trusted_proxy_count++;
        }
    }
}

void rules_load_server(struct rules_loader *loader, const struct rules_node *node)
{
    enum { HTTP, REDIS, GRPC, ADMIN, WORKERS, PROXIES, HEADERS, COUNT };
    struct rules_field fields[COUNT] = {{"http", NULL, NULL},    {"redis", NULL, NULL},
                                        {"grpc", NULL, NULL},    {"admin", NULL, NULL},
                                        {"workers", NULL, NULL}, {"trusted_proxies", NULL, NULL},
                                        {"headers", NULL, NULL}};
    struct weir_settings *settings = &loader->rules->settings;
    struct weir_listener_settings *listeners[] = {&settings->http, &settings->redis,
                                                  &settings->grpc, &settings->admin};
    if (!rules_fields(loader, node, "server", fields, COUNT))
        return;
    for (int i = HTTP; i <= ADMIN; i++)
        if (fields[i].value != NULL)
            load_listener(loader, &fields[i], listeners[i]);
    if (fields[WORKERS].value != NULL)
        load_workers(loader, fields[WORKERS].value);
    if (fields[PROXIES].value != NULL)
        load_proxies(loader, fields[PROXIES].value);
    if (fields[HEADERS].value != NULL)
        rules_load_headers(loader, fields[HEADERS].value);
}

void rules_load_state(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_field fields[] = {
        {"file", NULL, NULL}, {"size", NULL, NULL}, {"spans", NULL, NULL}};
    struct weir_settings *settings = &loader->rules->settings;
    struct weir_bytes text;
    struct weir_reason reason;
    struct rules_quote quote;
    if (!rules_fields(loader, node, "state", fields, 3))
        return;
    if (fields[2].value != NULL) {
        rules_read_percent(loader, fields[2].value, "spans", 1, SPANS_MOST, SPANS_EXAMPLE,
                           &settings->state_spans);
    }
    if (fields[0].value != NULL && rules_read_text(loader, fields[0].value, "file", &text)) {
        if (text.size == 0) {
            rules_problem(loader, fields[0].value,
                          "`file` is empty; leave it out for private memory");
        }
        settings->state_file = rules_keep_text(loader, text.data, text.size);
    }
    if (fields[1].value == NULL || !rules_read_text(loader, fields[1].value, "size", &text))
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
    static const char *const names[] = {"draft", "draft-03", "x-epoch", "x-delta", "cost"};
    static const uint32_t bits[] = {WEIR_HEADERS_DRAFT, WEIR_HEADERS_DRAFT_03, WEIR_HEADERS_X_EPOCH,
                                    WEIR_HEADERS_X_DELTA, WEIR_HEADERS_COST};
    struct rules_items items = rules_items_of(&node);
    loader->rules->settings.headers = 0;
    if (loader->headers_given)
        rules_problem(loader, node, "`headers` is given twice, in the file and in `server`");
    loader->headers_given = true;
    for (uint32_t i = 0; i < items.count; i++) {
        int choice = rules_read_choice(loader, items.items[i], "headers", names, 5);
        if (choice >= 0)
            loader->rules->settings.headers |= bits[choice];
    }
    uint32_t both = WEIR_HEADERS_X_EPOCH | WEIR_HEADERS_X_DELTA;
    if ((loader->rules->settings.headers & both) == both)
        rules_problem(loader, node, "x-epoch and x-delta are the same fields; give one");
}
