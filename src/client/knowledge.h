/* SPDX-License-Identifier: Apache-2.0 */
/* What a client knows of all hosts: in memory, or in a file that processes of one machine share.
 *
 * The file is a header and WEIR_KNOWLEDGE_HOSTS records (host.h), mapped by all processes. A change
 * is made under a lock of the whole file, an open-file-description lock, which the kernel drops
 * when a process ends in whatever way; a half-made change is found by weir_host_repair. A process
 * that was stopped while it held the lock is waited for WEIR_KNOWLEDGE_PATIENCE_NS, and then
 * ignored: the worst that follows is a refusal too many.
 *
 * Times are CLOCK_BOOTTIME. The header has the kernel's boot id: a file from before a restart
 * begins anew.
 *
 * The file is created with mode 0600. It holds the origins of URLs, and scopes only as 64-bit
 * hashes. A new host takes the record that was not used for longest; one whose pause or own rate
 * (pace/own.h) still makes requests wait counts as used until then. So where more hosts than there
 * are records have such a rate within one of its periods, some of them get a full burst again.
 *
 * Bounds: 256 hosts, about 660 KiB. Threads: locked inside, between lock and unlock.
 */
#ifndef WEIR_CLIENT_KNOWLEDGE_H
#define WEIR_CLIENT_KNOWLEDGE_H

#include <weir/error.h>

#include "client/host.h"

#define WEIR_KNOWLEDGE_HOSTS 256
#define WEIR_KNOWLEDGE_PATIENCE_NS UINT64_C(100000000)

struct weir_knowledge;

/* `path` NULL: in memory. Errors: WEIR_ERR_MEMORY, WEIR_ERR_IO, WEIR_ERR_FORMAT (another file, or
 * of another version). */
int weir_knowledge_open(struct weir_knowledge **knowledge, const char *path,
                        struct weir_reason *reason) __attribute__((warn_unused_result));

void weir_knowledge_close(struct weir_knowledge *knowledge);

/* The record of a host, for the caller alone until weir_knowledge_unlock. A host that is not known
 * is added. */
struct weir_host *weir_knowledge_lock(struct weir_knowledge *knowledge, const char *name,
                                      uint64_t now_ns);
void weir_knowledge_unlock(struct weir_knowledge *knowledge);

/* The name of a host's record: the origin, and a hash of the scope (NULL: none). */
void weir_knowledge_name(const char *origin, const char *scope, char name[WEIR_HOST_NAME_MAX]);

#endif
