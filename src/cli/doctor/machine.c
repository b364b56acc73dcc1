/* SPDX-License-Identifier: Apache-2.0 */
/* see machine.h */
#include "cli/doctor/machine.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <unistd.h>
#include <uv.h>

#include "base/shared_file.h"
#include "server/daemon/clock.h"
#include "server/daemon/server.h"
#include "server/net/files.h"

#define STATE_BYTES_DEFAULT (UINT64_C(64) << 20)
#define PATH_TEXT_MAX 4096
/* What weir keeps open beside connections: an upper estimate of listening.c's. */
#define FILES_OF_PROCESS 32
#define FILES_OF_WORKER 6
#define FILES_OF_STORE 16
#define FILES_OF_DIRECTORY 8
/* A kernel before 5.4 lets 128 connections wait; bursts of proxies have some hundred. */
#define BACKLOG_FEW 1024
/* No machine has been at this time since weir exists: the clock was never set. */
#define CLOCK_LEAST_NS (UINT64_C(1704067200) * 1000000000) /* 2024-01-01 */

static bool has_reuse_port(void)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool can = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0;
    if (fd >= 0)
        close(fd);
    return can;
}

static bool has_ofd_locks(void)
{
    int fd = memfd_create("weir-doctor", MFD_CLOEXEC);
    bool can = fd >= 0 && weir_file_lock(fd, 0, F_WRLCK);
    if (fd >= 0)
        close(fd);
    return can;
}

/* A number at the beginning of a file; 0: there is none. */
static uint64_t read_number(const char *path)
{
    char text[32] = {0};
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (!fgets(text, sizeof text, file))
        text[0] = '\0';
    fclose(file);
    return strtoull(text, NULL, 10);
}

/* memory.max of the group in /proc/self/cgroup ("0::/path"); "max" reads as 0. */
static uint64_t read_group_bytes(void)
{
    char line[PATH_TEXT_MAX], path[PATH_TEXT_MAX + 64];
    uint64_t bytes = 0;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "0::", 3) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", line + 3);
        bytes = read_number(path);
    }
    if (file)
        fclose(file);
    return bytes;
}

void machine_read(struct machine_facts *facts)
{
    struct rlimit files = {.rlim_max = RLIM_INFINITY};
    struct timex clock = {.modes = 0};
    getrlimit(RLIMIT_NOFILE, &files);
    *facts = (struct machine_facts){
        .open_files = files.rlim_max == RLIM_INFINITY ? UINT64_MAX : files.rlim_max,
        .memory_bytes = uv_get_total_memory(),
        .group_bytes = read_group_bytes(),
        .cores = uv_available_parallelism(),
        .backlog = (uint32_t)read_number("/proc/sys/net/core/somaxconn"),
        .wall_ns = weir_clock_wall_ns(),
        .reuse_port = has_reuse_port(),
        .ofd_locks = has_ofd_locks(),
        .synchronised = adjtimex(&clock) != TIME_ERROR,
    };
}

static bool is_on(const char *address, bool by_default)
{
    return address ? strcmp(address, "off") != 0 : by_default;
}

void machine_want(struct machine_wants *wants, const struct weir_rules *rules)
{
    *wants = (struct machine_wants){.listeners = 1, .admin_listeners = 1};
    if (!rules)
        return;
    const struct weir_settings *settings = weir_rules_settings(rules);
    wants->state_bytes = settings->state_bytes;
    wants->workers = settings->workers;
    wants->listeners = is_on(settings->http.address, true) + is_on(settings->redis.address, false) +
                       is_on(settings->grpc.address, false) +
                       is_on(settings->challenge.listener.address, false);
    wants->admin_listeners = is_on(settings->admin.address, true);
    wants->shared = settings->store.redis.url;
    wants->directory = settings->identities.redis.url;
    wants->state_file = settings->state_file;
    wants->timed = weir_rules_timed(rules) || wants->shared;
    for (uint32_t i = 0; i < weir_rules_count(rules); i++) {
        struct weir_rule_info info;
        weir_rules_info(rules, i, &info);
        wants->timed |= info.algorithm == WEIR_QUOTA;
    }
}

