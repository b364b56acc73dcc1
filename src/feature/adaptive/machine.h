/* SPDX-License-Identifier: Apache-2.0 */
/* Readings of the machine, from the texts of the kernel's files: /proc/stat and /proc/meminfo, a
 * cgroup's cpu.stat, cpu.max, memory.current and memory.max, and pressure files (PSI).
 *
 * These functions read texts only; the caller reads the files. Where a text is not
 * what it should be, they return false and leave the result alone.
 *
 * Sources: proc(5); Documentation/admin-guide/cgroup-v2.rst and Documentation/accounting/psi.rst of
 * Linux. Threads: no state.
 */
#ifndef WEIR_FEATURE_ADAPTIVE_MACHINE_H
#define WEIR_FEATURE_ADAPTIVE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/bytes.h>

/* CPU time that was used, of what there was. In any unit: only the ratio counts. */
struct weir_cpu_time {
    uint64_t busy, whole;
};

/* The first line of /proc/stat, all CPUs together. Idle time and waiting for disks are not busy. */
bool weir_machine_cpu(struct weir_bytes proc_stat, struct weir_cpu_time *time);

/* A cgroup: `usage_usec` of cpu.stat is busy; the whole is what cpu.max allowed in `elapsed_ns`.
 * False also where cpu.max sets no limit ("max"). */
bool weir_machine_cgroup_cpu(struct weir_bytes cpu_stat, struct weir_bytes cpu_max,
                             uint64_t elapsed_ns, struct weir_cpu_time *time);

/* What was busy between two looks, in hundredths of a percent: 0 to 10,000. */
uint32_t weir_machine_cpu_used(const struct weir_cpu_time *before, const struct weir_cpu_time *now);

/* Memory in use, in hundredths of a percent: 1 - MemAvailable / MemTotal of /proc/meminfo; and
 * memory.current / memory.max of a cgroup (false where that is "max"). */
bool weir_machine_memory(struct weir_bytes meminfo, uint32_t *used);
bool weir_machine_cgroup_memory(struct weir_bytes current, struct weir_bytes max, uint32_t *used);

/* `some avg10` of a pressure file: the part of the last 10 seconds in which at least one task
 * waited, in hundredths of a percent. */
bool weir_machine_pressure(struct weir_bytes psi, uint32_t *waiting);

#endif
