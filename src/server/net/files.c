/* SPDX-License-Identifier: Apache-2.0 */
/* see files.h */
#include "server/net/files.h"

#include <poll.h>
#include <sys/resource.h>

#include <weir/error.h>

/* The least that is worth a listener: three connections, and one that is refused. */
#define SHARE_LEAST 4
#define COUNTED_MAX 4096

static uint64_t lower(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The files of a listener with so many connections, and those that are refused. */
static uint64_t files_of(uint64_t connections)
{
    return connections + WEIR_REFUSALS_MAX;
}

static struct weir_files_share share_of(uint64_t files, uint64_t most)
{
    uint64_t refusals = lower(files / 8 > 0 ? files / 8 : 1, WEIR_REFUSALS_MAX);
    return (struct weir_files_share){(uint32_t)lower(files - refusals, most), (uint32_t)refusals};
}

int weir_files_plan(const struct weir_files *files, struct weir_files_plan *plan)
{
    uint64_t listeners = files->listeners, admins = files->admin_listeners;
    uint64_t most = (uint64_t)WEIR_CONNECTIONS_MAX * files->workers;
    uint64_t admin = 0, each = 0;
    *plan = (struct weir_files_plan){.least = files->taken + SHARE_LEAST * (listeners + admins)};
    plan->full =
        files->taken + listeners * files_of(most) + admins * files_of(WEIR_ADMIN_CONNECTIONS_MAX);
    if (files->limit < plan->least)
        return WEIR_ERR_FULL;
    uint64_t left = files->limit - files->taken;
    if (admins > 0) {
        admin = lower(left / 8 / admins, files_of(WEIR_ADMIN_CONNECTIONS_MAX));
        admin = admin > SHARE_LEAST ? admin : SHARE_LEAST;
        plan->admin = share_of(admin, WEIR_ADMIN_CONNECTIONS_MAX);
    }
    if (listeners > 0) {
        each = lower((left - admin * admins) / listeners, files_of(most));
        plan->decisions = share_of(each, most);
    }
    return 0;
}

uint64_t weir_files_raise_limit(void)
{
    struct rlimit files, raised;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return UINT64_MAX;
    raised = files;
    raised.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &raised) < 0)
        raised = files;
    return raised.rlim_cur == RLIM_INFINITY ? UINT64_MAX : raised.rlim_cur;
}

/* poll tells by POLLNVAL which numbers are no file: one system call, and no /proc. */
uint32_t weir_files_count(void)
{
    struct pollfd numbers[COUNTED_MAX];
    struct rlimit files;
    uint32_t count = COUNTED_MAX, open = 0;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        count = (uint32_t)lower(files.rlim_cur, COUNTED_MAX); /* poll takes no more */
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = (struct pollfd){.fd = (int)i};
    if (poll(numbers, count, 0) < 0)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        open += !(numbers[i].revents & POLLNVAL);
    return open;
}
