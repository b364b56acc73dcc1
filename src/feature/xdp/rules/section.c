/* SPDX-License-Identifier: Apache-2.0 */
/* see section.h */
#include "feature/xdp/rules/section.h"

#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/kernel/names.h"
#include "feature/xdp/settings.h"
#include "rules/load/numbers.h"

#define PERCENT_EXAMPLE 10

/* --- Limits ----------------------------------------------------------------------------------- */

static bool read_port(struct weir_bytes text, uint16_t *first, uint16_t *last)
{
    uint64_t from = 0, to = 0;
    int size = weir_digits_parse(&from, text.data, text.size);
    if (size <= 0)
        return false;
    to = from;
    if ((size_t)size < text.size) {
        size_t rest = text.size - (size_t)size - 1;
        if (text.data[size] != '-' || rest == 0 ||
            weir_digits_parse(&to, text.data + size + 1, rest) != (int)rest)
            return false;
    }
    *first = (uint16_t)from;
    *last = (uint16_t)to;
    return from >= 1 && from <= to && to <= UINT16_MAX;
}

static void load_ports(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_xdp_limit *limit)
{
    struct rules_items items = rules_items_of(&node);
    struct rules_quote quote;
    struct weir_bytes text;
    if (node->kind == RULES_MAP || items.count == 0 || items.count > WEIR_XDP_PORTS_MAX) {
        rules_problem(loader, node, "`ports` of `xdp` must be a list of 1 to %d ports or ranges",
                      WEIR_XDP_PORTS_MAX);
        return;
    }
    for (uint32_t i = 0; i < items.count; i++) {
        struct weir_xdp_ports *ports = &limit->ports[limit->ports_count];
        if (!rules_read_text(loader, items.items[i], "ports", &text))
            continue;
        if (read_port(text, &ports->first, &ports->last))
            limit->ports_count++;
        else
            rules_problem(loader, items.items[i],
                          "`ports` has destination ports of 1 to 65535 and ranges such as "
                          "8000-8100, not %s",
                          rules_quote(&quote, text.data, text.size));
    }
}

static void load_rate(struct rules_loader *loader, const struct rules_field *field,
                      struct weir_xdp_limit *limit)
{
    struct weir_limit_spec spec = {.algorithm = WEIR_GCRA};
    struct weir_reason reason = {{0}};
    struct weir_bytes text;
    struct weir_rate rate;
    if (!rules_read_text(loader, field->value, field->name, &text))
        return;
    int err = weir_rate_parse(&rate, text.data, text.size, &reason);
    if (err == 0 && rate.kind != WEIR_RATE_COUNT) {
        snprintf(reason.text, sizeof(reason.text), "`%s` must be a rate, such as 1000/s",
                 field->name);
        err = WEIR_ERR_SYNTAX;
    }
    if (err == 0)
        err = rules_numbers_use(&rate, &spec, &reason);
    if (err == 0 && rules_numbers_compile(&spec, false, &limit->limit, &reason) != RULES_FAULT_NONE)
        err = WEIR_ERR_RANGE;
    if (err < 0)
        rules_problem(loader, field->value, "%s", reason.text);
}

/* What the limit counts, by the one key that is there. */
static void load_what(struct rules_loader *loader, const struct rules_node *node,
                      const struct rules_field fields[3], struct weir_xdp_limit *limit)
{
    enum { PACKETS, BYTES, NEW };
    const struct rules_field *found = NULL;
    for (int i = PACKETS; i <= NEW; i++) {
        if (!fields[i].value)
            continue;
        if (found)
            rules_problem(loader, fields[i].key, "a limit of `xdp` has either `%s` or `%s`",
                          found->name, fields[i].name);
        found = &fields[i];
    }
    if (!found) {
        rules_problem(loader, node,
                      "a limit of `xdp` needs `packets`, `bytes` or `new_connections`, with a "
                      "rate such as 1000/s");
        return;
    }
    limit->bytes = found == &fields[BYTES];
    limit->syn = found == &fields[NEW];
    load_rate(loader, found, limit);
}

static bool is_twice(const struct weir_xdp_settings *xdp, const struct weir_xdp_limit *limit)
{
    for (uint32_t i = 0; i < xdp->limits_count; i++)
        if (strcmp(xdp->limits[i].name, limit->name) == 0)
            return true;
    return false;
}

static void load_name(struct rules_loader *loader, const struct rules_node *node,
                      const struct weir_xdp_settings *xdp, struct weir_xdp_limit *limit)
{
    struct weir_bytes name;
    if (!rules_check_name(loader, node, "limit", &name))
        return;
    if (name.size > WEIR_XDP_NAME_MAX)
        rules_problem(loader, node, "the name of a limit of `xdp` has at most %d bytes",
                      WEIR_XDP_NAME_MAX);
    limit->name = rules_keep_text(loader, name.data, name.size);
    if (limit->name && is_twice(xdp, limit))
        rules_problem(loader, node, "`xdp` has two limits `%s`", limit->name);
}

