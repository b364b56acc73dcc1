/* SPDX-License-Identifier: Apache-2.0 */
/* see netlink.h */
#include "feature/kernel/helper/netlink.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#define FIRST_ROOM 65536
#define ANSWER_MAX 65536
/* Answers wait here while a transaction is sent: errors of many messages come at once. */
#define RECEIVE_BYTES (4 << 20)
#define ATTRIBUTE_HEAD 4

int netlink_open(struct netlink *netlink)
{
    struct sockaddr_nl local = {.nl_family = AF_NETLINK};
    const int send_bytes = NETLINK_BUFFER_MAX, receive_bytes = RECEIVE_BYTES, on = 1;

    *netlink = (struct netlink){.sequence = 1};
    netlink->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    if (netlink->fd < 0)
        return -errno;
    if (bind(netlink->fd, (struct sockaddr *)&local, sizeof local) < 0) {
        int err = -errno;

        close(netlink->fd);
        netlink->fd = -1;
        return err;
    }
    /* A transaction is one message of the socket. Without the right, what the system allows. */
    (void)setsockopt(netlink->fd, SOL_SOCKET, SO_SNDBUFFORCE, &send_bytes, sizeof send_bytes);
    (void)setsockopt(netlink->fd, SOL_SOCKET, SO_RCVBUFFORCE, &receive_bytes, sizeof receive_bytes);
    /* An error's answer does not repeat the message. */
    (void)setsockopt(netlink->fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
    return 0;
}

/* --- Writing ---------------------------------------------------------------------------------- */

/* Zeroed room at the end of the buffer; NULL: there is none, and the buffer is not sent. */
static void *grow(struct netlink *netlink, size_t size)
{
    size_t aligned = NLMSG_ALIGN(size);
    uint8_t *at;

    if (netlink->full || netlink->size + aligned > NETLINK_BUFFER_MAX) {
        netlink->full = true;
        return NULL;
    }
    if (netlink->size + aligned > netlink->room) {
        size_t room = netlink->room ? netlink->room : FIRST_ROOM;
        uint8_t *bytes;

        while (room < netlink->size + aligned)
            room *= 2;
        bytes = realloc(netlink->bytes, room);
        if (!bytes) {
            netlink->full = true;
            return NULL;
        }
        netlink->bytes = bytes;
        netlink->room = room;
    }
    at = netlink->bytes + netlink->size;
    memset(at, 0, aligned);
    netlink->size += aligned;
    return at;
}

void netlink_begin(struct netlink *netlink)
{
    netlink->size = 0;
    netlink->batch = netlink->full = false;
}

static void put_head(struct netlink *netlink, uint16_t type, uint8_t family, uint16_t flags,
                     uint16_t resource)
{
    const struct nlmsghdr head = {
        .nlmsg_type = type, .nlmsg_flags = flags, .nlmsg_seq = netlink->sequence++};
    const struct nfgenmsg generic = {
        .nfgen_family = family, .version = NFNETLINK_V0, .res_id = htons(resource)};
    uint8_t *at;

    netlink->message = netlink->size;
    at = grow(netlink, sizeof head + sizeof generic);
    if (!at)
        return;
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, &generic, sizeof generic);
}

void netlink_end(struct netlink *netlink)
{
    uint32_t size = (uint32_t)(netlink->size - netlink->message);

    if (!netlink->full)
        memcpy(netlink->bytes + netlink->message, &size, sizeof size);
}

void netlink_begin_batch(struct netlink *netlink)
{
    netlink_begin(netlink);
    netlink->batch = true;
    put_head(netlink, NFNL_MSG_BATCH_BEGIN, 0, NLM_F_REQUEST, NFNL_SUBSYS_NFTABLES);
    netlink_end(netlink);
}

void netlink_end_batch(struct netlink *netlink)
{
    struct nlmsghdr last;

    if (!netlink->full) { /* its answer is that of the transaction */
        memcpy(&last, netlink->bytes + netlink->message, sizeof last);
        last.nlmsg_flags |= NLM_F_ACK;
        memcpy(netlink->bytes + netlink->message, &last, sizeof last);
    }
    put_head(netlink, NFNL_MSG_BATCH_END, 0, NLM_F_REQUEST, NFNL_SUBSYS_NFTABLES);
    netlink_end(netlink);
}

void netlink_message(struct netlink *netlink, uint8_t type, uint8_t family, uint16_t flags)
{
    put_head(netlink, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), family,
             (uint16_t)(NLM_F_REQUEST | flags), 0);
}

static uint8_t *put_attribute(struct netlink *netlink, uint16_t type, size_t size)
{
    uint16_t head[2] = {(uint16_t)(ATTRIBUTE_HEAD + size), type};
    uint8_t *at = grow(netlink, ATTRIBUTE_HEAD + size);

    if (!at)
        return NULL;
    memcpy(at, head, sizeof head);
    return at + ATTRIBUTE_HEAD;
}

void netlink_put(struct netlink *netlink, uint16_t type, const void *data, size_t size)
{
    uint8_t *at = put_attribute(netlink, type, size);

    if (at)
        memcpy(at, data, size);
}

void netlink_put_text(struct netlink *netlink, uint16_t type, const char *text)
{
    netlink_put(netlink, type, text, strlen(text) + 1);
}

