/* SPDX-License-Identifier: Apache-2.0 */
/* The filter's program and maps in the kernel, through libbpf.
 *
 * The object is a part of weir's own program. Loading needs root, or CAP_BPF, CAP_NET_ADMIN and
 * CAP_PERFMON (the verifier admits its pointer comparisons without). Kernel 5.12
 * or newer (pointers as arguments of functions that it verifies once).
 *
 * Threads: none of its own; an object has one user at a time. Memory: of libbpf, and of the kernel
 * for the maps: 104 bytes for XDP_WAYS states.
 */
#ifndef WEIR_FEATURE_XDP_OBJECT_H
#define WEIR_FEATURE_XDP_OBJECT_H

#include <weir/error.h>

#include "feature/xdp/filter.h"
#include "feature/xdp/settings.h"

struct weir_xdp_object;

enum weir_xdp_map {
    WEIR_XDP_MAP_SETS,
    WEIR_XDP_MAP_LISTS,
    WEIR_XDP_MAP_COUNTS,
    WEIR_XDP_MAP_DROPS,
    WEIR_XDP_MAP_CLOCK,
    WEIR_XDP_MAP_SETTINGS, /* struct xdp_filter; constant */
    WEIR_XDP_MAPS,
};

/* Maps of a running program that a new one shares: descriptors, borrowed; -1: a new map. Those of
 * lists and settings are always new. */
struct weir_xdp_maps {
    int fds[WEIR_XDP_MAPS];
};

/* Loads a program with these constants, and fills its lists. The caller frees *out.
 * Errors: WEIR_ERR_IO with a reason: the kernel refused (permission, memory, its version). */
int weir_xdp_object_load(struct weir_xdp_object **out, const struct xdp_filter *filter,
                         const struct weir_xdp_settings *settings,
                         const struct weir_xdp_maps *shared, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Closes the descriptors. What is attached or pinned stays in the kernel. NULL is ignored. */
void weir_xdp_object_free(struct weir_xdp_object *object);

/* Descriptors, owned by the object. */
int weir_xdp_object_program(const struct weir_xdp_object *object);
int weir_xdp_object_map(const struct weir_xdp_object *object, enum weir_xdp_map map);

/* The maps of a program: descriptors that the caller closes with weir_xdp_maps_close; those that it
 * does not have are -1. Errors: WEIR_ERR_IO. */
int weir_xdp_maps_open(struct weir_xdp_maps *maps, int program_fd, struct weir_reason *reason)
    __attribute__((warn_unused_result));
void weir_xdp_maps_close(struct weir_xdp_maps *maps);

/* The constants of a running program. Errors: WEIR_ERR_FORMAT when another version of weir loaded
 * it, or another program; WEIR_ERR_IO. */
int weir_xdp_maps_filter(const struct weir_xdp_maps *maps, struct xdp_filter *filter)
    __attribute__((warn_unused_result));

/* Fills a reason from errno: "CANNOT: Operation not permitted (...)". Returns WEIR_ERR_IO. */
int weir_xdp_failed(struct weir_reason *reason, const char *cannot, int error);

#endif