enum { NAME, PACKETS, BYTES, NEW, PROTOCOL, PORTS };

#define AT(member) RULES_AT(struct weir_xdp_limit, member)
static const struct rules_keyword limit_keywords[] = {
    [NAME] = {"name", RULES_NAME, .flags = RULES_REQUIRED, .doc = "1 to 63 of `a-z 0-9 . _ -`"},
    [PACKETS] = {"packets", RULES_RATE, .absent = "one of these three",
                 .doc = "packets of a source: `1000/s burst 2000`"},
    [BYTES] = {"bytes", RULES_RATE, .doc = "bytes of its frames"},
    [NEW] = {"new_connections", RULES_RATE, .doc = "packets that open a TCP connection"},
    [PROTOCOL] = {"protocol", RULES_CHOICE, AT(protocol), RULES_WORDS("any", "tcp", "udp", "icmp"),
                  .otherwise = "any", .doc = "of which packets: `any`, `tcp`, `udp`, `icmp`"},
    [PORTS] = {"ports", RULES_TEXT, .many = RULES_SEVERAL, .absent = "all",
               .doc = "up to 4 destination ports or ranges such as `8000-8100`"},
    {"prefix4", RULES_NUMBER, AT(bits4), RULES_RANGE(1, 32), .otherwise = "32",
     .doc = "the length of prefix of IPv4 that shares one count"},
    {"prefix6", RULES_NUMBER, AT(bits6), RULES_RANGE(1, 128), .otherwise = "64",
     .doc = "that of IPv6"},
    {"dry_run", RULES_FLAG, AT(dry_run), .otherwise = "false", .doc = "count, drop nothing"},
};
#undef AT
static const struct rules_section limit_section = RULES_SECTION("a limit of `xdp`", limit_keywords);

static void load_limit(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_xdp_settings *xdp, struct weir_xdp_limit *limit)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    uint32_t wrong = loader->wrong;
    memset(limit, 0, sizeof(*limit));
    if (!rules_section_load(loader, &limit_section, node, fields, limit))
        return;
    if (fields[NAME].value)
        load_name(loader, fields[NAME].value, xdp, limit);
    else
        rules_problem(loader, node, "`name` is missing in a limit of `xdp`");
    load_what(loader, node, &fields[PACKETS], limit);
    if (fields[PORTS].value)
        load_ports(loader, fields[PORTS].value, limit);
    if (limit->syn && limit->protocol != WEIR_XDP_ANY && limit->protocol != WEIR_XDP_TCP)
        rules_problem(loader, fields[PROTOCOL].key,
                      "`new_connections` are those of TCP; remove `protocol`");
    if (fields[PORTS].value && limit->protocol == WEIR_XDP_ICMP)
        rules_problem(loader, fields[PORTS].key, "ICMP has no `ports`");
    if (loader->wrong == wrong && limit->name)
        xdp->limits_count++;
}

static void load_limits(struct rules_loader *loader, const struct rules_node *node,
                        struct weir_xdp_settings *xdp)
{
    if (node->kind != RULES_LIST || node->size > WEIR_XDP_LIMITS_MAX) {
        rules_problem(loader, node, "`limits` of `xdp` must be a list of at most %d limits",
                      WEIR_XDP_LIMITS_MAX);
        return;
    }
    struct weir_xdp_limit *limits = rules_keep(loader, WEIR_XDP_LIMITS_MAX * sizeof(*limits));
    xdp->limits = limits;
    for (uint32_t i = 0; i < node->size && limits && !loader->no_memory; i++)
        load_limit(loader, node->items[i], xdp, &limits[xdp->limits_count]);
}

/* --- Lists -------------------------------------------------------------------------------------
 */

static const struct weir_cidr *load_list(struct rules_loader *loader,
                                         const struct rules_field *field, uint32_t most,
                                         uint32_t *count)
{
    const struct rules_node *node = field->value;
    struct rules_items items = rules_items_of(&node);
    struct weir_bytes text;
    struct rules_quote quote;
    if (node->kind == RULES_MAP || items.count > most) {
        rules_problem(loader, node, "`%s` must be a list of at most %u networks", field->name,
                      most);
        return NULL;
    }
    struct weir_cidr *list = rules_keep(loader, (items.count + 1) * sizeof(*list));
    for (uint32_t i = 0; list && i < items.count; i++) {
        if (!rules_read_text(loader, items.items[i], field->name, &text))
            continue;
        if (!rules_check_zone(loader, items.items[i], field->name, text))
            continue;
        if (weir_cidr_parse(&list[*count], text.data, text.size) == 0)
            (*count)++;
        else
            rules_problem(loader, items.items[i],
                          "%s is no address or network such as 192.0.2.0/24, whose bits behind "
                          "the prefix are 0",
                          rules_quote(&quote, text.data, text.size));
    }
    return list;
}

