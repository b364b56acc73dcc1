/* SPDX-License-Identifier: Apache-2.0 */
/* see kernel_files.h */
#include "feature/adaptive/server/kernel_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of /proc/stat only the first line counts; the others are smaller. */
#define TEXT_MAX 4096
#define READING_LIFE_NS UINT64_C(3000000000)

/* The beginning of a file; size 0: it cannot be read. */
static struct weir_bytes read_text(const char *folder, const char *name, char text[TEXT_MAX])
{
    char path[512];
    ssize_t size = -1;

    snprintf(path, sizeof path, "%s%s", folder, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);

    if (file >= 0) {
        size = read(file, text, TEXT_MAX);
        close(file);
    }
    return (struct weir_bytes){text, size > 0 ? (size_t)size : 0};
}

/* "0::/system.slice/weir.service\n" */
static void find_cgroup(struct weir_machine *machine)
{
    char text[TEXT_MAX];
    struct weir_bytes own = read_text("/proc/self/", "cgroup", text);
    const char *end = own.size > 4 ? memchr(text, '\n', own.size) : NULL;

    machine->cgroup[0] = '\0';
    if (end && memcmp(text, "0::/", 4) == 0)
        snprintf(machine->cgroup, sizeof machine->cgroup, "/sys/fs/cgroup%.*s/",
                 (int)(end - text - 3), text + 3);
}

void weir_machine_open(struct weir_machine *machine, uint64_t now_ns)
{
    *machine = (struct weir_machine){.opened_ns = now_ns};
    find_cgroup(machine);
}

static void look_at_cpu(struct weir_machine *machine, uint64_t now_ns, struct weir_reading *reading)
{
    char first[TEXT_MAX], second[TEXT_MAX];
    struct weir_cpu_time now;
    bool limited =
        machine->cgroup[0] && weir_machine_cgroup_cpu(read_text(machine->cgroup, "cpu.stat", first),
                                                      read_text(machine->cgroup, "cpu.max", second),
                                                      now_ns - machine->opened_ns, &now);
    struct weir_cpu_time *before = limited ? &machine->cgroup_cpu : &machine->cpu;

    if (!limited && !weir_machine_cpu(read_text("/proc/", "stat", first), &now))
        return;
    if (before->busy != 0)
        *reading =
            (struct weir_reading){weir_machine_cpu_used(before, &now), now_ns + READING_LIFE_NS};
    *before = now;
}

static void look_at_memory(const struct weir_machine *machine, uint64_t now_ns,
                           struct weir_reading *reading)
{
    char first[TEXT_MAX], second[TEXT_MAX];
    uint32_t used;

    if ((machine->cgroup[0] &&
         weir_machine_cgroup_memory(read_text(machine->cgroup, "memory.current", first),
                                    read_text(machine->cgroup, "memory.max", second), &used)) ||
        weir_machine_memory(read_text("/proc/", "meminfo", first), &used))
        *reading = (struct weir_reading){used, now_ns + READING_LIFE_NS};
}

static void look_at_pressure(const struct weir_machine *machine, const char *own, const char *whole,
                             uint64_t now_ns, struct weir_reading *reading)
{
    char text[TEXT_MAX];
    uint32_t waiting;

    if ((machine->cgroup[0] &&
         weir_machine_pressure(read_text(machine->cgroup, own, text), &waiting)) ||
        weir_machine_pressure(read_text("/proc/pressure/", whole, text), &waiting))
        *reading = (struct weir_reading){waiting, now_ns + READING_LIFE_NS};
}

void weir_machine_look(struct weir_machine *machine, uint64_t now_ns,
                       struct weir_machine_readings *readings)
{
    memset(readings, 0, sizeof *readings);
    look_at_cpu(machine, now_ns, &readings->proc[WEIR_SIGNAL_CPU]);
    look_at_memory(machine, now_ns, &readings->proc[WEIR_SIGNAL_MEMORY]);
    look_at_pressure(machine, "cpu.pressure", "cpu", now_ns, &readings->psi[WEIR_SIGNAL_CPU]);
    look_at_pressure(machine, "memory.pressure", "memory", now_ns,
                     &readings->psi[WEIR_SIGNAL_MEMORY]);
}
