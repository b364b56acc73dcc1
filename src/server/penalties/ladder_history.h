/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of ladders in the history of standing: see ladder_store.h. The thread of the history does
 * the work; a swap and its entry are one transaction. */
#ifndef WEIR_SERVER_PENALTIES_LADDER_HISTORY_H
#define WEIR_SERVER_PENALTIES_LADDER_HISTORY_H

#include "server/penalties/ladder_store.h"

struct weir_ladder_history {
    struct weir_ladder_store base;
    struct weir_keeper *keeper;
};

/* `keeper` outlives the calls. */
void weir_ladder_history_init(struct weir_ladder_history *history, struct weir_keeper *keeper);

#endif
