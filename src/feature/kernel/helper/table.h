/* SPDX-License-Identifier: Apache-2.0 */
/* weir's table in nf_tables.
 *
 *   table netdev weir {
 *     counter ban4_32 { }                          one for each set
 *     set ban4_32  { type ipv4_addr; flags timeout; }
 *     set allow4_8 { type ipv4_addr; flags timeout; }
 *     chain bans {
 *       type filter hook ingress devices = { ... } priority -500; policy accept;
 *       ip saddr & 255.0.0.0 @allow4_8 counter name allow4_8 accept      allowed first
 *       ip saddr @ban4_32 counter name ban4_32 drop
 *     }
 *   }
 *
 * There is a set, and a rule, for each length of prefix that has been used since the table was
 * made: a hash each, so nested networks are beside each other, and a change costs the same
 * however many there are. Each set holds one address that no packet comes from (the last of its
 * family), by which a `flush set` of others is found.
 *
 * A network that is put in is added, deleted and added again in one transaction: kernels
 * before 6.12 keep the old end of an element that is added again, and deleting an absent one is an
 * error.
 *
 * A table without the comment that weir's have is another program's: it is neither replaced nor
 * removed (Linux 5.10 and newer keep comments).
 *
 * Threads: one owner.
 */
#ifndef WEIR_FEATURE_KERNEL_HELPER_TABLE_H
#define WEIR_FEATURE_KERNEL_HELPER_TABLE_H

#include "feature/kernel/helper/netlink.h"
#include "feature/kernel/helper/protected.h"
#include "feature/kernel/message.h"

struct kernel_table {
    struct netlink *netlink;
    const struct kernel_protected *protected; /* what is never banned */
    uint32_t skipped;                         /* bans of the transaction that would have */
    struct weir_kernel_open open;
    bool opened, building; /* building: of a transaction of several messages */
    uint32_t number;       /* of that transaction */
    bool known;            /* what follows is so: */
    uint64_t table_handle, table_use, chain_handle, chain_use;
    uint8_t sets[2][2][129]; /* 1: it is there, by set, IPv6 and bits */
    uint8_t sets_before[2][2][129];
};

/* Prepares for that table; nothing is sent. `protected`: NULL where nothing will be applied. */
void kernel_table_open(struct kernel_table *table, struct netlink *netlink,
                       const struct kernel_protected *protected,
                       const struct weir_kernel_open *open);

/* Does a message APPLY, whose bans of what is protected are taken out and counted. Returns 1 when
 * more of its transaction is to come, 0 when it was done, or -errno: nothing of the transaction is
 * in force. `text` then says which step failed. */
int kernel_table_apply(struct kernel_table *table, struct weir_kernel_message *message,
                       char text[WEIR_KERNEL_TEXT_MAX + 1]);

/* Removes the table; none is no error. Returns 0 or -errno: -EEXIST when another program made it.
 */
int kernel_table_remove(struct kernel_table *table);

/* Whether the table is as it was made, as far as it is known. */
bool kernel_table_holds(struct kernel_table *table);

/* Fills a message COUNTS. Returns 0 or -errno. */
int kernel_table_counts(struct kernel_table *table, struct weir_kernel_message *message);

#endif
