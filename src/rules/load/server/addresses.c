/* SPDX-License-Identifier: Apache-2.0 */
/* see addresses.h */
#include "rules/load/server/addresses.h"

#include "core/bytes.h"
#include "core/text/nat64.h"

#define PROXIES_MAX 10000 /* all prefixes of a large content network */

void rules_load_proxies(struct rules_loader *loader, const struct rules_node *node)
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
    settings->trusted_proxies_given = true;
    settings->trust_unix = false;
    for (uint32_t i = 0; i < items.count && proxies; i++) {
        struct weir_bytes text;
        struct rules_quote quote;
        if (!rules_read_text(loader, items.items[i], "trusted_proxies", &text))
            continue;
        if (weir_bytes_are(text, "unix")) {
            settings->trust_unix = true;
        } else if (!rules_check_zone(loader, items.items[i], "trusted proxy", text)) {
            continue;
        } else if (weir_cidr_parse(&proxies[settings->trusted_proxy_count], text.data, text.size) <
                   0) {
            rules_problem(
                loader, items.items[i],
                "trusted proxy %s must be an address, a prefix such as `10.0.0.0/8`, or `unix`",
                rules_quote(&quote, text.data, text.size));
        } else {
            settings->trusted_proxy_count++;
        }
    }
}

void rules_load_nat64(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_settings *settings = &loader->rules->settings;
    struct rules_items items = rules_items_of(&node);
    struct weir_bytes text;
    struct rules_quote quote;
    if (node->kind == RULES_MAP || items.count > WEIR_NAT64_MAX) {
        rules_problem(loader, node, "`nat64` must be a list of at most %d prefixes",
                      WEIR_NAT64_MAX);
        return;
    }
    struct weir_cidr *prefixes = rules_keep(loader, (items.count + 1) * sizeof(*prefixes));
    settings->nat64 = prefixes;
    settings->nat64_count = 0;
    settings->nat64_given = true;
    for (uint32_t i = 0; i < items.count && prefixes; i++) {
        struct weir_cidr *prefix = &prefixes[settings->nat64_count];
        if (!rules_read_text(loader, items.items[i], "nat64", &text))
            continue;
        if (weir_cidr_parse(prefix, text.data, text.size) == 0 && weir_nat64_is_prefix(prefix))
            settings->nat64_count++;
        else
            rules_problem(loader, items.items[i],
                          "%s is no prefix of RFC 6052: write an IPv6 network such as "
                          "`64:ff9b::/96`, of 32, 40, 48, 56, 64 or 96 bits, whose bits 64 to 71 "
                          "are 0",
                          rules_quote(&quote, text.data, text.size));
    }
}
