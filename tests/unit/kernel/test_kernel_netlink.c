/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of nf_tables, from a socket that the test plays: lists that fail or change while they are
 * read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include "feature/kernel/helper/netlink.h"
#include "feature/kernel/helper/table.h"
#include "test.h"

struct rig {
    struct netlink netlink;
    struct kernel_table table;
    int kernel; /* the other end */
    _Alignas(8) uint8_t answer[4096];
    size_t size;
};

static int open_rig(void **state)
{
    static struct rig rig;
    int pair[2];
    rig = (struct rig){.size = 0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    rig.netlink = (struct netlink){.fd = pair[0], .sequence = 1};
    rig.kernel = pair[1];
    rig.table.netlink = &rig.netlink;
    rig.table.known = true;
    strcpy(rig.table.open.table, "weir");
    *state = &rig;
    return 0;
}

static int close_rig(void **state)
{
    struct rig *rig = *state;
    close(rig->netlink.fd);
    close(rig->kernel);
    free(rig->netlink.bytes);
    return 0;
}

static void put(struct rig *rig, uint32_t sequence, uint16_t type, uint16_t flags, const void *body,
                size_t size)
{
    struct nlmsghdr head = {.nlmsg_len = (uint32_t)(sizeof head + size),
                            .nlmsg_type = type,
                            .nlmsg_flags = flags,
                            .nlmsg_seq = sequence};
    memcpy(rig->answer + rig->size, &head, sizeof head);
    memcpy(rig->answer + rig->size + sizeof head, body, size);
    rig->size += NLMSG_ALIGN(sizeof head + size);
}

/* The end of a list, and what one receive brings. */
static void put_end(struct rig *rig, uint32_t sequence, uint16_t flags, int32_t err)
{
    put(rig, sequence, NLMSG_DONE, flags, &err, sizeof err);
    assert_int_equal(send(rig->kernel, rig->answer, rig->size, 0), rig->size);
    rig->size = 0;
}

static size_t put_attribute(uint8_t *at, uint16_t type, const void *data, size_t size)
{
    const uint16_t head[2] = {(uint16_t)(4 + size), type};
    memcpy(at, head, sizeof head);
    memcpy(at + 4, data, size);
    return NLMSG_ALIGN(4 + size);
}

/* The counter of ban4_32. */
static void put_counter(struct rig *rig, uint32_t sequence, uint16_t flags, uint64_t packets)
{
    const struct nfgenmsg generic = {.nfgen_family = 1};
    const uint64_t big = htobe64(packets);
    uint8_t body[256] = {0}, data[32] = {0};
    size_t size = sizeof generic, inner;
    memcpy(body, &generic, sizeof generic);
    size += put_attribute(body + size, NFTA_OBJ_NAME, "ban4_32", sizeof "ban4_32");
    inner = put_attribute(data, NFTA_COUNTER_PACKETS, &big, sizeof big);
    size += put_attribute(body + size, NFTA_OBJ_DATA, data, inner);
    put(rig, sequence, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWOBJ, flags, body, size);
}

TEST_WITH(open_rig, close_rig, "a list of counters is read")
{
    static struct weir_kernel_message message;
    struct rig *rig = *state;
    put_counter(rig, 1, NLM_F_MULTI, 7);
    put_end(rig, 1, NLM_F_MULTI, 0);
    assert_int_equal(kernel_table_counts(&rig->table, &message), 0);
    assert_int_equal(message.head.count, 1);
    assert_int_equal(message.counters[0].packets, 7);
}

TEST_WITH(open_rig, close_rig, "a list that ends with an error is one")
{
    static struct weir_kernel_message message;
    struct rig *rig = *state;
    put_counter(rig, 1, NLM_F_MULTI, 7);
    put_end(rig, 1, NLM_F_MULTI, -ENOMEM);
    assert_int_equal(kernel_table_counts(&rig->table, &message), -ENOMEM);
}

/* Of the first reading nothing is kept, wherever the list says that it has changed. */
TEST_WITH(open_rig, close_rig, "a list that changes while it is read is read again")
{
    static struct weir_kernel_message message;
    struct rig *rig = *state;
    for (int at_end = 0; at_end < 2; at_end++) {
        uint32_t first = rig->netlink.sequence;
        put_counter(rig, first, at_end ? 0 : NLM_F_DUMP_INTR, 7);
        put_counter(rig, first, 0, 8);
        put_end(rig, first, at_end ? NLM_F_DUMP_INTR : 0, 0);
        put_counter(rig, first + 1, 0, 9);
        put_end(rig, first + 1, 0, 0);
        assert_int_equal(kernel_table_counts(&rig->table, &message), 0);
        assert_int_equal(message.head.count, 1);
        assert_int_equal(message.counters[0].packets, 9);
    }
}

TEST_WITH(open_rig, close_rig, "a list that always changes is given up")
{
    static struct weir_kernel_message message;
    struct rig *rig = *state;
    for (uint32_t i = 1; i <= NETLINK_TRIES + 1; i++)
        put_end(rig, i, NLM_F_DUMP_INTR, 0);
    assert_int_equal(kernel_table_counts(&rig->table, &message), -EAGAIN);
    assert_int_equal(rig->netlink.sequence, 1 + NETLINK_TRIES);
}

RUN_TESTS()
