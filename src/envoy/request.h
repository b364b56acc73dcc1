/* SPDX-License-Identifier: Apache-2.0 */
/* What libweir learns of a request of Envoy's: its method, path, host and header fields as far as
 * rules read them, the client's address, and what the configuration adds.
 *
 * The client is who Envoy says (source.address): the peer with `use_remote_address: true`, else
 * what X-Forwarded-For says. With `trusted_proxies` of the filter, X-Forwarded-For and Forwarded
 * count as the rules' `server: {trusted_proxies}` trust that address.
 *
 * Memory: the caller's. Texts are Envoy's: valid until the hook returns or sets something.
 */
#ifndef WEIR_EVY_REQUEST_H
#define WEIR_EVY_REQUEST_H

#include <sys/socket.h>

#include "envoy/shared.h"

/* Values of one request; a client that repeats fields beyond that is refused. */
#define WEIR_EVY_VALUES_MAX 640

/* X-Forwarded-For and Forwarded, their lines joined. */
#define WEIR_EVY_FORWARDED_MAX 4096

struct weir_evy_request {
    struct sockaddr_storage client;
    struct weir_value values[WEIR_EVY_VALUES_MAX];
    char forwarded_for[WEIR_EVY_FORWARDED_MAX], forwarded[WEIR_EVY_FORWARDED_MAX];
};

/* Fills values, client and forwarded of the call. `said` are the settings whose attributes count.
 * Errors: WEIR_ERR_TOO_LARGE. */
int weir_evy_request_read(struct weir_evy_request *request, void *envoy,
                          struct weir_evy_shared *shared, struct weir_evy_settings *said,
                          bool trusted_proxies, struct weir_call *call)
    __attribute__((warn_unused_result));

/* 1: the number of a place of the dynamic metadata, rounded up; 0: there is none. Errors:
 * WEIR_ERR_SYNTAX (a text), WEIR_ERR_RANGE (below 0, above 2^53). */
int weir_evy_metadata_number(void *envoy, const struct weir_evy_place *place, uint64_t *number)
    __attribute__((warn_unused_result));

/* The first line of a header field; data NULL: absent. */
struct weir_evy_text weir_evy_header(void *envoy, enum weir_evy_headers of, const char *name);

/* "192.0.2.1:443" and "[2001:db8::1]:443", a zone left out; false: no address, for example of a
 * Unix socket. */
bool weir_evy_address(struct weir_evy_text text, struct sockaddr_storage *address);

#endif