void netlink_put_u32(struct netlink *netlink, uint16_t type, uint32_t value)
{
    value = htobe32(value);
    netlink_put(netlink, type, &value, sizeof value);
}

void netlink_put_u64(struct netlink *netlink, uint16_t type, uint64_t value)
{
    value = htobe64(value);
    netlink_put(netlink, type, &value, sizeof value);
}

size_t netlink_nest(struct netlink *netlink, uint16_t type)
{
    size_t nest = netlink->size;

    put_attribute(netlink, type | NLA_F_NESTED, 0);
    return nest;
}

void netlink_nest_end(struct netlink *netlink, size_t nest)
{
    uint16_t size = (uint16_t)(netlink->size - nest);

    if (!netlink->full)
        memcpy(netlink->bytes + nest, &size, sizeof size);
}

/* --- Reading ---------------------------------------------------------------------------------- */

bool netlink_next(const uint8_t **at, const uint8_t *end, struct netlink_attribute *attribute)
{
    uint16_t head[2];
    size_t left = (size_t)(end - *at);

    if (left < ATTRIBUTE_HEAD)
        return false;
    memcpy(head, *at, sizeof head);
    if (head[0] < ATTRIBUTE_HEAD || head[0] > left)
        return false;
    *attribute = (struct netlink_attribute){.type = head[1] & NLA_TYPE_MASK,
                                            .size = (uint16_t)(head[0] - ATTRIBUTE_HEAD),
                                            .data = *at + ATTRIBUTE_HEAD};
    *at += NLMSG_ALIGN(head[0]) < left ? NLMSG_ALIGN(head[0]) : left;
    return true;
}

bool netlink_find(const uint8_t *at, const uint8_t *end, uint16_t type,
                  struct netlink_attribute *attribute)
{
    while (netlink_next(&at, end, attribute))
        if (attribute->type == type)
            return true;
    return false;
}

uint64_t netlink_number(const struct netlink_attribute *attribute)
{
    uint64_t value = 0;

    for (uint16_t i = 0; i < attribute->size && i < sizeof value; i++)
        value = value << 8 | attribute->data[i];
    return value;
}

int netlink_end_of(const struct nlmsghdr *head, const uint8_t *body, size_t size)
{
    int32_t err = 0;

    if (head->nlmsg_type != NLMSG_DONE && head->nlmsg_type != NLMSG_ERROR)
        return 1;
    if (size >= sizeof err)
        memcpy(&err, body, sizeof err);
    return err < 0 ? err : 0;
}

/* One answer. True: it is the last one; *result is 0 or -errno, -EAGAIN already where the list has
 * changed meanwhile: the rest of it is read, or the next request would get it. */
static bool read_answer(const struct nlmsghdr *head, const uint8_t *body, size_t size,
                        void (*take)(void *, const uint8_t *, const uint8_t *), void *context,
                        int *result)
{
    int end = netlink_end_of(head, body, size);

    if ((head->nlmsg_flags & NLM_F_DUMP_INTR) != 0)
        *result = -EAGAIN;
    if (end < 0)
        *result = end;
    else if (end > 0 && take && size >= sizeof(struct nfgenmsg))
        take(context, body + sizeof(struct nfgenmsg), body + size);
    return end <= 0;
}

/* Answers that one receive brought. True: the last one was among them. */
static bool read_answers(const uint8_t *bytes, size_t size, uint32_t first,
                         void (*take)(void *, const uint8_t *, const uint8_t *), void *context,
                         int *result, uint32_t *failed)
{
    while (size >= sizeof(struct nlmsghdr)) {
        struct nlmsghdr head;
        size_t step;

        memcpy(&head, bytes, sizeof head);
        if (head.nlmsg_len < sizeof head || head.nlmsg_len > size)
            return false;
        /* An answer to a message of an earlier call, which failed in between, is none of this. */
        if (head.nlmsg_seq - first < UINT32_MAX / 2 &&
            read_answer(&head, bytes + sizeof head, head.nlmsg_len - sizeof head, take, context,
                        result)) {
            *failed = head.nlmsg_seq - first;
            return true;
        }
        step = NLMSG_ALIGN(head.nlmsg_len);
        bytes += step < size ? step : size;
        size -= step < size ? step : size;
    }
    return false;
}

int netlink_talk(struct netlink *netlink,
                 void (*take)(void *context, const uint8_t *at, const uint8_t *end), void *context,
                 uint32_t *failed)
{
    static _Alignas(8) uint8_t answer[ANSWER_MAX];
    struct nlmsghdr head;
    int result = 0;

    *failed = 0;
    if (netlink->full)
        return -ENOMEM;
    memcpy(&head, netlink->bytes, sizeof head);
    if (send(netlink->fd, netlink->bytes, netlink->size, 0) < 0)
        return -errno;
    for (;;) {
        /* The kernel has answered by the time that send returns, except for more parts of a list,
         * which it makes while they are read. */
        ssize_t size = recv(netlink->fd, answer, sizeof answer, MSG_DONTWAIT);

        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            return errno == EAGAIN ? -EPROTO : -errno;
        if (read_answers(answer, (size_t)size, head.nlmsg_seq, take, context, &result, failed))
            return result;
    }
}
