/* SPDX-License-Identifier: Apache-2.0 */
/* What servers and sentinels say of where the masters are: any reply makes a map within bounds, or
 * a reason. */
#include "replies.h"

#include "store/redis/client/refusal.h"
#include "store/redis/client/topology.h"

static const struct redis_host asked = {.name = "asked", .port = 6379};

static void check_host(const struct redis_host *host)
{
    REQUIRE(memchr(host->name, '\0', sizeof host->name) != NULL);
    REQUIRE(host->name[0] != '\0' && host->port != 0);
}

static void check_slots(const struct weir_resp_node *nodes, uint32_t count)
{
    struct redis_topology *topology = malloc(sizeof *topology);
    struct weir_reason reason = {""};

    REQUIRE(topology != NULL);
    if (redis_topology_read(topology, &asked, nodes, count, &reason) != 0) {
        REQUIRE(reason.text[0] != '\0');
    } else {
        REQUIRE(topology->count > 0 && topology->count <= REDIS_MASTERS_MAX);
        for (uint32_t slot = 0; slot < REDIS_CLUSTER_SLOTS; slot++) {
            uint16_t owner = topology->owners[slot];
            REQUIRE(owner == REDIS_NO_MASTER || owner < topology->count);
        }
        for (uint16_t i = 0; i < topology->count; i++)
            check_host(&topology->masters[i]);
    }
    free(topology);
}

static void check_others(const struct weir_resp_node *nodes, uint32_t count)
{
    struct redis_host host;
    struct weir_reason reason = {""};
    uint16_t slot;

    if (redis_master_read(&host, &asked, nodes, count, &reason) == 0)
        check_host(&host);
    redis_epoch_read(nodes, count);
    if (redis_role_read(nodes, count, &reason) != 0)
        REQUIRE(reason.text[0] != '\0');
    if (nodes[0].type == WEIR_RESP_ERROR && nodes[0].text.size > 0) {
        enum redis_refusal refusal = redis_refusal_of(nodes[0].text);
        REQUIRE(refusal <= REDIS_REFUSAL_REPLICA);
        if (redis_redirection_read(nodes[0].text, &asked, &slot, &host) == 0) {
            REQUIRE(slot < REDIS_CLUSTER_SLOTS);
            check_host(&host);
        }
    }
}

static void check_reply(const struct weir_resp_node *nodes, uint32_t count, void *context)
{
    (void)context;
    check_slots(nodes, count);
    check_others(nodes, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for_each_reply(data, size, check_reply, NULL);
    return 0;
}
