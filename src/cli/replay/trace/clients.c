/* SPDX-License-Identifier: Apache-2.0 */
/* see clients.h */
#include "cli/replay/trace/clients.h"

#include <inttypes.h>
#include <string.h>

#include "cli/options.h"
#include "server/text/print.h"

bool replay_proxies_parse(struct replay_proxies *proxies, const char *text)
{
    *proxies = (struct replay_proxies){.given = true};
    if (strcmp(text, "none") == 0)
        return true;
    for (const char *at = text;; at++) {
        size_t size = strcspn(at, ",");
        bool local = size == 4 && memcmp(at, "unix", 4) == 0;
        proxies->local |= local;
        if (!local && (proxies->count == REPLAY_PROXIES_MAX ||
                       weir_cidr_parse(&proxies->networks[proxies->count++], at, size) < 0))
            return false;
        at += size;
        if (*at == '\0')
            return true;
    }
}

void replay_clients_init(struct replay_clients *clients, const struct replay_proxies *given,
                         const struct weir_settings *settings)
{
    *clients = (struct replay_clients){0};
    if (given && given->given) {
        clients->log.trusted = (struct weir_proxies){given->networks, given->count, given->local};
        clients->trusted_by = "--trusted-proxies";
    } else if (settings && settings->trusted_proxies_given) {
        clients->log.trusted = (struct weir_proxies){
            settings->trusted_proxies, settings->trusted_proxy_count, settings->trust_unix};
        clients->trusted_by = "server.trusted_proxies of the rules";
    } else {
        clients->log.trusted = weir_log_private_proxies;
        clients->trusted_by = "private networks, as nobody names others";
    }
}

/* --- The report ------------------------------------------------------------------------------- */

void replay_clients_print(const struct replay_clients *clients, const char *prefix, FILE *out)
{
    const struct weir_log_clients *found = &clients->log;
    if (found->forwarded > 0)
        fprintf(out,
                "%s%" PRIu64 " clients are from X-Forwarded-For or Forwarded, behind trusted "
                "proxies: %s\n",
                prefix, found->forwarded, clients->trusted_by);
    if (found->lists > 0)
        fprintf(out,
                "%s%" PRIu64 " clients are from lists of addresses: the last that is not a "
                "trusted proxy (%s)\n",
                prefix, found->lists, clients->trusted_by);
    if (found->unread > 0)
        fprintf(out,
                "%s%" PRIu64 " lines have an X-Forwarded-For or Forwarded of a peer that is not a "
                "trusted proxy, and count for the peer: --trusted-proxies names proxies\n",
                prefix, found->unread);
    if (found->unknown > 0)
        fprintf(out, "%s%" PRIu64 " lines do not say who the client is\n", prefix, found->unknown);
    if (found->names > 0)
        fprintf(out, "%s%" PRIu64 " clients are names of hosts, each counted apart\n", prefix,
                found->names);
    if (found->odd == 0)
        return;
    fprintf(out, "%s%" PRIu64 " of these names look like addresses:", prefix, found->odd);
    for (uint32_t i = 0; i < found->odd_shown; i++) {
        fputs(i > 0 ? ", " : " ", out);
        weir_print_text(out, found->odd_name[i], strlen(found->odd_name[i]), WEIR_LOG_ODD_BYTES);
    }
    fputs(found->odd_more ? ", …\n" : "\n", out);
}
