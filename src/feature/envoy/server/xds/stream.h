/* SPDX-License-Identifier: Apache-2.0 */
/* The stream to a control plane: a thread that holds
 * /envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources open by libcurl,
 * hands on what comes, and says what the session (session.h) has to say.
 *
 *   the thread                    the main loop and its background thread
 *   response ─▶ box ── received ─▶ weir_xds_stream_take ─▶ parse, compile ─▶ in force, or not
 *   ACK or NACK ◀──────────────── weir_xds_stream_answer
 *
 * The box holds one response: a newer one replaces one that nobody has taken. What is answered is
 * the response that was taken last; an answer that comes after a newer response says nothing.
 *
 * Errors are logged when they change, and once a minute: a control plane that is away for a day
 * fills no disk. Certificates are read anew for each connection.
 *
 * Threads: the functions are for any thread; opening, stopping and closing are the owner's.
 */
#ifndef WEIR_FEATURE_ENVOY_SERVER_XDS_STREAM_H
#define WEIR_FEATURE_ENVOY_SERVER_XDS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "feature/envoy/rules/options.h"
#include "server/daemon/log.h"

struct weir_xds_stream;

/* Starts the thread. `settings` are copied, and their texts stay as long as the stream; `received`
 * is called on the thread. Errors: WEIR_ERR_MEMORY, WEIR_ERR_IO. */
int weir_xds_stream_open(struct weir_xds_stream **stream, const struct weir_xds_settings *settings,
                         struct weir_log *log, void (*received)(void *context), void *context)
    __attribute__((warn_unused_result));

/* Ends the thread, within the time of a name lookup: `received` is not called any more. The other
 * functions go on to work. NULL is allowed. */
void weir_xds_stream_stop(struct weir_xds_stream *stream);

/* Ends the thread, if it has not ended, and frees all: nobody uses the stream any more. NULL is
 * allowed. */
void weir_xds_stream_close(struct weir_xds_stream *stream);

/* A DiscoveryResponse, whole. */
struct weir_xds_response {
    char *data; /* freed with free() */
    size_t size;
    uint64_t number; /* for weir_xds_stream_answer */
};

/* The response that waits. False: none does. */
bool weir_xds_stream_take(struct weir_xds_stream *stream, struct weir_xds_response *response);

/* It is in force (`error` NULL), or was refused. */
void weir_xds_stream_answer(struct weir_xds_stream *stream, uint64_t number, const char *error);

struct weir_xds_counts {
    uint64_t streams, responses, accepted, refused;
    bool connected;
};
void weir_xds_stream_counts(struct weir_xds_stream *stream, struct weir_xds_counts *counts);

#endif
