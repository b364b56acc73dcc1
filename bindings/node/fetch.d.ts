// SPDX-License-Identifier: Apache-2.0
/// <reference types="node" />

import { RequestOptions, Session } from './client.js';

/** Options of all requests; `data`, `json`, `headers` and `signal` are each request's own. */
export type TransportOptions = Omit<RequestOptions, 'headers' | 'data' | 'json' | 'signal'>;

/** A dispatcher for undici: for `setGlobalDispatcher`, and the option `dispatcher` of `fetch` and `request`. */
export class Dispatcher {
  constructor(session: Session, options?: TransportOptions);
  dispatch(options: any, handler: any): boolean;
  /** The session is the caller's to close. */
  close(): Promise<void>;
  destroy(): Promise<void>;
}

/** `fetch` through the session, for the option `fetch` of an SDK. */
export function fetchOf(session: Session, options?: TransportOptions): typeof globalThis.fetch;
