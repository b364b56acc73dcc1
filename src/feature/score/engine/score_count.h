/* SPDX-License-Identifier: Apache-2.0 */
/* The request hook of scores (engine/hook.h): counts requests by the class of their caller.
 *
 * Threads: those of the engine.
 */
#ifndef WEIR_FEATURE_SCORE_ENGINE_SCORE_COUNT_H
#define WEIR_FEATURE_SCORE_ENGINE_SCORE_COUNT_H

#include "engine/hook.h"

#endif
