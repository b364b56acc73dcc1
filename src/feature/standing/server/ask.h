/* SPDX-License-Identifier: Apache-2.0 */
/* What the query of a call about standing asks for. */
#ifndef WEIR_FEATURE_STANDING_SERVER_ASK_H
#define WEIR_FEATURE_STANDING_SERVER_ASK_H

#include "server/http/http.h"

#define WEIR_STANDING_COUNT_DEFAULT 100
#define WEIR_STANDING_COUNT_MAX 1000

/* The words of a refusal of a level that does not exist. */
#define WEIR_STANDING_LEVEL_WANTED                                                                 \
    "level: good, warned, throttled, challenged, suspended, revoked or trusted"

/* Its texts are in http->joined, or in the JSON of a body. */
struct weir_standing_ask {
    struct weir_bytes kind, value, level, by, reason, file;
    uint64_t count, skip;
};

/* Reads the parameters of the query: kind, value, level, by, reason, count (which is bounded) and
 * skip; where `files`, also file, but neither by nor reason. False: it has answered with a problem.
 */
bool weir_standing_ask_read(struct weir_http_call *call, struct weir_standing_ask *ask, bool files);

#endif
