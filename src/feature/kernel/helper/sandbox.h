/* SPDX-License-Identifier: Apache-2.0 */
/* What weir-kernel may do: after sandbox_enter, it has CAP_NET_ADMIN and no other capability,
 * cannot gain one, is not root where it can be another user, and makes only the system calls that
 * talking over open sockets needs (seccomp). */
#ifndef WEIR_FEATURE_KERNEL_HELPER_SANDBOX_H
#define WEIR_FEATURE_KERNEL_HELPER_SANDBOX_H

/* Returns 0, or -errno: the process must end. -EPERM: it has no CAP_NET_ADMIN. */
int sandbox_enter(void);

#endif
