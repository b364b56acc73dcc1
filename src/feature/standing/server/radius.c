/* SPDX-License-Identifier: Apache-2.0 */
/* see radius.h */
#include "feature/standing/server/radius.h"

#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "core/text/reason.h"
#include "feature/use/server/daemon.h"
#include "feature/use/server/known.h"
#include "server/daemon/daemon.h"

#define MUCH_PERCENT 1
#define MUCH_OF 100 /* requests at least: of fewer, 1 % is less than one request */
#define LARGE_BITS4 16
#define LARGE_BITS6 48

static bool overlap(const struct weir_cidr *a, const struct weir_cidr *b)
{
    return weir_cidr_contains(a, &b->address) || weir_cidr_contains(b, &a->address);
}

/* What is known of a network: the addresses in it among the callers. */
static void count_network(struct weir_use_service *use, const struct weir_cidr *network,
                          struct weir_radius *radius)
{
    const struct weir_heavy *read = use->read[WEIR_SEEN_CALLERS];
    for (uint32_t i = 0; i < weir_heavy_used(read); i++) {
        struct weir_heavy_entry entry;
        struct weir_cidr caller;
        struct weir_shown value;
        weir_heavy_get(read, i, &entry);
        struct weir_bytes packed = {entry.text, entry.text_size};
        if (!weir_bytes_are((struct weir_bytes){entry.name, entry.name_size}, WEIR_USE_ADDRESS) ||
            !weir_shown_next(&packed, &value) ||
            weir_cidr_parse(&caller, value.value.data, value.value.size) < 0 ||
            !overlap(network, &caller))
            continue;
        radius->callers++;
        radius->requests += entry.count - entry.error;
    }
}

static uint64_t count_all(struct weir_use_service *use, uint64_t now_ns)
{
    struct weir_heavy *read = use->read[WEIR_SEEN_CALLERS];
    uint64_t all = 0;
    if (weir_windows_read(use->seen[WEIR_SEEN_CALLERS], WEIR_WINDOW_DAY, now_ns, read) < 0)
        weir_heavy_clear(read);
    for (uint32_t i = 0; i < weir_heavy_used(read); i++) {
        struct weir_heavy_entry entry;
        weir_heavy_get(read, i, &entry);
        if (weir_bytes_are((struct weir_bytes){entry.name, entry.name_size}, WEIR_USE_ALL))
            all = entry.count;
    }
    return all;
}

/* What speaks against refusing a network, whatever its traffic. */
static unsigned doubts_of(const struct weir_daemon *daemon, const struct weir_cidr *network,
                          const struct weir_address *peer)
{
    static const struct weir_cidr loopback4 = {{.family = 4, .bytes = {127}}, 8};
    static const struct weir_cidr loopback6 = {
        {.family = 6, .bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}, 128};
    const struct weir_settings *settings = weir_rules_settings(daemon->rules);
    unsigned doubts = 0;
    if (network->bits < (network->address.family == 6 ? LARGE_BITS6 : LARGE_BITS4))
        doubts |= WEIR_RADIUS_LARGE;
    if (overlap(network, &loopback4) || overlap(network, &loopback6))
        doubts |= WEIR_RADIUS_LOOPBACK;
    for (size_t i = 0; settings->trusted_proxies_given && i < settings->trusted_proxy_count; i++)
        if (overlap(network, &settings->trusted_proxies[i]))
            doubts |= WEIR_RADIUS_PROXY;
    if (peer->family != 0 && weir_cidr_contains(network, peer))
        doubts |= WEIR_RADIUS_SELF;
    return doubts;
}

void weir_radius_find(struct weir_daemon *daemon, const struct weir_standing_value *value,
                      struct weir_bytes text, const struct weir_address *peer, uint64_t now_ns,
                      struct weir_radius *radius)
{
    struct weir_use_service *use = weir_daemon_use(daemon);
    struct weir_sighting seen;
    *radius = (struct weir_radius){.doubts = 0};
    weir_use_known(use, value->kind->name, text, now_ns, &seen);
    radius->all = count_all(use, now_ns);
    if (value->kind->address) {
        count_network(use, &value->network, radius);
        radius->doubts = doubts_of(daemon, &value->network, peer);
    } else {
        radius->requests = seen.requests;
        radius->callers = seen.seen;
        radius->doubts = seen.seen ? 0 : WEIR_RADIUS_UNKNOWN;
    }
    if (radius->all >= MUCH_OF && radius->requests > radius->all / (100 / MUCH_PERCENT))
        radius->doubts |= WEIR_RADIUS_MUCH;
}

/* --- Texts ------------------------------------------------------------------------------------ */

static double percent(const struct weir_radius *radius)
{
    return radius->all > 0
               ? (double)(uint64_t)((double)radius->requests * 1000 / (double)radius->all) / 10
               : 0;
}

static const struct {
    unsigned doubt;
    const char *text;
} texts[] = {
    {WEIR_RADIUS_MUCH, "more than 1 % of all requests of the last day are from it"},
    {WEIR_RADIUS_LARGE, "the network is larger than a /16, or a /48 of IPv6"},
    {WEIR_RADIUS_LOOPBACK, "it contains loopback addresses"},
    {WEIR_RADIUS_PROXY, "it contains a proxy of server.trusted_proxies"},
    {WEIR_RADIUS_SELF, "it contains the address that you come from"},
    {WEIR_RADIUS_UNKNOWN, "no recent denial and no busy caller has this value: is it spelt right?"},
};

json_t *weir_radius_json(const struct weir_radius *radius)
{
    json_t *asks = json_array();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (radius->doubts & texts[i].doubt)
            json_array_append_new(asks, json_string(texts[i].text));
    return json_pack("{s:I, s:I, s:f, s:I, s:o}", "requests_at_least", (json_int_t)radius->requests,
                     "requests", (json_int_t)radius->all, "percent", percent(radius),
                     "callers_at_least", (json_int_t)radius->callers, "asks", asks);
}

void weir_radius_why(const struct weir_radius *radius, struct weir_reason *reason)
{
    char counts[160];
    *reason = (struct weir_reason){{0}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!(radius->doubts & texts[i].doubt))
            continue;
        if (reason->text[0])
            reason_text(reason, "; ");
        reason_text(reason, texts[i].text);
    }
    snprintf(counts, sizeof counts,
             " (at least %llu of %llu requests of the last day, %llu known callers)",
             (unsigned long long)radius->requests, (unsigned long long)radius->all,
             (unsigned long long)radius->callers);
    reason_text(reason, counts);
}
