/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine gives weir: open files, memory, the kernel, the clock.
 *
 * Reading the facts and judging them are two functions, so that a test can judge the facts of a
 * machine that it does not have.
 */
#ifndef WEIR_CLI_DOCTOR_MACHINE_H
#define WEIR_CLI_DOCTOR_MACHINE_H

#include "cli/doctor/findings.h"
#include "rules/rules.h"

struct machine_facts {
    uint64_t open_files;        /* the hard limit; weir raises the soft one to it */
    uint64_t memory_bytes;      /* of the machine; 0: unknown */
    uint64_t group_bytes;       /* memory.max of this process's control group; 0: none */
    uint32_t cores;             /* that this process may use */
    uint32_t backlog;           /* net.core.somaxconn; 0: unknown */
    uint64_t wall_ns;           /* the clock */
    bool reuse_port, ofd_locks; /* what the kernel can do */
    bool synchronised;          /* the kernel's opinion of the clock */
};

/* What the rules want of a machine. */
struct machine_wants {
    uint64_t state_bytes; /* 0: the default */
    uint32_t workers;     /* 0: one a core */
    uint32_t listeners, admin_listeners;
    bool shared;     /* the states are in Redis */
    bool directory;  /* callers are in Redis */
    bool state_file; /* several processes may share the state */
    bool timed;      /* calendars, tokens or Redis need the right time */
};

void machine_read(struct machine_facts *facts);
void machine_want(struct machine_wants *wants, const struct weir_rules *rules);
void machine_judge(struct findings *findings, const struct machine_facts *facts,
                   const struct machine_wants *wants);

#endif
