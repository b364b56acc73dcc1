/* SPDX-License-Identifier: Apache-2.0 */
/* One entry of the pool: what it holds beside its decision, and how it goes back. All parts of the
 * engine use it, and it calls none that decides. See state.h and weir_engine_release of engine.h.
 */
#ifndef WEIR_ENGINE_ENTRY_H
#define WEIR_ENGINE_ENTRY_H

#include "engine/state.h"
