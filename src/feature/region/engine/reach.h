/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of an operator that also act in the homes of their keys: a reset (WEIR_OP_RESET), or a
 * grant (WEIR_OP_REFUND).
 *
 *   the own store has done it ──▶ the homes that are reached do it too, by questions (question.h)
 *       ├── all have answered  ──▶ finished: its outcomes are the homes' where a home has one
 *       └── one fails, is late ──▶ finished, and that region is named (weir_engine_unreached)
 *
 * A reset has found something where the own store or the home has. A grant gives back at most its
 * units in each of the two, and in each at most what was used there. Floors of other regions stay
 * as they are. Where the own store fails, no home is asked.
 *
 * A home is reached where its limit lends or has `wait` (weir_rules_home). It has WEIR_QUESTION_NS
 * to answer; a late one may have done it.
 *
 * Memory: that of questions. Threads: those of the engine.
 */
#ifndef WEIR_FEATURE_REGION_ENGINE_REACH_H
#define WEIR_FEATURE_REGION_ENGINE_REACH_H

#include "engine/hook.h" /* weir_hook_reach */

#endif
