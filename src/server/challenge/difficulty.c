/* SPDX-License-Identifier: Apache-2.0 */
/* see difficulty.h */
#include "server/challenge/difficulty.h"

uint8_t weir_challenge_difficulty(const struct weir_challenge_settings *settings,
                                  const struct weir_address *client)
{
    (void)client; /* the same for all of them */
    return settings->difficulty;
}
