/* SPDX-License-Identifier: Apache-2.0 */
/* From the rules' section to the constants and lists of the filter.
 *
 * Each limit has a place (slot) in the filter and an id, a hash of its name and numbers, which goes
 * into the keys of its states. An update leaves a limit that is unchanged in its place, so that its
 * states keep counting; one whose numbers changed starts fresh.
 *
 * Allow wins: an entry of `ban` within one of `allow` is left out. As the kernel finds the longest
 * prefix, one trie then holds both lists.
 *
 * Threads: pure. Memory: the caller's.
 */
#ifndef WEIR_FEATURE_XDP_COMPILE_H
#define WEIR_FEATURE_XDP_COMPILE_H

#include "feature/xdp/filter.h"
#include "feature/xdp/settings.h"

/* Fills *filter. `before`: the filter that runs and whose states are kept; NULL: none.
 * `secret` is used only without `before`. */
void weir_xdp_compile(struct xdp_filter *filter, const struct weir_xdp_settings *settings,
                      const uint64_t secret[2], const struct xdp_filter *before);

/* The slot of limit `index` of the settings that *filter was made of. */
uint32_t weir_xdp_slot(const struct xdp_filter *filter, const struct weir_xdp_settings *settings,
                       uint32_t index);

/* The trie's key of a prefix. */
void weir_xdp_list_key(struct xdp_list_key *key, const struct weir_cidr *cidr);

/* Whether entry `index` of `ban` is within an entry of `allow`. O(allow_count). */
bool weir_xdp_ban_is_void(const struct weir_xdp_settings *settings, uint32_t index);

/* How many sets of states the settings ask for. */
uint32_t weir_xdp_sets(const struct weir_xdp_settings *settings);

#endif
