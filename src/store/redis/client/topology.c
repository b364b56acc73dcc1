/* SPDX-License-Identifier: Apache-2.0 */
/* See topology.h. */
#include "store/redis/client/topology.h"

#include <stdio.h>
#include <string.h>

#include "store/redis/client/refusal.h"

#define QUOTE_MAX 160

/* A reply's nodes, a container before its elements. */
struct tree {
    const struct weir_resp_node *nodes;
    uint32_t count;
};

static uint32_t tree_next(const struct tree *tree, uint32_t at)
{
    uint8_t depth = tree->nodes[at].depth;
    do {
        at++;
    } while (at < tree->count && tree->nodes[at].depth > depth);
    return at;
}

static bool is_text(const struct weir_resp_node *node)
{
    return node->type == WEIR_RESP_BULK || node->type == WEIR_RESP_SIMPLE;
}

static bool text_equals(const struct weir_resp_node *node, const char *text)
{
    return is_text(node) && node->text.size == strlen(text) &&
           memcmp(node->text.data, text, node->text.size) == 0;
}

static bool number_of(const struct weir_resp_node *node, uint64_t *value)
{
    if (node->type == WEIR_RESP_INTEGER) {
        *value = (uint64_t)node->integer;
        return node->integer >= 0;
    }
    if (!is_text(node) || node->text.size == 0 || node->text.size > 19)
        return false;
    *value = 0;
    for (size_t i = 0; i < node->text.size; i++) {
        char c = node->text.data[i];
        if (c < '0' || c > '9')
            return false;
        *value = 10 * *value + (uint64_t)(c - '0');
    }
    return true;
}

/* A host: text, or null for the one that was asked. Then its port. */
static bool host_of(const struct weir_resp_node *name, const struct weir_resp_node *port,
                    const struct redis_host *asked, struct redis_host *host)
{
    uint64_t number;
    return (is_text(name) || name->type == WEIR_RESP_NULL) && number_of(port, &number) &&
           redis_named_host(name->text, number, asked, host) == 0;
}

/* Fails with what the server said, if it said an error, else with `what` it should have been. */
static int refuse(struct weir_reason *reason, const struct tree *tree, const char *what)
{
    char quote[QUOTE_MAX];
    if (tree->nodes[0].type == WEIR_RESP_ERROR) {
        snprintf(reason->text, sizeof reason->text, "%s: %s", what,
                 redis_quote(quote, sizeof quote, tree->nodes[0].text));
        return WEIR_ERR_STORE;
    }
    snprintf(reason->text, sizeof reason->text, "%s: not an answer of Redis", what);
    return WEIR_ERR_SYNTAX;
}

/* The index of a master in the topology, added if it is new; REDIS_NO_MASTER: too many. */
static uint16_t master_index(struct redis_topology *topology, const struct redis_host *host)
{
    /* Ranges of a master often follow each other. */
    for (uint16_t i = topology->count; i-- > 0;)
        if (topology->masters[i].port == host->port &&
            strcmp(topology->masters[i].name, host->name) == 0)
            return i;
    if (topology->count == REDIS_MASTERS_MAX)
        return REDIS_NO_MASTER;
    topology->masters[topology->count] = *host;
    return topology->count++;
}

/* One range: [first, last, [host, port, …], replicas…]. */
static int range_read(struct redis_topology *topology, const struct redis_host *asked,
                      const struct weir_resp_node *range)
{
    uint64_t first, last;
    struct redis_host host;
    if (range[0].type != WEIR_RESP_ARRAY || range[0].count < 3 || !number_of(&range[1], &first) ||
        !number_of(&range[2], &last) || first > last || last >= REDIS_CLUSTER_SLOTS ||
        range[3].type != WEIR_RESP_ARRAY || range[3].count < 2 ||
        !host_of(&range[4], &range[5], asked, &host))
        return WEIR_ERR_SYNTAX;
    uint16_t master = master_index(topology, &host);
    for (uint64_t slot = first; slot <= last; slot++)
        topology->owners[slot] = master;
    return master == REDIS_NO_MASTER ? WEIR_ERR_TOO_LARGE : 0;
}

int redis_topology_read(struct redis_topology *topology, const struct redis_host *asked,
                        const struct weir_resp_node *nodes, uint32_t count,
                        struct weir_reason *reason)
{
    static const char what[] = "CLUSTER SLOTS";
    struct tree tree = {nodes, count};

    topology->count = 0;
    memset(topology->owners, 0xff, sizeof topology->owners);
    if (nodes[0].type != WEIR_RESP_ARRAY)
        return refuse(reason, &tree, what);
    for (uint32_t at = 1; at < count; at = tree_next(&tree, at)) {
        int error = range_read(topology, asked, &nodes[at]);
        if (error == WEIR_ERR_TOO_LARGE) {
            snprintf(reason->text, sizeof reason->text, "%s: more than %d masters", what,
                     REDIS_MASTERS_MAX);
            return error;
        }
        if (error != 0)
            return refuse(reason, &tree, what);
    }
    if (topology->count == 0) {
        snprintf(reason->text, sizeof reason->text, "%s: it names no master for any slot", what);
        return WEIR_ERR_SYNTAX;
    }
    return 0;
}

int redis_master_read(struct redis_host *master, const struct redis_host *asked,
                      const struct weir_resp_node *nodes, uint32_t count,
                      struct weir_reason *reason)
{
    static const char what[] = "SENTINEL GET-MASTER-ADDR-BY-NAME";
    struct tree tree = {nodes, count};
    if (nodes[0].type == WEIR_RESP_NULL) {
        snprintf(reason->text, sizeof reason->text, "the sentinel has no group of this name");
        return WEIR_ERR_NOT_FOUND;
    }
    if (nodes[0].type != WEIR_RESP_ARRAY || nodes[0].count != 2 || count != 3 ||
        !host_of(&nodes[1], &nodes[2], asked, master))
        return refuse(reason, &tree, what);
    return 0;
}

uint64_t redis_epoch_read(const struct weir_resp_node *nodes, uint32_t count)
{
    uint64_t epoch;
    if (nodes[0].type != WEIR_RESP_ARRAY || count != nodes[0].count + 1)
        return 0; /* an error, or nested: not the flat list of names and values */
    for (uint32_t i = 1; i + 1 < count; i += 2)
        if (text_equals(&nodes[i], "config-epoch") && number_of(&nodes[i + 1], &epoch))
            return epoch;
    return 0;
}

int redis_role_read(const struct weir_resp_node *nodes, uint32_t count, struct weir_reason *reason)
{
    struct tree tree = {nodes, count};
    char quote[64];
    if (nodes[0].type != WEIR_RESP_ARRAY || count < 2 || !is_text(&nodes[1]))
        return refuse(reason, &tree, "ROLE");
    if (!text_equals(&nodes[1], "master")) {
        snprintf(reason->text, sizeof reason->text, "it is not a master (its role is %s)",
                 redis_quote(quote, sizeof quote, nodes[1].text));
        return WEIR_ERR_STORE;
    }
    return 0;
}
