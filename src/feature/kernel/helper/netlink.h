/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of nf_tables over netlink: written into one buffer, sent at once, and their answers.
 *
 * Source: linux/netlink.h, linux/netfilter/nf_tables.h; the order of attributes and the byte order
 * of numbers (big-endian) as libnftnl has them.
 *
 * Between netlink_begin_batch and netlink_end_batch, all messages are one transaction: the kernel
 * does all of them or none (nfnetlink's NFNL_MSG_BATCH_BEGIN and END).
 *
 * Memory: a buffer that grows up to NETLINK_BUFFER_MAX and is kept.
 * Threads: one owner.
 */
#ifndef WEIR_FEATURE_KERNEL_HELPER_NETLINK_H
#define WEIR_FEATURE_KERNEL_HELPER_NETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 65,536 new elements of 100 bytes, and the sets. */
#define NETLINK_BUFFER_MAX (32U << 20)

struct netlink {
    int fd;
    uint32_t sequence;
    uint8_t *bytes;
    size_t size, room;
    size_t message;   /* where the message that is being written begins */
    bool batch, full; /* full: no memory, or more than the most */
};

/* Opens the socket. Returns 0 or -errno. */
int netlink_open(struct netlink *netlink);

/* Begins the buffer anew, for one request or for a transaction. */
void netlink_begin(struct netlink *netlink);
void netlink_begin_batch(struct netlink *netlink);
void netlink_end_batch(struct netlink *netlink);

/* A message of nf_tables: its type (NFT_MSG_...), NFPROTO_... and flags (NLM_F_...), then its
 * attributes up to netlink_end. */
void netlink_message(struct netlink *netlink, uint8_t type, uint8_t family, uint16_t flags);
void netlink_end(struct netlink *netlink);

void netlink_put(struct netlink *netlink, uint16_t type, const void *data, size_t size);
void netlink_put_text(struct netlink *netlink, uint16_t type, const char *text);
void netlink_put_u32(struct netlink *netlink, uint16_t type, uint32_t value);
void netlink_put_u64(struct netlink *netlink, uint16_t type, uint64_t value);
/* Returns where the nest begins, for netlink_nest_end. */
size_t netlink_nest(struct netlink *netlink, uint16_t type);
void netlink_nest_end(struct netlink *netlink, size_t nest);

/* An attribute of an answer. */
struct netlink_attribute {
    uint16_t type;
    uint16_t size;
    const uint8_t *data;
};

/* The next attribute of `size` bytes at *at, which moves behind it. False: the end, or what is
 * none.
 */
bool netlink_next(const uint8_t **at, const uint8_t *end, struct netlink_attribute *attribute);
bool netlink_find(const uint8_t *at, const uint8_t *end, uint16_t type,
                  struct netlink_attribute *attribute);
uint64_t netlink_number(const struct netlink_attribute *attribute);

struct nlmsghdr;

/* Whether a message is the last answer to its request: 1 when it is not, 0 when all went well, or
 * -errno. The end of a list says how it ended, as an error does (netlink(7), NLMSG_DONE). */
int netlink_end_of(const struct nlmsghdr *head, const uint8_t *body, size_t size);

/* How often a list is read that changes while it is read. */
#define NETLINK_TRIES 5

/* Sends the buffer and reads its answers: `take` (or NULL) gets the attributes of each message of a
 * type of nf_tables. Returns 0, or -errno of the first error that the kernel reports; *failed is
 * the sequence number of its message then, counted from the first of the buffer. -EAGAIN: the list
 * has changed while it was read, so what `take` got may be wrong; ask once more. */
int netlink_talk(struct netlink *netlink,
                 void (*take)(void *context, const uint8_t *at, const uint8_t *end), void *context,
                 uint32_t *failed);

#endif
