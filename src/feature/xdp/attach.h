/* SPDX-License-Identifier: Apache-2.0 */
/* The filter on an interface: attaching, updating, detaching, and what it has counted.
 *
 * A link holds the program on the interface, and the program holds its maps. The link is pinned as
 * PINS/INTERFACE on a bpf file system, so that the filter outlives the process. The pin is all that
 * there is on disk: removing it detaches the filter, soon, and traffic flows; weir_xdp_detach does
 * so at once.
 *
 * An update loads a new program and replaces the old one on the link in one step. It keeps states
 * and counters, if as many states are asked for as there were.
 *
 * Threads: none of its own. Of two processes that attach or detach at one time, the second one
 * waits.
 */
#ifndef WEIR_FEATURE_XDP_ATTACH_H
#define WEIR_FEATURE_XDP_ATTACH_H

#include <weir/error.h>

#include "feature/xdp/object.h"

#define WEIR_XDP_PINS "/sys/fs/bpf/weir"

/* What people call the reasons: "passed". */
extern const char *const weir_xdp_reason_names[XDP_REASON_COUNT];

struct weir_xdp_place {
    const char *pins; /* a folder on a bpf file system, made where it is missing */
    const char *interface;
};

/* What runs on an interface. */
struct weir_xdp_running {
    struct xdp_filter filter;
    struct weir_xdp_maps maps;
    uint32_t program_id, states;
    uint32_t interface; /* its index; 0: it is gone */
    bool native;
    bool orphaned; /* the interface that it was attached to is gone, or it was detached */
};

enum weir_xdp_change {
    WEIR_XDP_ATTACHED, /* there was none */
    WEIR_XDP_UPDATED,  /* with the states that there were */
    WEIR_XDP_RENEWED,  /* with fresh states: another number of states, or another version of weir */
};

/* Attaches the filter, or updates it. `secret`: random, used where no filter runs yet.
 * Errors: WEIR_ERR_NOT_FOUND no such interface; WEIR_ERR_UNSUPPORTED no Ethernet, or no native
 * mode; WEIR_ERR_BUSY another program is attached, or the filter that is there has another mode or
 * is on an interface that was renamed; WEIR_ERR_IO; WEIR_ERR_MEMORY. All with a reason. */
int weir_xdp_attach(const struct weir_xdp_place *place, const struct weir_xdp_settings *settings,
                    const uint64_t secret[2], enum weir_xdp_change *change,
                    struct weir_reason *reason) __attribute__((warn_unused_result));

/* Errors: WEIR_ERR_NOT_FOUND when no filter of weir is pinned there; WEIR_ERR_IO. */
int weir_xdp_detach(const struct weir_xdp_place *place, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Finds the filter. The caller calls weir_xdp_running_close.
 * Errors: as weir_xdp_detach; WEIR_ERR_FORMAT another version of weir attached it. */
int weir_xdp_running_open(struct weir_xdp_running *running, const struct weir_xdp_place *place,
                          struct weir_reason *reason) __attribute__((warn_unused_result));
void weir_xdp_running_close(struct weir_xdp_running *running);

/* The counters, summed over all CPUs: XDP_COUNTS of them. Errors: WEIR_ERR_IO, WEIR_ERR_MEMORY. */
int weir_xdp_counts(const struct weir_xdp_running *running, struct xdp_count counts[XDP_COUNTS],
                    struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
