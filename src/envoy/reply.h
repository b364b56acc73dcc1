/* SPDX-License-Identifier: Apache-2.0 */
/* What clients are sent: denials, refusals, and the fields of answers that pass.
 *
 * A call of gRPC gets a trailers-only answer with its status, since Envoy's plain local answers
 * would be HTTP 200 with grpc-status 0 to it, a success.
 */
#ifndef WEIR_EVY_REPLY_H
#define WEIR_EVY_REPLY_H

#include <weir/embed.h>

#include "envoy/settings.h"

/* Of one answer; texts are the caller's. */
struct weir_evy_reply {
    unsigned status;                   /* of HTTP */
    const char *limit;                 /* that denies; NULL: none does */
    const char *type;                  /* Content-Type of the body; empty: none */
    struct weir_evy_text fields, body; /* fields: "Name: value\r\n" lines */
    enum weir_evy_fields which;
};

/* A denial, with all that the limit says. */
void weir_evy_send(void *envoy, const struct weir_evy_reply *reply);

/* A request that cannot be decided: 400, 500 or 503, with the reason as text. */
void weir_evy_refuse(void *envoy, unsigned status, const char *reason);

/* Adds "Name: value\r\n" lines to the response. */
void weir_evy_add_fields(void *envoy, struct weir_evy_text fields);

#endif
