/* SPDX-License-Identifier: Apache-2.0 */
/* see section.h */
#include "feature/kernel/rules/section.h"

#include <string.h>

#include "core/bytes.h"
#include "feature/kernel/names.h"
#include "feature/kernel/settings.h"
#include "feature/xdp/rules/section.h"
#include "rules/load/environment.h"
#include "rules/load/numbers.h"
#include "rules/load/server/listener.h"

#define TABLE_DEFAULT "weir"
#define SOURCES_MAX 1048576
#define NUMBER_MAX UINT64_C(1000000000) /* nft: 32 bits, and a burst on top */
#define NS_PER_S UINT64_C(1000000000)

/* --- `nftables` ------------------------------------------------------------------------------- */

static void load_interfaces(struct rules_loader *loader, const struct rules_node *node,
                            struct weir_kernel_nftables *nftables)
{
    struct rules_items items = rules_items_of(&node);
    struct rules_quote quote;
    struct weir_bytes name;
    if (items.count > WEIR_KERNEL_INTERFACES_MAX) {
        rules_problem(loader, node, "`interfaces` has more than %d entries",
                      WEIR_KERNEL_INTERFACES_MAX);
        return;
    }
    for (uint32_t i = 0; i < items.count; i++) {
        if (!rules_read_text(loader, items.items[i], "interfaces", &name))
            continue;
        if (!weir_kernel_interface_valid(name.data, name.size))
            rules_problem(loader, items.items[i],
                          "%s is not the name of an interface; `ip link` lists them",
                          rules_quote(&quote, name.data, name.size));
        else
            nftables->interfaces[nftables->interfaces_count++] =
                rules_keep_text(loader, name.data, name.size);
    }
}

static bool parse_table(struct rules_loader *loader, const struct rules_keyword *keyword,
                        const struct rules_node *node, void *field)
{
    const char **table = field;
    struct weir_bytes name;
    if (!rules_read_text(loader, node, keyword->name, &name))
        return false;
    bool valid = weir_kernel_table_valid(name.data, name.size);
    if (valid)
        *table = rules_keep_text(loader, name.data, name.size);
    else
        rules_problem(loader, node,
                      "`table` must begin with a letter and have 1 to %d letters, digits and `_`",
                      WEIR_KERNEL_TABLE_MAX);
    return valid;
}

static const char *read_helper(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_bytes path;
    if (!rules_read_place(loader, node, "helper", &path))
        return NULL;
    if (path.size > 1 && path.data[0] == '/' && path.size <= RULES_UNIX_PATH_MAX)
        return rules_keep_text(loader, path.data, path.size);
    rules_problem(loader, node,
                  "`helper` must be the absolute path of a socket, of at most %d bytes",
                  RULES_UNIX_PATH_MAX);
    return NULL;
}

enum { TABLE, HOOK, INTERFACES, HELPER };

#define AT(member) RULES_AT(struct weir_kernel_nftables, member)
static const struct rules_keyword nftables_keywords[] = {
    [TABLE] = {"table", RULES_TEXT, AT(table), .parse = parse_table, .otherwise = TABLE_DEFAULT,
               .doc =
                   "the name of the table; weir does not touch a table of that name that another "
                   "program made",
               .why = "the name says whose it is"},
    [HOOK] = {"hook", RULES_CHOICE, AT(hook), RULES_WORDS("netdev", "inet"), .otherwise = "inet",
              .doc =
                  "`inet`: all interfaces, before connection tracking; `netdev`: as frames arrive "
                  "at `interfaces`, the cheapest",
              .why = "needs no name of an interface"},
    [INTERFACES] = {"interfaces", RULES_TEXT, .many = RULES_SEVERAL, .absent = "–",
                    .doc = "names of up to 16, with `hook: netdev`"},
    [HELPER] = {"helper", RULES_PLACE, .absent = "weir starts one",
                .doc = "the socket of a [helper that systemd starts](kernel.md#under-systemd)"},
    {"penalties", RULES_FLAG, AT(penalties), .otherwise = "false",
     .doc = "whether bans of penalties are published, too",
     .why = "a spoofed address must not be able to ban its owner in the kernel"},
};
#undef AT
static const struct rules_section nftables_section = RULES_SECTION("nftables", nftables_keywords);

