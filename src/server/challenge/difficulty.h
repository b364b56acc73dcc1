/* SPDX-License-Identifier: Apache-2.0 */
/* How difficult the puzzle of one client is: the one place that decides it. */
#ifndef WEIR_SERVER_CHALLENGE_DIFFICULTY_H
#define WEIR_SERVER_CHALLENGE_DIFFICULTY_H

#include "core/address.h"
#include "rules/rules.h"

/* In bits, 1 to WEIR_CHALLENGE_DIFFICULTY_MAX; `client` asks for a puzzle. */
uint8_t weir_challenge_difficulty(const struct weir_challenge_settings *settings,
                                  const struct weir_address *client);

#endif
