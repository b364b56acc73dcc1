/* SPDX-License-Identifier: Apache-2.0 */
/* One try of a job as a transfer of libcurl: its options, and what its callbacks take. */
#ifndef WEIR_CLIENT_TRANSFER_H
#define WEIR_CLIENT_TRANSFER_H

#include "client/job.h"

struct weir_transfer_spec {
    uint64_t timeout_ns;
    const char *user_agent;
    bool follow;
    /* The fields of a final answer have come, of a job with on_head. False: it is refused. */
    bool (*begun)(void *context, struct weir_client_job *job, int status);
    void *context;
};

/* Makes the job's handle ready for a try. False: no memory. */
bool weir_transfer_prepare(struct weir_client_job *job, const struct weir_transfer_spec *spec);

/* Finishes the advice of the answer, once: at the end of its fields, or of the transfer. */
void weir_transfer_advise(struct weir_client_job *job);

/* The transfer has ended well: the head of a stream is handed over, if it was not. False: the
 * caller refused it. */
bool weir_transfer_begin(struct weir_client_job *job);

/* The status of the last answer; 0: there was none that can be trusted (`code` is an error). */
int weir_transfer_status(const struct weir_client_job *job, CURLcode code);

/* Whether another try may end otherwise. */
bool weir_transfer_transient(const struct weir_client_job *job, CURLcode code);

/* Why there is no answer, or NULL. */
const char *weir_transfer_error(const struct weir_client_job *job, CURLcode code);

#endif
