/* SPDX-License-Identifier: Apache-2.0 */
/* see settings.h */
#include "rules/load/server/settings.h"

#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "rules/load/environment.h"
#include "rules/load/numbers.h"
#include "rules/load/server/addresses.h"
#include "rules/load/server/listener.h"

/* --- `server.connections` --------------------------------------------------------------------- */

#define PEER_CONNECTIONS_MAX 1000000
#define PEER_WINDOW_MAX_NS RULES_DAY

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

enum { PER_ADDRESS, PER_PREFIX, PACE };

#define AT(member) RULES_AT(struct weir_peer_settings, member)
static const struct rules_keyword connections_keywords[] = {
    [PER_ADDRESS] = {"per_address", RULES_NUMBER, AT(per_address),
                     RULES_RANGE(1, PEER_CONNECTIONS_MAX), .absent = "any number",
                     .doc = "connections of one address at one time; an IPv6 address counts by its "
                            "/64"},
    [PER_PREFIX] = {"per_prefix", RULES_NUMBER, AT(per_prefix),
                    RULES_RANGE(1, PEER_CONNECTIONS_MAX), .absent = "any number",
                    .doc = "connections of one IPv4 /24 or IPv6 /48 at one time"},
    [PACE] = {"rate", RULES_RATE, .absent = "any rate",
              .doc = "new connections of one address, by GCRA: `20/s burst 200`"},
};
#undef AT
static const struct rules_section connections_section =
    RULES_SECTION("connections", connections_keywords);

static void load_connections(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct weir_peer_settings *connections = &loader->rules->settings.connections;
    if (!rules_section_load(loader, &connections_section, node, fields, connections))
        return;
    if (fields[PACE].value)
        load_pace(loader, fields[PACE].value, connections);
    if (connections->per_prefix && connections->per_prefix < connections->per_address)
        rules_problem(
            loader, fields[PER_PREFIX].value,
            "`per_prefix` must be at least `per_address`, for a prefix holds the address");
}

/* --- `server` --------------------------------------------------------------------------------- */

/* What the server and the table can take (server/daemon/limits.h, table/table.h): a file that is
 * found good must start. */
#define WORKERS_MAX 128

enum { HTTP, REDIS, GRPC, ADMIN, WORKERS, PROXIES, HEADERS, CONNECTIONS, NAT64 };

/* A listener as most people write it: its address. */
#define LISTENER(name_, section_) name_, RULES_PLACE, .section = &rules_section_##section_

#define AT(member) RULES_AT(struct weir_settings, member)
static const struct rules_keyword server_keywords[] = {
    [HTTP] = {LISTENER("http", http), .feature = "http", .otherwise = "127.0.0.1:8080",
              .doc = "a listener", .why = "a first start is reachable from this machine only"},
    [REDIS] = {LISTENER("redis", redis_listener), .feature = "redis", .otherwise = "off",
               .doc = "a listener", .why = "a listener opens only where the file names it"},
    [GRPC] = {LISTENER("grpc", grpc), .feature = "grpc", .otherwise = "off", .doc = "a listener",
              .why = "the same"},
    [ADMIN] = {LISTENER("admin", admin), .feature = "admin", .otherwise = "127.0.0.1:9090",
               .doc = "a listener", .why = "this machine only, too; it shows keys of callers"},
    [WORKERS] = {"workers", RULES_NUMBER, AT(workers), RULES_RANGE(1, WORKERS_MAX), .word = "auto",
                 .otherwise = "auto", .absent = "`auto`: one per core",
                 .doc = "1 to 128, or `auto`",
                 .why = "one a core: a worker is never idle while another has a queue"},
    [PROXIES] = {"trusted_proxies", RULES_TEXT, .many = RULES_SEVERAL,
                 .otherwise = "[127.0.0.0/8, \"::1/128\", unix]",
                 .doc = "list of addresses, prefixes and `unix`",
                 .why = "a proxy on this machine; others may write any address"},
    [HEADERS] = {"headers", RULES_CHOICE, .many = RULES_SEVERAL, .words = rules_header_words,
                 .absent = "as there", .doc = "`headers` of the file, in another place"},
    [CONNECTIONS] = {"connections", RULES_MAPPING, .section = &connections_section,
                     .absent = "any number",
                     .doc = "[connections of one address](#connections-of-one-address)"},
    [NAT64] = {"nat64", RULES_TEXT, .many = RULES_SEVERAL, .otherwise = "[\"64:ff9b::/96\"]",
               .doc = "list of [prefixes with IPv4 addresses](#ipv4-addresses-within-ipv6)"},
};
const struct rules_section rules_section_server = RULES_SECTION("server", server_keywords);

