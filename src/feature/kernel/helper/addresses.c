/* SPDX-License-Identifier: Apache-2.0 */
/* see addresses.h */
#include "feature/kernel/helper/addresses.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "feature/kernel/helper/netlink.h"

#define ANSWER_MAX 65536

int addresses_open(struct addresses *addresses)
{
    struct sockaddr_nl local = {.nl_family = AF_NETLINK};

    *addresses = (struct addresses){
        .fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), .sequence = 0};
    if (addresses->fd >= 0 && bind(addresses->fd, (struct sockaddr *)&local, sizeof local) == 0)
        return 0;
    int err = -errno;
    if (addresses->fd >= 0)
        close(addresses->fd);
    addresses->fd = -1;
    return err;
}

/* One address of an interface. IFA_ADDRESS is the peer's where IFA_LOCAL is there too. */
static int take_address(const uint8_t *body, size_t size, struct kernel_ranges *own)
{
    struct netlink_attribute address;
    struct ifaddrmsg head;
    const uint8_t *end = body + size, *at = body + NLMSG_ALIGN(sizeof head);
    uint8_t family;

    if (size < NLMSG_ALIGN(sizeof head))
        return -EPROTO;
    memcpy(&head, body, sizeof head);
    if (head.ifa_family != AF_INET && head.ifa_family != AF_INET6)
        return 0;
    family = head.ifa_family == AF_INET ? 4 : 6;
    if (!netlink_find(at, end, IFA_LOCAL, &address) &&
        !netlink_find(at, end, IFA_ADDRESS, &address))
        return 0;
    if (address.size != (family == 4 ? 4 : 16))
        return -EPROTO;
    return kernel_ranges_add(own, family, family == 4 ? 32 : 128, address.data);
}

/* Returns 1, 0 after the last answer, or -errno. */
static int take_answer(const struct nlmsghdr *head, const uint8_t *body, size_t size,
                       struct kernel_ranges *own)
{
    int end = netlink_end_of(head, body, size), err;

    if (head->nlmsg_flags & NLM_F_DUMP_INTR)
        return -EAGAIN; /* the list has changed meanwhile */
    if (end == 0 && head->nlmsg_type != NLMSG_DONE)
        return -EPROTO;
    if (end <= 0)
        return end;
    err = head->nlmsg_type == RTM_NEWADDR ? take_address(body, size, own) : 0;
    return err < 0 ? err : 1;
}

int addresses_take(const uint8_t *bytes, size_t size, uint32_t sequence, struct kernel_ranges *own)
{
    while (size >= sizeof(struct nlmsghdr)) {
        struct nlmsghdr head;
        size_t step;
        int more = 1; /* also after an answer to an earlier request, which failed in between */

        memcpy(&head, bytes, sizeof head);
        if (head.nlmsg_len < sizeof head || head.nlmsg_len > size)
            return -EPROTO;
        if (head.nlmsg_seq == sequence)
            more = take_answer(&head, bytes + sizeof head, head.nlmsg_len - sizeof head, own);
        if (more <= 0)
            return more;
        step = NLMSG_ALIGN(head.nlmsg_len);
        bytes += step < size ? step : size;
        size -= step < size ? step : size;
    }
    return 1;
}

/* Reads the rest of a list that was given up. The kernel makes its next part as one is read, and
 * answers no other request before the last (EBUSY). */
static void drain(int fd)
{
    uint8_t byte;

    while (recv(fd, &byte, sizeof byte, MSG_DONTWAIT) >= 0 || errno == EINTR)
        ;
}

static int ask(int fd, uint32_t sequence)
{
    struct {
        struct nlmsghdr head;
        struct ifaddrmsg body;
    } request = {.head = {.nlmsg_len = sizeof request,
                          .nlmsg_type = RTM_GETADDR,
                          .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                          .nlmsg_seq = sequence},
                 .body = {.ifa_family = AF_UNSPEC}};

    return send(fd, &request, sizeof request, 0) < 0 ? -errno : 0;
}

/* The kernel has answered by the time that send returns, or makes the next part while one is read.
 */
static int read_once(struct addresses *addresses, struct kernel_ranges *own)
{
    static _Alignas(8) uint8_t answer[ANSWER_MAX];
    int more;

    drain(addresses->fd);
    more = ask(addresses->fd, ++addresses->sequence);
    while (more >= 0) {
        ssize_t size = recv(addresses->fd, answer, sizeof answer, MSG_DONTWAIT);

        if (size < 0 && errno != EINTR)
            return errno == EAGAIN ? -EPROTO : -errno;
        if (size < 0)
            continue;
        more = addresses_take(answer, (size_t)size, addresses->sequence, own);
        if (more <= 0)
            return more;
    }
    return more;
}

int addresses_read(struct addresses *addresses, struct kernel_ranges *own)
{
    int err = -EAGAIN;

    for (int i = 0; i < NETLINK_TRIES && err == -EAGAIN; i++) {
        own->count = 0;
        err = read_once(addresses, own);
    }
    if (err < 0)
        own->count = 0;
    return err;
}
