/* SPDX-License-Identifier: Apache-2.0 */
/* What `weir xdp` does, in a weir that was built with the filter. All print errors and return the
 * exit status. */
#ifndef WEIR_FEATURE_XDP_CLI_COMMANDS_H
#define WEIR_FEATURE_XDP_CLI_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

struct xdp_options {
    const char *config, *interface, *pins;
    bool dry_run, json, once;
    uint64_t count, interval_s; /* of top */
};

int xdp_attach(const struct xdp_options *options);
int xdp_detach(const struct xdp_options *options);
int xdp_status(const struct xdp_options *options);
int xdp_top(const struct xdp_options *options);

#endif
