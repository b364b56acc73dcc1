/* SPDX-License-Identifier: Apache-2.0 */
/* What a container runtime writes around the lines of a program:
 *
 *   docker  {"log":"LINE\n","stream":"stdout","time":"2020-01-01T00:00:00.000000000Z"}
 *   CRI     2016-10-06T00:17:09.669794202Z stdout F LINE
 *
 * Sources: Docker, "JSON File logging driver" and daemon/logger/jsonfilelog/jsonlog; Kubernetes,
 * "CRI logging" (containerd, CRI-O): proposals/kubelet-cri-logging.md, `TIMESTAMP STREAM TAGS
 * LINE`, tags P (a part) and F (the last or only part), further ones behind colons.
 *
 * A long line comes in parts: docker cuts at 16 KiB, and only the last part ends with a newline;
 * CRI marks them. Lines of the two streams may stand between the parts of one.
 */
#ifndef WEIR_WIRE_LOG_ENVELOPE_H
#define WEIR_WIRE_LOG_ENVELOPE_H

#include <stdbool.h>

#include <weir/bytes.h>

enum weir_log_envelope { WEIR_LOG_PLAIN, WEIR_LOG_DOCKER, WEIR_LOG_CRI };
#define WEIR_LOG_ENVELOPES 3

/* A line of the program, or a part of one. */
struct weir_log_piece {
    char *text; /* in the line that was read, which docker's is unescaped in */
    size_t size;
    bool is_error; /* of standard error, else of standard output */
    bool goes_on;  /* the next piece of this stream belongs to the same line */
};

/* "docker", "cri"; "" for none. */
const char *weir_log_envelope_name(enum weir_log_envelope envelope);

/* Takes the envelope off. False: the line has none of this kind. */
bool weir_log_unwrap(enum weir_log_envelope envelope, char *text, size_t size,
                     struct weir_log_piece *piece);

#endif
