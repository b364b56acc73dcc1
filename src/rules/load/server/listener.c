/* SPDX-License-Identifier: Apache-2.0 */
/* see listener.h */
#include "rules/load/server/listener.h"

#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "rules/load/environment.h"
#include "rules/load/numbers.h"
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

enum { TLS_CERT, TLS_KEY, TLS_CLIENT_CA, TLS_CLIENT_NAMES };

static const struct rules_keyword tls_keywords[] = {
    [TLS_CERT] = {"cert", RULES_FILE, .flags = RULES_REQUIRED,
                  .doc = "PEM: the certificate, then those between it and the authority"},
    [TLS_KEY] = {"key", RULES_FILE, .flags = RULES_REQUIRED, .doc = "PEM, without a pass phrase"},
    [TLS_CLIENT_CA] = {"client_ca", RULES_FILE, .absent = "clients need no certificate",
                       .doc = "authorities of client certificates, which clients must show"},
    [TLS_CLIENT_NAMES] = {"client_names", RULES_TEXT, .many = RULES_SEVERAL, .absent = "any",
                          .doc = "names of which the client's certificate must have one"},
};
static const struct rules_section tls_section = RULES_SECTION("tls", tls_keywords);

static void load_tls(struct rules_loader *loader, const struct rules_node *node,
                     struct weir_listener_tls *tls)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    if (!rules_section_find(loader, &tls_section, node, fields))
        return;
    if (!fields[TLS_CERT].value || !fields[TLS_KEY].value)
        rules_problem(loader, node, "`tls` needs `cert` and `key`, files in PEM");
    tls->cert_file = read_file_name(loader, &fields[TLS_CERT]);
    tls->key_file = read_file_name(loader, &fields[TLS_KEY]);
    tls->client_ca_file = read_file_name(loader, &fields[TLS_CLIENT_CA]);
    if (!fields[TLS_CLIENT_NAMES].value)
        return;
    if (!fields[TLS_CLIENT_CA].value) {
        rules_problem(loader, fields[TLS_CLIENT_NAMES].key,
                      "`client_names` needs a `client_ca` that signs their certificates");
    }
    load_names(loader, fields[TLS_CLIENT_NAMES].value, tls);
    if (tls->client_name_count == 0) {
        rules_problem(
            loader, fields[TLS_CLIENT_NAMES].value,
            "`client_names` is empty; remove it to allow all certificates of `client_ca`");
    }
}

/* --- Addresses -------------------------------------------------------------------------------- */

#define ADMIN_HOSTS_MAX 64

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

/* --- Listeners -------------------------------------------------------------------------------- */

#define AT(member) RULES_AT(struct weir_listener_settings, member)

/* What all listeners have; those of one listener follow. */
enum {
    ADDRESS,
    LISTEN,
    TOKEN,
    TOKEN_FILE,
    OPEN,
    TRUSTED,
    PROXY_PROTOCOL,
    TLS,
    HOSTS, /* of admin */
};

#define LISTENER_KEYWORDS                                                                          \
    [ADDRESS] = {"address", RULES_PLACE,                                                           \
                 .doc = "`127.0.0.1:8080`, `\"[::1]:8080\"`, "                                     \
                        "`localhost:8080`, `unix:/run/weir/http.sock`, "                           \
                        "or `off`"},                                                               \
    [LISTEN] = {"listen", RULES_PLACE, .doc = "the same as `address`"},                            \
    [TOKEN] = {"token", RULES_TEXT, .absent = "none", .doc = "callers must send it"},              \
    [TOKEN_FILE] = {"token_file", RULES_FILE,                                                      \
                    .doc = "a file that has the token on one line; a reload reads it again"},      \
    [OPEN] = {"open", RULES_FLAG, AT(open), .otherwise = "false",                                  \
              .doc = "`true`: other machines may connect without a token. A listener beyond "      \
                     "loopback that has neither is an error. On `admin`, such clients "            \
                     "[read](http-api.md#who-may-ask-the-admin-listener) health only"},            \
    [TRUSTED] = {"trusted", RULES_FLAG,                                                            \
                 .absent = "`true` on loopback and Unix sockets, else `false`",                    \
                 .doc = "whether requests may say who the user is, and "                           \
                        "[bring limits](request-limits.md)"},                                      \
    [PROXY_PROTOCOL] = {"proxy_protocol", RULES_FLAG, AT(proxy_protocol), .otherwise = "false",    \
                        .doc = "`true`: connections begin with a PROXY protocol header, v1 or "    \
                               "v2"},                                                              \
    [TLS] = {"tls", RULES_MAPPING, .section = &tls_section, .absent = "in clear",                  \
             .doc = "`{cert, key, client_ca, client_names}`: the listener speaks "                 \
                    "[TLS](tls.md)"}

