/* SPDX-License-Identifier: Apache-2.0 */
/* What the server and its helper weir-kernel say to each other, over a socket that keeps the
 * borders of messages (SOCK_SEQPACKET). Both are on one machine, so numbers are in its byte order.
 *
 *   server                              helper
 *   OPEN  table, hook, interfaces   ──▶
 *   PROTECT networks                ──▶ which the helper never bans
 *   APPLY up to 1,000 elements      ──▶ one transaction of the kernel ...
 *   APPLY REPLACE MORE, ... , last  ──▶ ... or one for all of them, with the table recreated
 *                                   ◀── DONE of the last one: its number, 0 or an errno, a text,
 *                                       and how many bans it left out
 *   COUNT                           ──▶
 *                                   ◀── COUNTS of each set
 *                                   ◀── LOST: the table is to be recreated, and why
 *   REMOVE                          ──▶ the table goes
 *                                   ◀── DONE
 *
 * A transaction has a number, which its messages and its answer have; one that is begun with
 * another number while messages of the last are missing takes its place.
 *
 * A message has a head and up to `count` items of one size. The reader checks all of it, since each
 * side takes the other for broken into: a message that it does not know ends the connection.
 *
 * Memory: none. Threads: any.
 */
#ifndef WEIR_FEATURE_KERNEL_MESSAGE_H
#define WEIR_FEATURE_KERNEL_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/text/address.h"
#include "feature/kernel/settings.h"

#define WEIR_KERNEL_MAGIC UINT32_C(0x336b7277) /* "wrk3"; another format has another one */
#define WEIR_KERNEL_BATCH_MAX 1000             /* elements of one message */
/* Sets: of bans and of what is always allowed, by family and length of prefix. */
#define WEIR_KERNEL_SETS_MAX (2 * (33 + 129))
#define WEIR_KERNEL_TEXT_MAX 119
/* Networks of fewer bits are left to weir: an error in one of them would cut off a large part of
 * the Internet. */
#define WEIR_KERNEL_BITS4_MIN 8
#define WEIR_KERNEL_BITS6_MIN 16
/* The longest term of an element: 10 years. */
#define WEIR_KERNEL_TIMEOUT_MAX_MS (UINT64_C(3653) * 86400 * 1000)

enum weir_kernel_type {
    WEIR_KERNEL_OPEN = 1,
    WEIR_KERNEL_APPLY,
    WEIR_KERNEL_COUNT,
    WEIR_KERNEL_REMOVE,
    WEIR_KERNEL_DONE,
    WEIR_KERNEL_COUNTS,
    WEIR_KERNEL_LOST,
    WEIR_KERNEL_PROTECT,
};

enum weir_kernel_flags {
    WEIR_KERNEL_REPLACE = 1, /* the elements of this and the next messages replace the table, or
                                what was protected */
    WEIR_KERNEL_MORE = 2,    /* the next message belongs to the same transaction */
};

enum weir_kernel_set { WEIR_KERNEL_BAN, WEIR_KERNEL_ALLOW };

struct weir_kernel_head {
    uint32_t magic;
    uint16_t type;   /* enum weir_kernel_type */
    uint16_t count;  /* of items */
    uint32_t flags;  /* enum weir_kernel_flags, of APPLY and PROTECT (REPLACE alone) */
    uint32_t number; /* of the transaction, of APPLY, REMOVE and DONE; else 0 */
};

/* The item of OPEN. Texts end with NULs up to their room. */
struct weir_kernel_open {
    char table[WEIR_KERNEL_TABLE_MAX + 1];
    uint8_t hook, interfaces_count, gap[6];
    char interfaces[WEIR_KERNEL_INTERFACES_MAX][WEIR_KERNEL_INTERFACE_MAX + 1];
};

/* An item of APPLY: a network that is put into a set, or leaves it. Of PROTECT: a network to allow,
 * without an end. */
struct weir_kernel_element {
    uint8_t address[16];
    uint8_t family, bits; /* 4 or 6; the bits behind are 0 */
    uint8_t set;          /* enum weir_kernel_set */
    uint8_t removed;      /* 1: it leaves */
    uint8_t gap[4];
    uint64_t timeout_ms; /* 0: it has no end */
};

/* The item of DONE. */
struct weir_kernel_done {
    int32_t result;   /* 0, or an errno */
    uint32_t skipped; /* bans that a done transaction left out: they hold what is protected */
    char text[WEIR_KERNEL_TEXT_MAX + 1]; /* which step failed */
};

/* Why a table is lost. */
enum weir_kernel_loss_cause {
    WEIR_KERNEL_LOST_CHANGED = 1, /* another program has changed or removed it */
    WEIR_KERNEL_LOST_ADDRESS,     /* this machine has a new address, which a ban may hold */
    WEIR_KERNEL_LOST_UNREAD,      /* this machine's addresses cannot be read */
};

/* The item of LOST. */
struct weir_kernel_loss {
    uint32_t cause; /* enum weir_kernel_loss_cause */
    int32_t error;  /* of UNREAD: an errno; else 0 */
};

/* An item of COUNTS: what a set has matched since its table was made. */
struct weir_kernel_counter {
    uint8_t family, bits, set, gap[5];
    uint64_t packets, bytes;
};

#define WEIR_KERNEL_MESSAGE_MAX                                                                    \
    (sizeof(struct weir_kernel_head) + WEIR_KERNEL_BATCH_MAX * sizeof(struct weir_kernel_element))

/* A message; whichever the type of its head says. */
struct weir_kernel_message {
    struct weir_kernel_head head;
    union {
        struct weir_kernel_open open;
        struct weir_kernel_element elements[WEIR_KERNEL_BATCH_MAX];
        struct weir_kernel_done done;
        struct weir_kernel_counter counters[WEIR_KERNEL_SETS_MAX];
        struct weir_kernel_loss loss;
    };
};

/* Begins a message of no items. */
void weir_kernel_message_begin(struct weir_kernel_message *message, enum weir_kernel_type type);

/* Its size in bytes, by type and count. */
size_t weir_kernel_message_size(const struct weir_kernel_message *message);

/* The fewest bits of a network that may be banned. */
uint8_t weir_kernel_ban_bits_min(uint8_t family);

/* The network by which the helper finds a set that was emptied: the last of its family with so many
 * bits, which no packet comes from. False: sets of so few bits have none. */
bool weir_kernel_mark(uint8_t address[16], uint8_t family, uint8_t bits);
/* Whether a network is that: it can be neither banned nor allowed. */
bool weir_kernel_is_mark(const uint8_t address[16], uint8_t family, uint8_t bits);

/* Whether `size` bytes in *message are one whole message that a server (or a helper) may send. */
bool weir_kernel_message_valid(const struct weir_kernel_message *message, size_t size,
                               bool of_server);

#endif