/* --- The section -------------------------------------------------------------------------------
 */

static void load_interface(struct rules_loader *loader, const struct rules_node *node,
                           struct weir_xdp_settings *xdp)
{
    struct weir_bytes text;
    struct rules_quote quote;
    if (!rules_read_text(loader, node, "interface", &text))
        return;
    if (weir_kernel_interface_valid(text.data, text.size))
        xdp->interface = rules_keep_text(loader, text.data, text.size);
    else
        rules_problem(
            loader, node,
            "`interface` must be an interface's name of 1 to %d letters, digits and `_.-@`, not %s",
            WEIR_XDP_INTERFACE_MAX, rules_quote(&quote, text.data, text.size));
}

/* `parse` of a row: a power of two. */
static bool parse_power(struct rules_loader *loader, const struct rules_keyword *keyword,
                        const struct rules_node *node, void *field)
{
    uint32_t *value = field;
    uint64_t number;
    if (!rules_read_number(loader, node, keyword->name, keyword->least, keyword->most, &number))
        return false;
    if ((number & (number - 1)) != 0) {
        rules_problem(loader, node, "`%s` must be a power of two", keyword->name);
        return false;
    }
    *value = (uint32_t)number;
    return true;
}

enum { INTERFACE, ALLOW, BAN, LIMITS };

#define AT(member) RULES_AT(struct weir_xdp_settings, member)
static const struct rules_keyword keywords[] = {
    [INTERFACE] = {"interface", RULES_TEXT, .flags = RULES_REQUIRED,
                   .doc = "the name of an Ethernet interface"},
    [ALLOW] = {"allow", RULES_TEXT, .many = RULES_SEVERAL, .absent = "none",
               .doc = "up to 1,000 addresses and networks that are never dropped"},
    [BAN] = {"ban", RULES_TEXT, .many = RULES_SEVERAL, .absent = "none",
             .doc = "up to 100,000 that always are; `allow` wins"},
    [LIMITS] = {"limits", RULES_MAPPING, .many = RULES_LISTED, .section = &limit_section,
                .absent = "none", .doc = "up to 4 limits"},
    {"mode", RULES_CHOICE, AT(mode), RULES_WORDS("auto", "native", "generic"), .otherwise = "auto",
     .absent = "`auto`: native where the driver can",
     .doc = "`native` (in the driver), `generic` (behind it), `auto`"},
    {"dry_run", RULES_FLAG, AT(dry_run), .otherwise = "false", .doc = "count, drop nothing"},
    {"share", RULES_PERCENT, AT(percent), RULES_RANGE(0, 100), .example = PERCENT_EXAMPLE,
     .otherwise = "100%",
     .doc = "percentage of sources that the filter applies to, chosen by a hash; a larger share "
            "contains a smaller one"},
    {"states", RULES_NUMBER, AT(states), RULES_RANGE(WEIR_XDP_STATES_MIN, WEIR_XDP_STATES_MAX),
     .parse = parse_power, .otherwise = "65536",
     .doc = "sources and limits that are counted at one time: a power of two, 1024 to 16777216; 24 "
            "bytes each"},
    {"sample", RULES_NUMBER, AT(sample), RULES_RANGE(1, WEIR_XDP_SAMPLE_MAX), .parse = parse_power,
     .otherwise = "64",
     .doc =
         "of dropped packets one in this many is shown by `weir xdp top`, chosen evenly: a power "
         "of two"},
    {"fragments", RULES_CHOICE, AT(drop_fragments), RULES_WORDS("count", "drop"),
     .otherwise = "count", .doc = "`count`, or `drop`"},
    {"when_full", RULES_CHOICE, AT(no_room_passes), RULES_WORDS("drop", "pass"),
     .otherwise = "drop",
     .doc = "`drop` or `pass` a new source when all states that it could take already deny"},
};
const struct rules_section rules_section_xdp = RULES_SECTION("`xdp`", keywords);

void rules_load_xdp(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct weir_xdp_settings *xdp = rules_keep(loader, sizeof(*xdp));
    if (!xdp || !rules_section_load(loader, &rules_section_xdp, node, fields, xdp))
        return;
    if (fields[INTERFACE].value)
        load_interface(loader, fields[INTERFACE].value, xdp);
    else
        rules_problem(loader, node, "`xdp` needs `interface`, the name of a network interface");
    if (fields[ALLOW].value)
        xdp->allow = load_list(loader, &fields[ALLOW], WEIR_XDP_ALLOW_MAX, &xdp->allow_count);
    if (fields[BAN].value)
        xdp->ban = load_list(loader, &fields[BAN], WEIR_XDP_BAN_MAX, &xdp->ban_count);
    if (fields[LIMITS].value)
        load_limits(loader, fields[LIMITS].value, xdp);
    loader->rules->settings.xdp = xdp;
}
