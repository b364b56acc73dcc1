/* SPDX-License-Identifier: Apache-2.0 */
/* A client of xDS (state of the world, one type, all resources of it): what it says, and when. No
 * I/O and no clock.
 *
 *   opened ─▶ due at once: {no version, no nonce}
 *   received ─▶ the caller loads it ─▶ accepted: due at once: {version, nonce}
 *                                   └▶ refused:  due later:   {version of the last good one, nonce,
 *                                                              why}
 *   closed ─▶ when to open the next stream
 *
 * The first request of a stream names no version, so that the server sends what it has. A server
 * that has started anew may count its versions anew (Envoy Gateway's are 1, 2, 3): with the version
 * of the stream before, it would take another configuration of the same version for known.
 *
 * A control plane answers a refusal at once with what was refused (15,602 answers in a second were
 * seen). So the first refusal waits REFUSE_FIRST_NS, each further one in a row twice as long, up to
 * REFUSE_MOST_NS; a response that comes meanwhile replaces the refusal. A server without a
 * configuration for this node says nothing for as long as it likes: silence is no failure.
 *
 * Source: https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol. Threads: one owner.
 */
#ifndef WEIR_FEATURE_ENVOY_SERVER_XDS_SESSION_H
#define WEIR_FEATURE_ENVOY_SERVER_XDS_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "feature/envoy/rules/options.h"
#include "wire/grpc/discovery.h"

#define WEIR_XDS_WORD_MAX 1024 /* bytes of a version, and of a nonce */
#define WEIR_XDS_ERROR_MAX 512 /* of a reason, which is cut */
#define WEIR_XDS_REFUSE_FIRST_NS UINT64_C(1000000000)
#define WEIR_XDS_REFUSE_MOST_NS UINT64_C(60000000000)

struct weir_xds_word {
    size_t size;
    char text[WEIR_XDS_WORD_MAX];
};

struct weir_xds_session {
    const struct weir_xds_settings *settings;
    struct weir_discovery_pair metadata[WEIR_XDS_PAIRS_MAX];
    struct weir_xds_word version; /* of what was accepted last on this stream */
    struct weir_xds_word seen;    /* of the last response on this stream */
    struct weir_xds_word nonce;   /* of the last response on this stream */
    bool answered;                /* this stream has had a response */
    bool refusing;                /* what is due refuses `seen` */
    uint32_t refused;             /* responses in a row */
    uint32_t failures;            /* streams in a row without a response */
    uint64_t due_ns;              /* when a request is due; UINT64_MAX: none is */
    char error[WEIR_XDS_ERROR_MAX];
};

void weir_xds_session_init(struct weir_xds_session *session,
                           const struct weir_xds_settings *settings);

/* A stream begins. */
void weir_xds_session_opened(struct weir_xds_session *session, uint64_t now_ns);

/* A response has come, and is to be loaded. Errors: WEIR_ERR_RANGE (its version or its nonce
 * is too long): the stream is to be closed. */
int weir_xds_session_received(struct weir_xds_session *session,
                              const struct weir_discovery_response *response)
    __attribute__((warn_unused_result));

/* The response that came last is in force, or was refused with `error`, which is copied, as UTF-8.
 * Where its stream has ended since, nothing is said; a refusal counts for the wait of the next. */
void weir_xds_session_accepted(struct weir_xds_session *session, uint64_t now_ns);
void weir_xds_session_refused(struct weir_xds_session *session, const char *error, uint64_t now_ns);

/* The request that is due; its texts are the session's and the settings'. It counts as sent. */
void weir_xds_session_request(struct weir_xds_session *session,
                              struct weir_discovery_request *request);

/* The stream has ended, or could not be opened. Returns for how long to wait: `retry_ns` where none
 * could be opened, else `backoff_ns`, doubled up to `backoff_most_ns` while streams bring nothing;
 * give or take `jitter` percent of it by `random`, a uniform number of 32 bits. */
uint64_t weir_xds_session_closed(struct weir_xds_session *session, bool connected, uint32_t random);

#endif
