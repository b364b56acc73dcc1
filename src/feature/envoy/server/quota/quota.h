/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine of Envoy's quota service (RLQS): which clients have which buckets, what they
 * ask for, and when the next assignment of each is due. Without I/O and without a clock. How one
 * assignment is made is in assign.h.
 *
 * Concept. A client is a stream. A bucket is one id of one client; the buckets of all clients with
 * one id (and one domain) are a group, and share what the limits of that id give. Reports size the
 * demand of a bucket and do nothing else: they get lost with streams, so nothing is charged or
 * given back for them.
 *
 *   report ─▶ demand ─▶ due ─▶ want: max-min fair ─▶ plan (share.h) ─▶ charged ─▶ assignment
 *                        ▲     └────────────────── assign.h ──────────────────┘        │
 *                        └──────────────── half of the time to live ◀──────────────────┘
 *
 * Demand. Envoy reports a new bucket with its first request, and then with all others every 5 s
 * (its `reporting_interval` has no effect). So the demand of a new bucket is not known for up to
 * 5 s. Meanwhile it asks for a quarter of its limits' rate: more would waste
 * what lasts for hours.
 *
 * Fairness. A bucket asks for an eighth more than its demand, because requests do not come evenly.
 * What a group's limits give in a time is divided max-min fairly among its buckets: a
 * bucket that asks for less than an equal part gets all of it, and the others divide the rest.
 * Nodes that share a store do not know of each other's buckets, and each divides what it finds: the
 * test of two nodes shows what comes of it.
 *
 * A bucket whose reports show no request for WEIR_QUOTA_IDLE_MS is abandoned.
 *
 * Memory: about 400 bytes and its id for a bucket, bounded by the options; allocated when a bucket
 * is new. Threads: none of its own; one caller at a time, who locks.
 */
#ifndef WEIR_FEATURE_ENVOY_SERVER_QUOTA_QUOTA_H
#define WEIR_FEATURE_ENVOY_SERVER_QUOTA_QUOTA_H

#include <weir/bytes.h>

#include "feature/envoy/server/quota/share.h"

/* Streams of one process: an Envoy has one for each filter. */
#define WEIR_QUOTA_STREAMS_MAX 1024
/* Buckets of one process, over all streams: 36 MiB with the longest ids. */
#define WEIR_QUOTA_BUCKETS_MAX 16384
#define WEIR_QUOTA_IDLE_MS 60000
/* Reports of a new bucket say too little before it is this old: its second report may follow the
 * first at once. */
#define WEIR_QUOTA_LEARN_MS 2500
/* When nothing could be charged. */
#define WEIR_QUOTA_RETRY_MS 500
/* Places of states while they are being charged: two with the same remainder wait for
 * each other. */
#define WEIR_QUOTA_CLAIMS 4096

struct weir_quota;
struct weir_quota_stream;

/* Buckets of one id and domain. */
struct weir_quota_group {
    struct weir_quota_group *next; /* of its chain */
    struct weir_quota_bucket *buckets;
    uint64_t hash[2];
    struct weir_quota_bucket *at_work; /* the one in PEEKS or CHARGES; NULL: none is */
};

/* Where the assignment of a bucket is: see assign.h. */
enum weir_quota_stage {
    WEIR_QUOTA_IDLE,
    WEIR_QUOTA_PEEKS,
    WEIR_QUOTA_CHARGES,
    WEIR_QUOTA_READY,
};

struct weir_quota_bucket {
    struct weir_quota_bucket *next_of_stream, *previous_of_stream, *next_of_group, *next_ready;
    struct weir_quota_stream *stream;
    struct weir_quota_group *group;
    struct weir_quota_share share;
    uint64_t demand; /* thousandths of a request in WEIR_QUOTA_FILL_MS */
    uint64_t born_ms;
    uint64_t reported_ms, asked_ms; /* the last report; the last one that had requests */
    uint64_t due_ms, sent_ms;       /* the next assignment; the last one */
    bool known;                     /* its demand is */
    uint8_t stage, action;          /* enum weir_quota_stage; READY: enum
                                       weir_grpc_quota_kind */
    struct weir_quota_plan plan;    /* CHARGES, READY: what is charged for, and sent */
    uint64_t planned_ms;            /* and when that was planned */
    struct weir_bytes id;           /* its own */
};

/* What a report says of one bucket. */
struct weir_quota_use {
    uint64_t requests;  /* allowed and denied, since the last report of this client */
    uint64_t elapsed_s; /* since then; 0: less than a second, or unknown */
};

/* Errors: WEIR_ERR_MEMORY. */
int weir_quota_open(struct weir_quota **quota, uint32_t streams_max, uint32_t buckets_max)
    __attribute__((warn_unused_result));
/* Closes all streams. NULL is ignored. */
void weir_quota_close(struct weir_quota *quota);

/* A client is here; NULL: there are too many, or no memory. */
struct weir_quota_stream *weir_quota_stream_open(struct weir_quota *quota);
/* It is gone. What it holds stays charged. */
void weir_quota_stream_close(struct weir_quota_stream *stream);

/* One report of a client on a bucket. `hash` names the group (its domain and id); a bucket that is
 * new to the stream is due at once. Errors: WEIR_ERR_FULL (too many buckets), WEIR_ERR_MEMORY. */
int weir_quota_report(struct weir_quota_stream *stream, const uint64_t hash[2],
                      struct weir_bytes id, const struct weir_quota_use *use, uint64_t now_ms)
    __attribute__((warn_unused_result));

/* The next bucket with a due assignment whose group is idle. NULL: there is none; `waits`: some are
 * due, and another bucket of their group is being assigned. */
struct weir_quota_bucket *weir_quota_due(struct weir_quota_stream *stream, uint64_t now_ms,
                                         bool *waits);

/* Whether it has had no request for so long that it is to be abandoned. */
bool weir_quota_is_idle(const struct weir_quota_bucket *bucket, uint64_t now_ms);

/* Forgets a bucket: it was abandoned. */
void weir_quota_forget(struct weir_quota_bucket *bucket);

/* The buckets of a stream that are READY, in the order in which they have become so. */
void weir_quota_add_ready(struct weir_quota_bucket *bucket);
struct weir_quota_bucket *weir_quota_take_ready(struct weir_quota_stream *stream);
/* When the first of them was planned; 0: there is none. */
uint64_t weir_quota_ready_since(const struct weir_quota_stream *stream);

/* Claims states, by the hashes of their keys, for the time from a peek until the charge: two plans
 * of one peek would count on the same rest, and each would bring a bucket to its end. False:
 * another has one of them, and nothing is claimed. */
bool weir_quota_claim(struct weir_quota *quota, const uint64_t *hashes, uint32_t count);
void weir_quota_unclaim(struct weir_quota *quota, const uint64_t *hashes, uint32_t count);

/* How many requests in WEIR_QUOTA_FILL_MS (at least 1) a bucket may have, by its demand and those
 * of its group, of what the supplies (1 at least) give. Where it asks for more than it may have,
 * what the others need until their next renewals is taken off the supplies. */
uint64_t weir_quota_want(const struct weir_quota_bucket *bucket, struct weir_quota_supply *supplies,
                         uint32_t count, uint64_t now_ms);

/* How many there are. */
uint32_t weir_quota_streams(const struct weir_quota *quota);
uint32_t weir_quota_buckets(const struct weir_quota *quota);

#endif
