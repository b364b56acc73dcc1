/* SPDX-License-Identifier: Apache-2.0 */
/* see ruleset.h */
#include "feature/kernel/ruleset.h"

#include <string.h>

/* A source that sends nothing for so long is forgotten at the earliest. */
#define FORGET_MIN_S 60

void weir_kernel_ruleset_name(char name[WEIR_KERNEL_RULESET_NAME_MAX],
                              const struct weir_kernel_settings *settings)
{
    snprintf(name, WEIR_KERNEL_RULESET_NAME_MAX, "%s" WEIR_KERNEL_RULESET_SUFFIX,
             settings->nftables.table ? settings->nftables.table : "weir");
}

static uint32_t burst_of(const struct weir_kernel_limit *limit)
{
    return limit->burst > 0 ? limit->burst : limit->most;
}

/* The time in which a whole burst comes back. */
static uint64_t forget_s(const struct weir_kernel_limit *limit)
{
    uint64_t refill_s =
        ((uint64_t)burst_of(limit) * limit->per_s + limit->most - 1) / limit->most + 1;

    return refill_s > FORGET_MIN_S ? refill_s : FORGET_MIN_S;
}

static const char *unit_of(uint32_t per_s)
{
    return per_s == 1 ? "second" : per_s == 60 ? "minute" : per_s == 3600 ? "hour" : "day";
}

/* --- Who is never limited --------------------------------------------------------------------- */

static void write_allowed(FILE *out, uint8_t family, const struct weir_cidr *proxies, size_t count)
{
    char text[WEIR_ADDRESS_TEXT_MAX];
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        if (proxies[i].address.family != family)
            continue;
        weir_address_format(&proxies[i].address, text);
        fprintf(out, "%s%s/%u",
                any           ? ", "
                : family == 4 ? "\t\tip saddr { "
                              : "\t\tip6 saddr { ",
                text, proxies[i].bits);
        any = true;
    }
    if (any)
        fputs(" } accept\n", out);
}

/* --- A limit ---------------------------------------------------------------------------------- */

static void write_comment(FILE *out, const struct weir_kernel_limit *limit)
{
    static const char *const what[] = {"new TCP connections", "open TCP connections",
                                       "packets of TCP and UDP to one port", "ICMP echo requests"};

    fprintf(out, "\n\t# %s: at most %u %s", limit->name, limit->most, what[limit->count]);
    if (limit->count != WEIR_KERNEL_COUNT_OPEN)
        fprintf(out, " a %s, burst %u,", unit_of(limit->per_s), burst_of(limit));
    fprintf(out, " from an IPv4 /%u or IPv6 /%u%s\n", limit->prefix4, limit->prefix6,
            limit->dry_run ? "; dry run: nothing is dropped" : "");
}

static void write_sets(FILE *out, const struct weir_kernel_limit *limit)
{
    const char *port = limit->count == WEIR_KERNEL_COUNT_PACKETS ? " . inet_service" : "";

    fprintf(out, "\tcounter %s_over { }\n", limit->name);
    for (unsigned family = 4; family <= 6; family += 2) {
        fprintf(out, "\tset %s_%u { type ipv%u_addr%s; size %u; ", limit->name, family, family,
                port, limit->sources);
        if (limit->count == WEIR_KERNEL_COUNT_OPEN)
            fputs("flags dynamic; }\n", out);
        else
            fprintf(out, "flags dynamic, timeout; timeout %llus; }\n",
                    (unsigned long long)forget_s(limit));
    }
}

static void write_ports(FILE *out, const struct weir_kernel_limit *limit, const char *protocol)
{
    if (limit->ports_count == 0)
        return;
    fprintf(out, "%s dport { ", protocol);
    for (uint8_t i = 0; i < limit->ports_count; i++)
        fprintf(out, "%s%u", i > 0 ? ", " : "", limit->ports[i]);
    fputs(" } ", out);
}

/* Which packets count. */
static void write_match(FILE *out, const struct weir_kernel_limit *limit, unsigned family)
{
    switch (limit->count) {
    case WEIR_KERNEL_COUNT_NEW:
        fputs("tcp flags & (fin | syn | rst | ack) == syn ", out);
        write_ports(out, limit, "tcp");
        break;
    case WEIR_KERNEL_COUNT_OPEN:
        fputs("tcp flags & (fin | syn | rst | ack) == syn ct state new ", out);
        write_ports(out, limit, "tcp");
        break;
    case WEIR_KERNEL_COUNT_PACKETS:
        fputs("meta l4proto { tcp, udp } ", out);
        write_ports(out, limit, "th");
        break;
    default:
        fputs(family == 4 ? "icmp type echo-request " : "icmpv6 type echo-request ", out);
    }
}

static void write_source(FILE *out, const struct weir_kernel_limit *limit, unsigned family)
{
    struct weir_address mask = {.family = (uint8_t)family};
    uint8_t bits = family == 4 ? limit->prefix4 : limit->prefix6;
    char text[WEIR_ADDRESS_TEXT_MAX];

    fputs(family == 4 ? "ip saddr" : "ip6 saddr", out);
    if (bits < (family == 4 ? 32 : 128)) {
        memset(mask.bytes, 0xff, family == 4 ? 4 : 16);
        weir_address_mask(&mask, bits);
        weir_address_format(&mask, text);
        fprintf(out, " & %s", text);
    }
    if (limit->count == WEIR_KERNEL_COUNT_PACKETS)
        fputs(" . th dport", out);
}

static void write_rule(FILE *out, const struct weir_kernel_limit *limit, unsigned family)
{
    fprintf(out, "\t\tmeta nfproto ipv%u ", family);
    write_match(out, limit, family);
    fprintf(out, "%s @%s_%u { ", limit->count == WEIR_KERNEL_COUNT_OPEN ? "add" : "update",
            limit->name, family);
    write_source(out, limit, family);
    if (limit->count == WEIR_KERNEL_COUNT_OPEN)
        fprintf(out, " ct count over %u }", limit->most);
    else
        fprintf(out, " limit rate over %u/%s burst %u packets }", limit->most,
                unit_of(limit->per_s), burst_of(limit));
    fprintf(out, " counter name %s_over%s\n", limit->name, limit->dry_run ? "" : " drop");
}

void weir_kernel_ruleset_write(FILE *out, const struct weir_kernel_settings *settings,
                               const struct weir_cidr *proxies, size_t proxies_count)
{
    char name[WEIR_KERNEL_RULESET_NAME_MAX];

    weir_kernel_ruleset_name(name, settings);
    fprintf(out,
            "# The limits of the kernel, made by `weir nft`: change the rules file, not this.\n"
            "# One transaction replaces the table; the counts of sources begin anew.\n"
            "add table inet %s\n"
            "delete table inet %s\n"
            "table inet %s {",
            name, name, name);
    for (uint32_t i = 0; i < settings->limits_count; i++) {
        write_comment(out, &settings->limits[i]);
        write_sets(out, &settings->limits[i]);
    }
    fputs("\n\t# Behind connection tracking, which `open_connections` asks.\n"
          "\tchain limits {\n"
          "\t\ttype filter hook prerouting priority mangle; policy accept;\n"
          "\t\tiif \"lo\" accept\n"
          "\t\t# Trusted proxies carry the requests of many.\n",
          out);
    write_allowed(out, 4, proxies, proxies_count);
    write_allowed(out, 6, proxies, proxies_count);
    for (uint32_t i = 0; i < settings->limits_count; i++)
        for (unsigned family = 4; family <= 6; family += 2)
            write_rule(out, &settings->limits[i], family);
    fputs("\t}\n}\n", out);
}
