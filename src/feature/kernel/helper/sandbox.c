/* SPDX-License-Identifier: Apache-2.0 */
/* see sandbox.h */
#include "feature/kernel/helper/sandbox.h"

#include <errno.h>
#include <grp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#define NOBODY 65534

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined __riscv && __riscv_xlen == 64
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#endif

/* --- Capabilities ----------------------------------------------------------------------------- */

static int set_capabilities(uint32_t low)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{.effective = low, .permitted = low}};

    return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

static int keep_one_capability(void)
{
    /* Out of the bounding set, no program that this one starts could have them. Needs a right that
     * a helper started by systemd lacks, where systemd has done the same. */
    for (int capability = 0; capability <= CAP_LAST_CAP; capability++)
        if (capability != CAP_NET_ADMIN)
            (void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (geteuid() == 0 && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0) {
        /* In a container without these rights it stays root, with one capability. */
        (void)!setgroups(0, NULL);
        (void)!setresgid(NOBODY, NOBODY, NOBODY);
        (void)!setresuid(NOBODY, NOBODY, NOBODY);
    }
    return set_capabilities(UINT32_C(1) << CAP_NET_ADMIN);
}

/* --- System calls ----------------------------------------------------------------------------- */

#ifdef ARCHITECTURE

#define ALLOW(name)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                         \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Everything else ends the process: the server starts another one. */
static int filter_calls(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        /* Sockets that are open, and those that a listening one accepts. */
        ALLOW(recvfrom),
        ALLOW(recvmsg),
        ALLOW(sendto),
        ALLOW(sendmsg),
        ALLOW(ppoll),
#ifdef SYS_poll
        ALLOW(poll),
#endif
        ALLOW(accept4),
        ALLOW(setsockopt),
        ALLOW(getsockopt),
        ALLOW(close),
        ALLOW(read),
        ALLOW(write),
        /* Memory and the end. */
        ALLOW(brk),
        ALLOW(mmap),
        ALLOW(munmap),
        ALLOW(mremap),
        ALLOW(madvise),
        ALLOW(getrandom),
        ALLOW(futex),
        ALLOW(clock_gettime),
        ALLOW(restart_syscall),
        ALLOW(rt_sigreturn),
        ALLOW(rt_sigprocmask),
        ALLOW(getpid),
        ALLOW(gettid),
        ALLOW(tgkill),
        ALLOW(exit),
        ALLOW(exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};

    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0 ? -errno : 0;
}

#else

static int filter_calls(void)
{
    return 0; /* a machine whose numbers of calls are not known here */
}

#endif

int sandbox_enter(void)
{
    int err = keep_one_capability();

    if (err < 0)
        return err;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return -errno;
    return filter_calls();
}
