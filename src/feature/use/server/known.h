/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a value is known from what was seen of late: the denials that are kept, and the keys and
 * callers that use most. A ban of a value that nobody has is mostly a slip; and what is shown only
 * by its SHA-256 is found here, with the id that standing knows it by.
 *
 * Threads: the main thread's. It looks at all denials and at a day of keys: tens of milliseconds.
 */
#ifndef WEIR_FEATURE_USE_SERVER_KNOWN_H
#define WEIR_FEATURE_USE_SERVER_KNOWN_H

#include "feature/use/server/use.h"

struct weir_sighting {
    bool seen;
    uint64_t id[2];    /* 0, 0: not known */
    uint64_t requests; /* at least so many within a day, by the callers that use most */
};

/* Looks for a value of a kind: the real one, or "sha256:…". */
void weir_use_known(struct weir_use_service *use, struct weir_bytes kind, struct weir_bytes value,
                    uint64_t now_ns, struct weir_sighting *known);

#endif
