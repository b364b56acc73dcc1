/* SPDX-License-Identifier: Apache-2.0 */
/* see xdp.h */
#include "feature/xdp/rules/section.h"

#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/kernel/names.h"
#include "feature/xdp/settings.h"
#include "rules/load/numbers.h"

#define PERCENT_EXAMPLE 10
#define PREFIX4_DEFAULT 32
#define PREFIX6_DEFAULT 64 /* what one site has */

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

static void load_prefix(struct rules_loader *loader, const struct rules_field *field, uint8_t most,
                        uint8_t *bits)
{
    uint64_t number;
    if (field->value && rules_read_number(loader, field->value, field->name, 1, most, &number))
        *bits = (uint8_t)number;
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

static void load_limit(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_xdp_settings *xdp, struct weir_xdp_limit *limit)
{
    enum { NAME, PACKETS, BYTES, NEW, PREFIX4, PREFIX6, PROTOCOL, PORTS, DRY_RUN, COUNT };
    static const char *const protocols[] = {"any", "tcp", "udp", "icmp"};
    struct rules_field fields[COUNT] = {{"name", NULL, NULL},     {"packets", NULL, NULL},
                                        {"bytes", NULL, NULL},    {"new_connections", NULL, NULL},
                                        {"prefix4", NULL, NULL},  {"prefix6", NULL, NULL},
                                        {"protocol", NULL, NULL}, {"ports", NULL, NULL},
                                        {"dry_run", NULL, NULL}};
    uint32_t wrong = loader->wrong;
    *limit = (struct weir_xdp_limit){.bits4 = PREFIX4_DEFAULT, .bits6 = PREFIX6_DEFAULT};
    if (!rules_fields(loader, node, "a limit of `xdp`", fields, COUNT))
        return;
    if (fields[NAME].value)
        load_name(loader, fields[NAME].value, xdp, limit);
    else
        rules_problem(loader, node, "`name` is missing in a limit of `xdp`");
    load_what(loader, node, &fields[PACKETS], limit);
    load_prefix(loader, &fields[PREFIX4], 32, &limit->bits4);
    load_prefix(loader, &fields[PREFIX6], 128, &limit->bits6);
    if (fields[PROTOCOL].value) {
        int found = rules_read_choice(loader, fields[PROTOCOL].value, "protocol", protocols, 4);
        limit->protocol = found > 0 ? (uint8_t)found : WEIR_XDP_ANY;
    }
    if (fields[PORTS].value)
        load_ports(loader, fields[PORTS].value, limit);
    if (limit->syn && limit->protocol != WEIR_XDP_ANY && limit->protocol != WEIR_XDP_TCP)
        rules_problem(loader, fields[PROTOCOL].key,
                      "`new_connections` are those of TCP; remove `protocol`");
    if (fields[PORTS].value && limit->protocol == WEIR_XDP_ICMP)
        rules_problem(loader, fields[PORTS].key, "ICMP has no `ports`");
    if (fields[DRY_RUN].value)
        rules_read_bool(loader, fields[DRY_RUN].value, "dry_run", &limit->dry_run);
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

static void load_power(struct rules_loader *loader, const struct rules_field *field, uint32_t least,
                       uint32_t most, uint32_t *value)
{
    uint64_t number;
    if (!rules_read_number(loader, field->value, field->name, least, most, &number))
        return;
    if ((number & (number - 1)) != 0)
        rules_problem(loader, field->value, "`%s` must be a power of two", field->name);
    else
        *value = (uint32_t)number;
}

void rules_load_xdp(struct rules_loader *loader, const struct rules_node *node)
{
    enum {
        INTERFACE,
        MODE,
        DRY_RUN,
        SHARE,
        STATES,
        SAMPLE,
        FRAGMENTS,
        FULL,
        ALLOW,
        BAN,
        LIMITS,
        COUNT
    };
    static const char *const modes[] = {"auto", "native", "generic"};
    static const char *const fragments[] = {"count", "drop"};
    static const char *const full[] = {"drop", "pass"};
    struct rules_field fields[COUNT] = {
        {"interface", NULL, NULL}, {"mode", NULL, NULL},      {"dry_run", NULL, NULL},
        {"share", NULL, NULL},     {"states", NULL, NULL},    {"sample", NULL, NULL},
        {"fragments", NULL, NULL}, {"when_full", NULL, NULL}, {"allow", NULL, NULL},
        {"ban", NULL, NULL},       {"limits", NULL, NULL}};
    struct weir_xdp_settings *xdp = rules_keep(loader, sizeof(*xdp));
    if (!xdp || !rules_fields(loader, node, "`xdp`", fields, COUNT))
        return;
    *xdp = (struct weir_xdp_settings){
        .states = WEIR_XDP_STATES, .sample = WEIR_XDP_SAMPLE, .percent = 100};
    if (fields[INTERFACE].value)
        load_interface(loader, fields[INTERFACE].value, xdp);
    else
        rules_problem(loader, node, "`xdp` needs `interface`, the name of a network interface");
    if (fields[MODE].value) {
        int mode = rules_read_choice(loader, fields[MODE].value, "mode", modes, 3);
        xdp->mode = mode > 0 ? (uint8_t)mode : WEIR_XDP_AUTO;
    }
    if (fields[DRY_RUN].value)
        rules_read_bool(loader, fields[DRY_RUN].value, "dry_run", &xdp->dry_run);
    if (fields[SHARE].value)
        rules_read_percent(loader, fields[SHARE].value, "share", 0, 100, PERCENT_EXAMPLE,
                           &xdp->percent);
    if (fields[STATES].value)
        load_power(loader, &fields[STATES], WEIR_XDP_STATES_MIN, WEIR_XDP_STATES_MAX, &xdp->states);
    if (fields[SAMPLE].value)
        load_power(loader, &fields[SAMPLE], 1, WEIR_XDP_SAMPLE_MAX, &xdp->sample);
    if (fields[FRAGMENTS].value)
        xdp->drop_fragments =
            rules_read_choice(loader, fields[FRAGMENTS].value, "fragments", fragments, 2) == 1;
    if (fields[FULL].value)
        xdp->no_room_passes =
            rules_read_choice(loader, fields[FULL].value, "when_full", full, 2) == 1;
    if (fields[ALLOW].value)
        xdp->allow = load_list(loader, &fields[ALLOW], WEIR_XDP_ALLOW_MAX, &xdp->allow_count);
    if (fields[BAN].value)
        xdp->ban = load_list(loader, &fields[BAN], WEIR_XDP_BAN_MAX, &xdp->ban_count);
    if (fields[LIMITS].value)
        load_limits(loader, fields[LIMITS].value, xdp);
    loader->rules->settings.xdp = xdp;
}
