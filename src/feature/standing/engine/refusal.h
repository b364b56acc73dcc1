/* SPDX-License-Identifier: Apache-2.0 */
/* The request hook of standing (engine/hook.h): denies a request by the standing of its caller, at
 * the time of the decision, and counts that. Of callers whose standing is good there is no hook.
 *
 * Threads: those of the engine.
 */
#ifndef WEIR_FEATURE_STANDING_ENGINE_REFUSAL_H
#define WEIR_FEATURE_STANDING_ENGINE_REFUSAL_H

#include "engine/hook.h"

#endif