static void load_nftables(struct rules_loader *loader, const struct rules_field *section)
{
    struct weir_kernel_nftables *nftables = &loader->rules->settings.kernel->nftables;
    struct rules_field fields[RULES_KEYWORDS_MAX];
    if (!rules_section_load(loader, &nftables_section, section->value, fields, nftables))
        return;
    nftables->on = true;
    if (!loader->standing)
        rules_problem(loader, section->key,
                      "`nftables` publishes the bans of `standing`, which is missing");
    if (fields[INTERFACES].value)
        load_interfaces(loader, fields[INTERFACES].value, nftables);
    if (nftables->hook == WEIR_KERNEL_NETDEV && !fields[INTERFACES].value)
        rules_problem(loader, section->value,
                      "`hook: netdev` needs `interfaces`, at which packets are dropped");
    else if (nftables->hook == WEIR_KERNEL_INET && fields[INTERFACES].value)
        rules_problem(loader, fields[INTERFACES].key,
                      "`hook: inet` is for all interfaces; remove `interfaces`, or use `hook: "
                      "netdev`");
    if (fields[HELPER].value)
        nftables->helper = read_helper(loader, fields[HELPER].value);
}

/* --- `limits` --------------------------------------------------------------------------------- */

enum {
    LIMIT_NEW,
    LIMIT_OPEN,
    LIMIT_PACKETS,
    LIMIT_ICMP, /* the first four in the order of enum weir_kernel_count */
    LIMIT_NAME,
    LIMIT_PORTS,
};

#define AT(member) RULES_AT(struct weir_kernel_limit, member)
static const struct rules_keyword limit_keywords[] = {
    [LIMIT_NEW] = {"new_connections", RULES_RATE, .absent = "one of these four",
                   .doc =
                       "TCP connections that begin (SYN), as `50/s burst 100`; a second, minute, "
                       "hour or day"},
    [LIMIT_OPEN] = {"open_connections", RULES_NUMBER, RULES_RANGE(1, NUMBER_MAX),
                    .doc =
                        "TCP connections that are open at one time, as connection tracking knows "
                        "them"},
    [LIMIT_PACKETS] = {"packets", RULES_RATE,
                       .doc = "packets of TCP and UDP, for each port of this machine"},
    [LIMIT_ICMP] = {"icmp", RULES_RATE, .doc = "echo requests of ICMP and ICMPv6"},
    [LIMIT_NAME] = {"name", RULES_TEXT, .flags = RULES_REQUIRED, .doc = "letters, digits and `_`"},
    [LIMIT_PORTS] = {"ports", RULES_NUMBER, RULES_RANGE(1, 65535), .many = RULES_SEVERAL,
                     .absent = "all", .doc = "up to 16; without it all ports count"},
    {"prefix4", RULES_NUMBER, AT(prefix4), RULES_RANGE(1, 32), .otherwise = "32",
     .doc = "the length of prefix of IPv4 addresses that shares one count", .why = "one address"},
    {"prefix6", RULES_NUMBER, AT(prefix6), RULES_RANGE(1, 128), .otherwise = "64",
     .doc = "that of IPv6 addresses", .why = "what one site has"},
    {"sources", RULES_NUMBER, AT(sources), RULES_RANGE(16, SOURCES_MAX), .otherwise = "65536",
     .doc = "how many sources are counted at one time, 16 to 1048576",
     .why = "some MiB of the kernel's memory"},
    {"dry_run", RULES_FLAG, AT(dry_run), .otherwise = "false",
     .doc = "count what would be dropped, and drop nothing", .why = "a limit limits"},
};
#undef AT
static const struct rules_section limit_section =
    RULES_SECTION("a limit of the kernel", limit_keywords);

/* A unit that nft has. */
static uint32_t seconds_of(uint64_t window_ns)
{
    static const uint32_t units[] = {1, 60, 3600, 86400};
    for (int i = 0; i < 4; i++)
        if (window_ns == units[i] * NS_PER_S)
            return units[i];
    return 0;
}

static void load_rate(struct rules_loader *loader, const struct rules_field *field,
                      struct weir_kernel_limit *limit)
{
    struct weir_reason reason = {{0}};
    struct weir_bytes text;
    struct weir_rate rate;
    if (!rules_read_text(loader, field->value, field->name, &text))
        return;
    if (weir_rate_parse(&rate, text.data, text.size, &reason) < 0) {
        rules_problem(loader, field->value, "%s", reason.text);
        return;
    }
    limit->per_s = rate.kind == WEIR_RATE_COUNT ? seconds_of(rate.window_ns) : 0;
    if (limit->per_s == 0 || rate.count == 0 || rate.count > NUMBER_MAX ||
        rate.burst > NUMBER_MAX) {
        rules_problem(
            loader, field->value,
            "`%s` must be 1 to 1000000000 a second, minute, hour or day: `50/s burst 100`",
            field->name);
        return;
    }
    limit->most = (uint32_t)rate.count;
    limit->burst = (uint32_t)rate.burst;
}

