/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `weir fetch`. */
#ifndef WEIR_CLI_FETCH_OPTIONS_H
#define WEIR_CLI_FETCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/client.h>

#define FETCH_HEADERS_MAX 32

struct fetch_headers {
    const char *lines[FETCH_HEADERS_MAX];
    size_t count;
};

struct fetch_options {
    const char *input, *output_dir, *method, *data, *state, *scope;
    struct fetch_headers headers;
    enum weir_client_jitter jitter;
    uint16_t retry_on[WEIR_CLIENT_RETRY_ON_MOST], retry_statuses[WEIR_CLIENT_RETRY_ON_MOST];
    const char *rate;
    uint32_t parallel, retry, attempts;
    uint64_t time_ns, try_ns, base_ns, cap_ns;
    double factor;
    bool json, resume, adaptive, location, key, quiet;
};

/* As cli_read_options. */
int fetch_read_options(int argc, char **argv, struct fetch_options *options, int *status);

#endif
