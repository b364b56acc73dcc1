/* SPDX-License-Identifier: Apache-2.0 */
/* see kernel.h */
#include "feature/kernel/rules/section.h"

#include <string.h>

#include "core/bytes.h"
#include "feature/kernel/names.h"
#include "feature/xdp/rules/section.h"
#include "rules/load/environment.h"
#include "rules/load/numbers.h"
#include "rules/load/server/listener.h"

#define TABLE_DEFAULT "weir"
#define SOURCES_DEFAULT 65536
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

static const char *read_table(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_bytes name;
    if (!rules_read_text(loader, node, "table", &name))
        return TABLE_DEFAULT;
    if (weir_kernel_table_valid(name.data, name.size))
        return rules_keep_text(loader, name.data, name.size);
    rules_problem(loader, node,
                  "`table` must begin with a letter and have 1 to %d letters, digits and `_`",
                  WEIR_KERNEL_TABLE_MAX);
    return TABLE_DEFAULT;
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

static void load_nftables(struct rules_loader *loader, const struct rules_field *section)
{
    enum { TABLE, HOOK, INTERFACES, PENALTIES, HELPER, COUNT };
    static const char *const hooks[] = {"netdev", "inet"};
    struct weir_kernel_nftables *nftables = &loader->rules->settings.kernel.nftables;
    struct rules_field fields[COUNT] = {{"table", NULL, NULL},
                                        {"hook", NULL, NULL},
                                        {"interfaces", NULL, NULL},
                                        {"penalties", NULL, NULL},
                                        {"helper", NULL, NULL}};
    if (!rules_fields(loader, section->value, "nftables", fields, COUNT))
        return;
    nftables->on = true;
    nftables->table = TABLE_DEFAULT;
    nftables->hook = WEIR_KERNEL_INET;
    if (!loader->standing)
        rules_problem(loader, section->key,
                      "`nftables` publishes the bans of `standing`, which is missing");
    if (fields[TABLE].value)
        nftables->table = read_table(loader, fields[TABLE].value);
    if (fields[HOOK].value)
        nftables->hook =
            rules_read_choice(loader, fields[HOOK].value, "hook", hooks, 2) == WEIR_KERNEL_NETDEV
                ? WEIR_KERNEL_NETDEV
                : WEIR_KERNEL_INET;
    if (fields[INTERFACES].value)
        load_interfaces(loader, fields[INTERFACES].value, nftables);
    if (nftables->hook == WEIR_KERNEL_NETDEV && !fields[INTERFACES].value)
        rules_problem(loader, section->value,
                      "`hook: netdev` needs `interfaces`, at which packets are dropped");
    else if (nftables->hook == WEIR_KERNEL_INET && fields[INTERFACES].value)
        rules_problem(loader, fields[INTERFACES].key,
                      "`hook: inet` is for all interfaces; remove `interfaces`, or use `hook: "
                      "netdev`");
    if (fields[PENALTIES].value)
        rules_read_bool(loader, fields[PENALTIES].value, "penalties", &nftables->penalties);
    if (fields[HELPER].value)
        nftables->helper = read_helper(loader, fields[HELPER].value);
}

/* --- `limits` --------------------------------------------------------------------------------- */

enum limit_field {
    LIMIT_NEW,
    LIMIT_OPEN,
    LIMIT_PACKETS,
    LIMIT_ICMP, /* the first four in the order of enum weir_kernel_count */
    LIMIT_NAME,
    LIMIT_PREFIX4,
    LIMIT_PREFIX6,
    LIMIT_PORTS,
    LIMIT_SOURCES,
    LIMIT_DRY_RUN,
    LIMIT_FIELDS
};

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
        if (rules_read_number(loader, items.items[i], "ports", 1, 65535, &port))
            limit->ports[limit->ports_count++] = (uint16_t)port;
}

static void read_small(struct rules_loader *loader, const struct rules_field *field, uint64_t least,
                       uint64_t most, uint64_t *value)
{
    if (field->value)
        rules_read_number(loader, field->value, field->name, least, most, value);
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
    read_small(loader, &fields[LIMIT_OPEN], 1, NUMBER_MAX, &most);
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
    struct rules_field fields[LIMIT_FIELDS] = {
        [LIMIT_NEW] = {"new_connections", NULL, NULL},
        [LIMIT_OPEN] = {"open_connections", NULL, NULL},
        [LIMIT_PACKETS] = {"packets", NULL, NULL},
        [LIMIT_ICMP] = {"icmp", NULL, NULL},
        [LIMIT_NAME] = {"name", NULL, NULL},
        [LIMIT_PREFIX4] = {"prefix4", NULL, NULL},
        [LIMIT_PREFIX6] = {"prefix6", NULL, NULL},
        [LIMIT_PORTS] = {"ports", NULL, NULL},
        [LIMIT_SOURCES] = {"sources", NULL, NULL},
        [LIMIT_DRY_RUN] = {"dry_run", NULL, NULL},
    };
    struct weir_kernel_limit *limit = &limits[count];
    uint64_t prefix4 = 32, prefix6 = 64, sources = SOURCES_DEFAULT;
    struct weir_bytes name;
    limit->name = "";
    if (!rules_fields(loader, node, "a limit of the kernel", fields, LIMIT_FIELDS))
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
    read_small(loader, &fields[LIMIT_PREFIX4], 1, 32, &prefix4);
    read_small(loader, &fields[LIMIT_PREFIX6], 1, 128, &prefix6);
    read_small(loader, &fields[LIMIT_SOURCES], 16, SOURCES_MAX, &sources);
    limit->prefix4 = (uint8_t)prefix4;
    limit->prefix6 = (uint8_t)prefix6;
    limit->sources = (uint32_t)sources;
    if (fields[LIMIT_PORTS].value && limit->count == WEIR_KERNEL_COUNT_ICMP)
        rules_problem(loader, fields[LIMIT_PORTS].key, "ICMP has no `ports`");
    else if (fields[LIMIT_PORTS].value)
        load_ports(loader, fields[LIMIT_PORTS].value, limit);
    if (fields[LIMIT_DRY_RUN].value)
        rules_read_bool(loader, fields[LIMIT_DRY_RUN].value, "dry_run", &limit->dry_run);
}

static void load_limits(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_kernel_settings *kernel = &loader->rules->settings.kernel;
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

void rules_load_kernel(struct rules_loader *loader, const struct rules_node *node)
{
    enum { NFTABLES, LIMITS, XDP, COUNT };
    struct rules_field fields[COUNT] = {
        {"nftables", NULL, NULL}, {"limits", NULL, NULL}, {"xdp", NULL, NULL}};
    if (!rules_fields(loader, node, "kernel", fields, COUNT))
        return;
    if (fields[NFTABLES].value)
        load_nftables(loader, &fields[NFTABLES]);
    if (fields[LIMITS].value)
        load_limits(loader, fields[LIMITS].value);
    if (fields[XDP].value)
        rules_load_xdp(loader, fields[XDP].value);
}
