/* SPDX-License-Identifier: Apache-2.0 */
/* What the frames of a connection cost, and those that end it, before nghttp2 sees them.
 *
 * nghttp2 ignores frames of unknown kinds and most frames on streams that are closed, for it does
 * not remember who closed them, and reports nothing. Here they are counted, and a client that
 * continues a stream which it has ended itself loses its connection (RFC 9113 5.1).
 *
 *   stream, by its number            HEADERS, DATA
 *   newer than all before            the client begins it
 *   open at nghttp2                  nghttp2's; a second HEADERS costs by its length
 *   closed by us before its end      what was in flight: ignored, costs by its length
 *   closed otherwise                 STREAM_CLOSED
 *   never begun, and older           PROTOCOL_ERROR (5.1.1)
 *
 * All other frames cost 1 each, DATA without a byte too. A head in many frames has a limit in
 * bytes. Costs are glitches of the session (session.h).
 */
#ifndef WEIR_SERVER_GRPC_FRAMES_H
#define WEIR_SERVER_GRPC_FRAMES_H

#include "server/grpc/grpc.h"

/* Gives nghttp2 what has come, frame by frame where that matters. Returns 0, also where the session
 * is ended and the bytes are dropped, or nghttp2's error. */
int weir_grpc_frames_take(struct weir_connection *connection, const char *data, size_t size)
    __attribute__((warn_unused_result));

/* A stream is closed though the client has not ended it, or was refused: more of it may be in
 * flight. */
void weir_grpc_frames_cut(struct weir_grpc_session *session, uint32_t stream);

#endif
