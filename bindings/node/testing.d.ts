// SPDX-License-Identifier: Apache-2.0
import type { Options, Weir } from './index.js';

/** A weir whose clock stands still. */
export interface TestWeir extends Weir {
  /** Lets so many milliseconds pass. */
  advance(ms: number): void;
}

export interface TestOptions extends Omit<Options, 'state' | 'stateOwner' | 'stateGroup' | 'stateMode'> {
  /** When the clock begins: a Date, or milliseconds of Unix time; default now. */
  at?: Date | number;
}

/** Opens a rules file, or rules as an object, for a test. The state is private memory, whatever the rules say. */
export function open(rules: string | object, options?: TestOptions): TestWeir;
