/* SPDX-License-Identifier: Apache-2.0 */
/* The field Accept-Encoding (RFC 9110 12.5.3): which codings a client takes, with their weights. */
#ifndef WEIR_WIRE_HTTP_ACCEPT_ENCODING_H
#define WEIR_WIRE_HTTP_ACCEPT_ENCODING_H

#include <stdbool.h>

#include <weir/bytes.h>

/* Whether a client takes a coding, "gzip": by its name, else by `*`, with a weight above 0. What
 * cannot be read is ignored. Names are compared without regard to case. */
bool weir_accepts_coding(struct weir_bytes field, const char *coding);

#endif
