/* SPDX-License-Identifier: Apache-2.0 */
/* From a holder's calls to lua/share.lua, and back: no sockets, no clock.
 *
 * The script works on the very state that exact mode uses (script/key.h), and on one record beside
 * it with the holders' shares: <prefix>{<tag>}^<limit's name>:<key's text>, a hash. Both are keys
 * of the call, so they have one cluster slot. A record has a form: one that this script does not
 * know is an error, and so no portion (lua/share.lua).
 */
#ifndef WEIR_STORE_REDIS_SHARE_SCRIPT_H
#define WEIR_STORE_REDIS_SHARE_SCRIPT_H

#include "core/check.h"
#include "store/redis/client/client.h"
#include "store/redis/share/share.h"

/* The most bytes that a call for this check takes. */
size_t share_script_size(const char *prefix, const struct weir_check *check);

/* Writes the EVALSHA at `out` (share_script_size bytes), sets *script and *slot. Returns its size.
 * test_now_us: tests only; 0: the server's TIME. */
size_t share_script_write(const char *prefix, const struct weir_check *check,
                          const struct share_call *ask, uint64_t test_now_us, char *out,
                          const struct redis_script **script, uint16_t *slot);

/* Errors: WEIR_ERR_STORE (an error reply; `reason` has its text), WEIR_ERR_SYNTAX (no reply of
 * ours). Either way the caller calls redis_shares_failed(executed: true). */
int share_script_read(const struct weir_check *check, const struct share_call *ask,
                      const struct weir_resp_node *nodes, uint32_t count, struct share_reply *reply,
                      struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
