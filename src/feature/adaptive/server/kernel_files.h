/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the kernel's files about this machine, or about the cgroup of this process where that has a
 * limit of its own: the signals `cpu` and `memory` with the sources `proc` and `psi`.
 *
 * The files are those of procfs and of cgroups of version 2; a read of them does not wait for a
 * disk. Threads: one owner.
 */
#ifndef WEIR_FEATURE_ADAPTIVE_SERVER_KERNEL_FILES_H
#define WEIR_FEATURE_ADAPTIVE_SERVER_KERNEL_FILES_H

#include "feature/adaptive/machine.h"
#include "feature/adaptive/rules/limit.h"

struct weir_machine {
    char cgroup[256]; /* its folder; "": none */
    uint64_t opened_ns;
    struct weir_cpu_time cpu, cgroup_cpu; /* of the last look */
};

/* Both ratios of one signal, each valid for the next seconds. */
struct weir_machine_readings {
    struct weir_reading proc[WEIR_SIGNALS], psi[WEIR_SIGNALS];
};

void weir_machine_open(struct weir_machine *machine, uint64_t now_ns);

/* What cannot be read has no reading. The CPU has one from the second look on. */
void weir_machine_look(struct weir_machine *machine, uint64_t now_ns,
                       struct weir_machine_readings *readings);

#endif
