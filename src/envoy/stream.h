/* SPDX-License-Identifier: Apache-2.0 */
/* One request of Envoy's, from its headers to its end.
 *
 *     request_headers
 *         |- allowed -> response_headers (fields) -> stream_complete (settled)
 *         |- queued  -> waits -> scheduled -> continues, as allowed
 *         |- denied  -> answered
 *         `- tarpit  -> waits -> scheduled -> answered
 *
 * What it has charged is settled when it is complete: by its true cost (`settle`), or by its status
 * (`refund_on`). A client that leaves while its request waits gets its charge back.
 *
 * Memory: 1 KiB; with a lease 1.2 KiB more, with a reservation 4 KiB, with penalties what the rules
 * read of it. Threads: those of its worker.
 */
#ifndef WEIR_EVY_STREAM_H
#define WEIR_EVY_STREAM_H

#include "envoy/filter.h"

struct weir_evy_stream;

/* NULL: without memory. */
struct weir_evy_stream *weir_evy_stream_new(const struct weir_evy_filter *filter);

/* Envoy's hooks. */
enum weir_evy_status weir_evy_stream_decide(struct weir_evy_stream *stream, void *envoy);
void weir_evy_stream_respond(struct weir_evy_stream *stream, void *envoy);
void weir_evy_stream_scheduled(struct weir_evy_stream *stream, void *envoy);
void weir_evy_stream_complete(struct weir_evy_stream *stream, void *envoy);
void weir_evy_stream_free(struct weir_evy_stream *stream);

#endif