static void load_ports(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_kernel_limit *limit)
{
    struct rules_items items = rules_items_of(&node);
    uint64_t port;
    if (items.count == 0 || items.count > WEIR_KERNEL_PORTS_MAX) {
        rules_problem(loader, node, "`ports` must have 1 to %d entries; without it all ports count",
                      WEIR_KERNEL_PORTS_MAX);
        return;
    }
    for (uint32_t i = 0; i < items.count; i++)
        if (rules_keyword_number(loader, &limit_keywords[LIMIT_PORTS], items.items[i], &port))
            limit->ports[limit->ports_count++] = (uint16_t)port;
}

static void load_what(struct rules_loader *loader, const struct rules_node *node,
                      const struct rules_field *fields, struct weir_kernel_limit *limit)
{
    uint32_t given = 0;
    uint64_t most = 0;
    for (unsigned i = LIMIT_NEW; i <= LIMIT_ICMP; i++)
        if (fields[i].value) {
            given++;
            limit->count = (uint8_t)i;
        }
    if (given != 1) {
        rules_problem(loader, node,
                      "a limit of the kernel needs one of `new_connections`, `open_connections`, "
                      "`packets` and `icmp`");
        return;
    }
    if (limit->count != WEIR_KERNEL_COUNT_OPEN) {
        load_rate(loader, &fields[limit->count], limit);
        return;
    }
    (void)rules_keyword_number(loader, &limit_keywords[LIMIT_OPEN], fields[LIMIT_OPEN].value,
                               &most);
    limit->most = (uint32_t)most;
}

static bool is_name_taken(const struct weir_kernel_limit *limits, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(limits[i].name, name) == 0)
            return true;
    return false;
}

static void load_limit(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_kernel_limit *limits, uint32_t count)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct weir_kernel_limit *limit = &limits[count];
    struct weir_bytes name;
    limit->name = "";
    if (!rules_section_load(loader, &limit_section, node, fields, limit))
        return;
    if (!fields[LIMIT_NAME].value) {
        rules_problem(loader, node, "`name` is missing");
    } else if (rules_read_text(loader, fields[LIMIT_NAME].value, "name", &name)) {
        if (!weir_kernel_table_valid(name.data, name.size))
            rules_problem(loader, fields[LIMIT_NAME].value,
                          "`name` of a limit of the kernel must begin with a letter and have 1 to "
                          "%d letters, digits and `_`",
                          WEIR_KERNEL_TABLE_MAX);
        else if (is_name_taken(limits, count, name.data))
            rules_problem(loader, fields[LIMIT_NAME].value, "two limits of the kernel are named %s",
                          name.data);
        else
            limit->name = rules_keep_text(loader, name.data, name.size);
    }
    load_what(loader, node, fields, limit);
    if (fields[LIMIT_PORTS].value && limit->count == WEIR_KERNEL_COUNT_ICMP)
        rules_problem(loader, fields[LIMIT_PORTS].key, "ICMP has no `ports`");
    else if (fields[LIMIT_PORTS].value)
        load_ports(loader, fields[LIMIT_PORTS].value, limit);
}

static void load_limits(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_kernel_settings *kernel = loader->rules->settings.kernel;
    struct weir_kernel_limit *limits;
    if (node->kind != RULES_LIST || node->size > WEIR_KERNEL_LIMITS_MAX) {
        rules_problem(loader, node, "`limits` of `kernel` must be a list of at most %d limits",
                      WEIR_KERNEL_LIMITS_MAX);
        return;
    }
    limits = rules_keep(loader, (node->size + 1) * sizeof *limits);
    if (!limits)
        return;
    for (uint32_t i = 0; i < node->size; i++)
        load_limit(loader, node->items[i], limits, i);
    kernel->limits = limits;
    kernel->limits_count = node->size;
}

/* --- The section ------------------------------------------------------------------------------ */

enum { NFTABLES, LIMITS, XDP };

static const struct rules_keyword keywords[] = {
    [NFTABLES] = {"nftables", RULES_MAPPING, .section = &nftables_section, .absent = "none",
                  .doc = "[bans in the packet filter](kernel.md)"},
    [LIMITS] = {"limits", RULES_MAPPING, .many = RULES_LISTED, .section = &limit_section,
                .absent = "none", .doc = "limits of packets and connections, by nft"},
    [XDP] = {"xdp", RULES_MAPPING, .section = &rules_section_xdp, .absent = "none",
             .doc = "[packets before any program](xdp.md)"},
};
const struct rules_section rules_section_kernel = RULES_SECTION("kernel", keywords);

void rules_load_kernel(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    if (!rules_section_find(loader, &rules_section_kernel, node, fields))
        return;
    if (fields[NFTABLES].value)
        load_nftables(loader, &fields[NFTABLES]);
    if (fields[LIMITS].value)
        load_limits(loader, fields[LIMITS].value);
    if (fields[XDP].value)
        rules_load_xdp(loader, fields[XDP].value);
}
