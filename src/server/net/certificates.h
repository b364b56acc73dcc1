/* SPDX-License-Identifier: Apache-2.0 */
/* The certificates of the server's listeners, and noticing that their files have changed.
 *
 * One set holds a TLS context for every listener that has `tls:`. It is made beside the main
 * thread and handed to the workers like rules: new connections take the new set, those that are
 * open keep theirs. Files are looked at once a second (tools that renew certificates send no
 * signal, which is impossible in Kubernetes), and read once they have stopped changing; a set that
 * cannot be made leaves the old one in use.
 *
 * Threads: a set is immutable and reference counted; struct weir_certificate_watch belongs to one
 * thread at a time.
 */
#ifndef WEIR_SERVER_NET_CERTIFICATES_H
#define WEIR_SERVER_NET_CERTIFICATES_H

#include <weir/error.h>

#include "rules/rules.h"
#include "server/net/fronts.h"
#include "wire/tls/tls.h"

struct weir_certificates;

/* Reads the files that the settings name; the caller owns one reference. Errors: those of
 * weir_file_check and weir_tls_server, whose reason this names the listener in. */
int weir_certificates_load(struct weir_certificates **certificates,
                           const struct weir_fronts *fronts, const struct weir_settings *settings,
                           struct weir_reason *reason) __attribute__((warn_unused_result));
struct weir_certificates *weir_certificates_ref(struct weir_certificates *certificates);
void weir_certificates_unref(struct weir_certificates *certificates);

/* Of the listener of a front end; NULL: it is plain. Borrowed from the set. */
struct weir_tls_context *weir_certificates_of(const struct weir_certificates *certificates,
                                              const struct weir_front *front);

struct weir_certificate_watch {
    uint64_t loaded; /* what the files were when they were read, or tried, last */
    uint64_t seen;   /* what they were a moment ago */
};

/* Takes the files as they are for read. */
void weir_certificate_watch_start(struct weir_certificate_watch *watch,
                                  const struct weir_fronts *fronts,
                                  const struct weir_settings *settings);

/* Whether the files have changed since and are still the same as at the last call; then they count
 * as read. */
bool weir_certificate_watch_due(struct weir_certificate_watch *watch,
                                const struct weir_fronts *fronts,
                                const struct weir_settings *settings);

#endif
