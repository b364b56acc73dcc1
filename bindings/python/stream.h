/* SPDX-License-Identifier: Apache-2.0 */
/* weir._client.Stream: the answer to one request, read while it arrives.
 *
 *     head(wait)   what fetch returns, with the outcome "begun" and no body; or where nothing has
 *                  begun, the end. None: not yet, without `wait`
 *     read(wait)   bytes that have come, all of them; b"": the end. None: not yet, without `wait`
 *     end()        what fetch returns, without a body; None: it has not ended
 *     cancel()     ends it
 *
 * `wake` is called without arguments on the client's thread when one of them has something new;
 * None: it is not wanted. What has come and was not read is at most STREAM_WINDOW and a piece: then
 * the transfer pauses. A Stream that is forgotten is cancelled.
 *
 * Threads: one thread reads. Memory: the feed is shared with the request in flight, and freed by
 * the last of both.
 */
#ifndef WEIR_PYTHON_STREAM_H
#define WEIR_PYTHON_STREAM_H

#include "client.h"

#define STREAM_WINDOW (256 * 1024)

extern PyType_Spec stream_spec;

/* Begins the request. Returns a new Stream, or NULL with an exception set. */
PyObject *stream_start(PyTypeObject *type, struct client *client,
                       struct weir_client_request *request, PyObject *wake);

#endif
