/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of ladders that nodes share in Redis: see ladder_store.h. The keeper's backend does the
 * work; a swap and its entry are one transaction. */
#ifndef WEIR_FEATURE_PENALTIES_SERVER_LADDER_SHARED_H
#define WEIR_FEATURE_PENALTIES_SERVER_LADDER_SHARED_H

#include "feature/penalties/server/ladder_store.h"

struct weir_ladder_shared {
    struct weir_ladder_store base;
    struct weir_keeper *keeper;
};

/* `keeper` outlives the calls. */
void weir_ladder_shared_init(struct weir_ladder_shared *shared, struct weir_keeper *keeper);

#endif