static const struct rules_keyword http_keywords[] = {
    LISTENER_KEYWORDS,
    {"hold", RULES_FLAG, AT(hold), .otherwise = "false",
     .doc = "`true`: `/v1/auth` [holds its replies](actions.md#hold) as long as a limit says"},
};
static const struct rules_keyword redis_keywords[] = {LISTENER_KEYWORDS};
static const struct rules_keyword grpc_keywords[] = {
    LISTENER_KEYWORDS,
    {"max_connection_age", RULES_DURATION, AT(max_connection_age_ns),
     RULES_RANGE(RULES_S, 366 * RULES_DAY), .absent = "never",
     .doc = "when weir asks a [connection](grpc.md#connections) to end, such as `24h`"},
    {"max_connection_age_grace", RULES_DURATION, AT(max_connection_age_grace_ns),
     RULES_RANGE(RULES_S, 366 * RULES_DAY), .absent = "never",
     .doc = "how long after that it is closed"},
};
static const struct rules_keyword admin_keywords[] = {
    LISTENER_KEYWORDS,
    [HOSTS] = {"hosts", RULES_TEXT, .many = RULES_SEVERAL, .absent = "none",
               .doc = "[names](http-api.md#who-may-ask-the-admin-listener) that requests may use "
                      "for it, besides its addresses and `localhost`"},
    {"metrics_open", RULES_FLAG, AT(metrics_open), .otherwise = "false",
     .doc = "`true`: `/metrics` needs no token and other machines may read it"},
};
const struct rules_section rules_section_http = RULES_SECTION("a listener", http_keywords);
const struct rules_section rules_section_redis_listener =
    RULES_SECTION("a listener", redis_keywords);
const struct rules_section rules_section_grpc = RULES_SECTION("a listener", grpc_keywords);
const struct rules_section rules_section_admin = RULES_SECTION("a listener", admin_keywords);

/* What a mapping says; returns where the address stands. */
static const struct rules_node *load_mapping(struct rules_loader *loader,
                                             const struct rules_section *section,
                                             const struct rules_node *node,
                                             struct rules_field *fields,
                                             struct weir_listener_settings *listener)
{
    (void)rules_section_load(loader, section, node, fields, listener);
    if (fields[ADDRESS].value && fields[LISTEN].value)
        rules_problem(loader, fields[LISTEN].key, "`listen` and `address` are the same; give one");
    if (fields[TLS].value)
        load_tls(loader, fields[TLS].value, &listener->tls);
    load_token(loader, &fields[TOKEN], &fields[TOKEN_FILE], listener);
    if (fields[TRUSTED].value)
        listener->trusted_set =
            rules_read_bool(loader, fields[TRUSTED].value, "trusted", &listener->trusted);
    if (section == &rules_section_admin && fields[HOSTS].value)
        load_hosts(loader, fields[HOSTS].value, listener);
    return fields[ADDRESS].value ? fields[ADDRESS].value : fields[LISTEN].value;
}

void rules_load_listener(struct rules_loader *loader, const struct rules_field *field,
                         const struct rules_section *section,
                         struct weir_listener_settings *listener)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    const struct rules_node *address = field->value;
    bool far = false;
    rules_section_name(section, fields);
    if (field->value->kind == RULES_MAP)
        address = load_mapping(loader, section, field->value, fields, listener);
    if (address && rules_read_listen(loader, address, &listener->address, &far) && far &&
        !listener->open && !fields[TOKEN].value && !fields[TOKEN_FILE].value &&
        !listener->tls.client_ca_file) {
        rules_problem(loader, address,
                      "`%s` is open to other machines: give it a `token` or a `tls.client_ca`, or "
                      "set `open: true`",
                      field->name);
    }
}