static void judge_files(struct findings *findings, const struct machine_facts *facts,
                        const struct machine_wants *wants)
{
    static const char fix[] = "raise it: LimitNOFILE=65536 in the unit (systemctl edit weir), or "
                              "ulimit -Hn 65536 in the shell that starts weir";
    uint32_t workers = wants->workers > 0 ? wants->workers : facts->cores;
    struct weir_files files = {.limit = facts->open_files,
                               .workers = workers > 0 ? workers : 1,
                               .listeners = wants->listeners,
                               .admin_listeners = wants->admin_listeners};
    struct weir_files_plan plan;
    uint64_t each = FILES_OF_WORKER + (wants->shared ? FILES_OF_STORE : 0) +
                    (wants->directory ? FILES_OF_DIRECTORY : 0);
    files.taken = FILES_OF_PROCESS + (files.workers + 1) * each + files.workers * files.listeners;
    if (weir_files_plan(&files, &plan) < 0)
        findings_add(findings, FINDING_ERROR, "open_files", fix,
                     "this process may open %" PRIu64 " files, and weir needs at least %" PRIu64,
                     facts->open_files, plan.least);
    else if (files.listeners > 0 && plan.decisions.max < WEIR_CONNECTIONS_FEW)
        findings_add(findings, FINDING_WARNING, "open_files", fix,
                     "the limit of %" PRIu64 " open files leaves %" PRIu32
                     " connections to a listener",
                     facts->open_files, plan.decisions.max);
}

static void judge_memory(struct findings *findings, const struct machine_facts *facts,
                         const struct machine_wants *wants)
{
    uint64_t bytes = wants->state_bytes > 0 ? wants->state_bytes : STATE_BYTES_DEFAULT;
    if (facts->memory_bytes > 0 && bytes > facts->memory_bytes)
        findings_add(findings, FINDING_ERROR, "memory",
                     "lower state.size, or give the machine more memory (docs/state.md "
                     "says what a key takes)",
                     "state.size is %" PRIu64 " MiB, and the machine has %" PRIu64 " MiB",
                     bytes >> 20, facts->memory_bytes >> 20);
    else if (facts->group_bytes > 0 && bytes > facts->group_bytes)
        findings_add(findings, FINDING_ERROR, "memory",
                     "lower state.size, or raise MemoryMax= of the unit or the container's limit",
                     "state.size is %" PRIu64 " MiB, and the control group may use %" PRIu64 " MiB",
                     bytes >> 20, facts->group_bytes >> 20);
    else if (facts->memory_bytes > 0 && bytes > facts->memory_bytes / 4 * 3)
        findings_add(findings, FINDING_WARNING, "memory",
                     "lower state.size below three quarters of the memory",
                     "state.size is %" PRIu64 " MiB of the machine's %" PRIu64
                     " MiB: little is left to other programs",
                     bytes >> 20, facts->memory_bytes >> 20);
}

static void judge_kernel(struct findings *findings, const struct machine_facts *facts,
                         const struct machine_wants *wants)
{
    if (!facts->reuse_port)
        findings_add(findings, FINDING_ERROR, "kernel",
                     "run Linux 4.19 or newer, or a sandbox that has SO_REUSEPORT",
                     "the kernel lets no two sockets share a port (SO_REUSEPORT)");
    if (!facts->ofd_locks)
        findings_add(findings, wants->state_file ? FINDING_ERROR : FINDING_WARNING, "kernel",
                     "run Linux 4.19 or newer, or a sandbox that has F_OFD_SETLK",
                     "the kernel has no open file description locks, which a state file needs");
    if (facts->backlog > 0 && facts->backlog < BACKLOG_FEW)
        findings_add(findings, FINDING_WARNING, "backlog",
                     "sysctl -w net.core.somaxconn=4096, and the same in /etc/sysctl.d/",
                     "net.core.somaxconn is %" PRIu32
                     ": so many connections can wait to be accepted",
                     facts->backlog);
    if (facts->cores > 0 && wants->workers > facts->cores)
        findings_add(findings, FINDING_WARNING, "workers",
                     "set server.workers to `auto`, or to the number of cores",
                     "server.workers is %" PRIu32 ", and this process may use %" PRIu32 " cores",
                     wants->workers, facts->cores);
}

static void judge_clock(struct findings *findings, const struct machine_facts *facts,
                        const struct machine_wants *wants)
{
    if (facts->wall_ns < CLOCK_LEAST_NS)
        findings_add(findings, FINDING_ERROR, "clock",
                     "set the clock: timedatectl set-ntp true, or chronyd",
                     "the clock was never set: it is before 2024");
    else if (wants->timed && !facts->synchronised)
        findings_add(findings, FINDING_WARNING, "clock_unsynchronised",
                     "run chronyd or systemd-timesyncd: timedatectl set-ntp true",
                     "the kernel's clock is not synchronised, and calendars, tokens or Redis need "
                     "the right time");
}

void machine_judge(struct findings *findings, const struct machine_facts *facts,
                   const struct machine_wants *wants)
{
    judge_files(findings, facts, wants);
    judge_memory(findings, facts, wants);
    judge_kernel(findings, facts, wants);
    judge_clock(findings, facts, wants);
}