void rules_load_server(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_settings *settings = &loader->rules->settings;
    struct weir_listener_settings *listeners[] = {&settings->http, &settings->redis,
                                                  &settings->grpc, &settings->admin};
    struct rules_field fields[RULES_KEYWORDS_MAX];
    if (!rules_section_load(loader, &rules_section_server, node, fields, settings))
        return;
    for (int i = HTTP; i <= ADMIN; i++)
        if (fields[i].value)
            rules_load_listener(loader, &fields[i], server_keywords[i].section, listeners[i]);
    if (fields[PROXIES].value)
        rules_load_proxies(loader, fields[PROXIES].value);
    if (fields[HEADERS].value)
        rules_load_headers(loader, fields[HEADERS].value);
    if (fields[CONNECTIONS].value)
        load_connections(loader, fields[CONNECTIONS].value);
    if (fields[NAT64].value)
        rules_load_nat64(loader, fields[NAT64].value);
}

/* --- `state` ---------------------------------------------------------------------------------- */

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

enum { STATE_FILE, STATE_SIZE, STATE_SPANS, STATE_OWNER, STATE_GROUP, STATE_MODE };

static const struct rules_keyword state_keywords[] = {
    [STATE_FILE] = {"file", RULES_FILE, .absent = "none: private memory",
                    .doc = "where counts outlive the process"},
    [STATE_SIZE] = {"size", RULES_SIZE, AT(state_bytes),
                    RULES_RANGE(UINT64_C(1) << 18, UINT64_C(1) << 42), .absent = "`64MiB`",
                    .doc = "`64MiB`; bytes, KiB, MiB, GiB, TiB; 256KiB to 4TiB",
                    .why =
                        "room for two million keys of a plain limit; a small virtual machine has "
                        "it"},
    [STATE_SPANS] = {"spans", RULES_PERCENT, AT(state_spans), RULES_RANGE(1, 90), .example = 30,
                     .absent = "from the rules: `2%` to `50%`",
                     .doc = "`1%` to `90%` of the state for [spans](state.md#the-share-of-spans)"},
    [STATE_OWNER] = {"owner", RULES_TEXT, AT(state_owner), .flags = RULES_FILLED,
                     .absent = "the process's own",
                     .doc = "the user who owns a [new file](state.md)"},
    [STATE_GROUP] = {"group", RULES_TEXT, AT(state_group), .flags = RULES_FILLED,
                     .absent = "the process's own", .doc = "the group of a new file"},
    [STATE_MODE] = {"mode", RULES_TEXT, .absent = "see [there](state.md)",
                    .doc = "the permissions of a new file, such as `\"0660\"`"},
};
#undef AT
const struct rules_section rules_section_state = RULES_SECTION("state", state_keywords);

void rules_load_state(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_settings *settings = &loader->rules->settings;
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct weir_bytes text;
    struct rules_quote quote;
    if (!rules_section_load(loader, &rules_section_state, node, fields, settings))
        return;
    const struct rules_node *file = fields[STATE_FILE].value, *mode = fields[STATE_MODE].value;
    if (mode && rules_read_text(loader, mode, "mode", &text) &&
        !parse_mode(text, &settings->state_mode))
        rules_problem(loader, mode,
                      "`mode` must be octal digits for reading and writing, such as \"0660\" or "
                      "\"0600\", not %s",
                      rules_quote(&quote, text.data, text.size));
    if (file && rules_read_place(loader, file, "file", &text)) {
        if (text.size == 0)
            rules_problem(loader, file, "`file` is empty; remove it for private memory");
        settings->state_file = rules_moved_path_of(loader, file, "state.file", text);
    }
}

/* --- `headers` -------------------------------------------------------------------------------- */

const char *const rules_header_words[] = {"draft", "draft-03", "x-epoch",   "x-delta",
                                          "cost",  "standing", "dimension", NULL};

void rules_load_headers(struct rules_loader *loader, const struct rules_node *node)
{
    static const uint32_t bits[] = {
        WEIR_HEADERS_DRAFT, WEIR_HEADERS_DRAFT_03, WEIR_HEADERS_X_EPOCH,  WEIR_HEADERS_X_DELTA,
        WEIR_HEADERS_COST,  WEIR_HEADERS_STANDING, WEIR_HEADERS_DIMENSION};
    struct rules_items items = rules_items_of(&node);
    loader->rules->settings.headers = 0;
    if (loader->headers_given)
        rules_problem(loader, node, "`headers` is given twice, in the file and in `server`");
    loader->headers_given = loader->rules->settings.headers_given = true;
    for (uint32_t i = 0; i < items.count; i++) {
        int choice = rules_read_choice(loader, items.items[i], "headers", rules_header_words, 7);
        if (choice >= 0)
            loader->rules->settings.headers |= bits[choice];
    }
    uint32_t both = WEIR_HEADERS_X_EPOCH | WEIR_HEADERS_X_DELTA;
    if ((loader->rules->settings.headers & both) == both)
        rules_problem(loader, node, "x-epoch and x-delta use the same fields; give one");
}
