/* SPDX-License-Identifier: Apache-2.0 */
/* Bans in the kernel: from standing, by the plan, to weir-kernel and back.
 *
 *   map of standing ─ all: at start, after lists, reloads, losses of the queue ─┐
 *   queue of bans ─── each change ──────────────────────────────────────────────┴▶ plan ◀─▶ helper
 *
 * A timer of 20 ms does all of it, so a ban is in force within 20 ms and a transaction, or, where
 * one has just begun, 100 ms later. Changes of what is trusted are read with the whole map, five
 * times a second at most.
 *
 * What no ban may hold (loopback, own addresses, trusted proxies) is checked in standing, and once
 * more by the helper, which gets the proxies and reads the addresses by itself.
 *
 * When the helper ends, another one is started and the table is recreated in one transaction. When
 * the server stops, the table stays: its bans end by themselves. When the section leaves the rules,
 * the table goes.
 *
 * Threads: the main thread's.
 */
#ifndef WEIR_FEATURE_KERNEL_SERVER_SERVICE_H
#define WEIR_FEATURE_KERNEL_SERVER_SERVICE_H

#include <uv.h>

#include "feature/kernel/plan.h"
#include "feature/kernel/settings.h"
#include "feature/standing/server/service.h"
#include "rules/rules.h"

struct weir_kernel_service;

/* Starts the timer on a loop; nothing else happens until weir_kernel_service_configure. Errors:
 * WEIR_ERR_MEMORY. */
int weir_kernel_service_open(struct weir_kernel_service **service,
                             struct weir_standing_service *standing, struct weir_log *log,
                             uint64_t (*now_ns)(void *context), void *context, uv_loop_t *loop)
    __attribute__((warn_unused_result));
/* Closes the timer's handle, on its loop, and the connection; the table stays. */
void weir_kernel_service_stop(struct weir_kernel_service *service);
/* Frees it after the loop is closed. NULL is allowed. */
void weir_kernel_service_close(struct weir_kernel_service *service);

/* The prefixes in which bans of IPv4 addresses are in the sets as well: those that the rules file
 * names. Before weir_kernel_service_configure, which reads all anew. */
void weir_kernel_service_translate(struct weir_kernel_service *service,
                                   const struct weir_settings *settings);

/* Takes new settings (copied), and reads all of standing again. */
void weir_kernel_service_configure(struct weir_kernel_service *service,
                                   const struct weir_kernel_nftables *settings);

/* Whether the kernel drops packets of a network that has an entry. NULL: false. */
bool weir_kernel_service_bans(const struct weir_kernel_service *service,
                              const struct weir_cidr *network);

/* What a set has matched, since this server started. */
struct weir_kernel_tally {
    uint8_t family, bits, set;
    uint64_t packets, bytes;
};

struct weir_kernel_stats {
    bool on, connected;
    bool works; /* the helper that is connected has done a transaction, and the last one */
    struct weir_plan_stats plan;
    uint64_t helpers;   /* that were started, or connected to */
    uint64_t lost;      /* times that the table was not as it was made, or not safe any more */
    uint64_t skipped;   /* bans that the helper has left out: they hold what is protected */
    const char *failed; /* why the last transaction or start failed; NULL: it did not */
    const struct weir_kernel_tally *tallies;
    size_t tallies_count;
};
void weir_kernel_service_stats(const struct weir_kernel_service *service,
                               struct weir_kernel_stats *stats);

#endif
