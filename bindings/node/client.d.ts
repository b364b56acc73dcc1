// SPDX-License-Identifier: Apache-2.0
/// <reference types="node" />

/** What is known of a host's tightest limit; null: not known. */
export interface KnownLimit {
  limit: number | null;
  remaining: number | null;
  /** Until the window ends. */
  resetMs: number | null;
  /** From one request to the next. */
  intervalMs: number | null;
}

export interface Try {
  url: string;
  /** 1 and up. */
  number: number;
  /** 0: there was no answer. */
  status: number;
  error: string | null;
  waitedMs: number;
  tookMs: number;
  /** null: it was the last try. */
  nextWaitMs: number | null;
  limit: KnownLimit;
}

/** Absent and 0 are the defaults of libweir-client. */
export interface SessionOptions {
  /** A file with what is known of limits, which processes share. */
  state?: string;
  /** Requests in flight to all hosts; default 64. */
  concurrency?: number;
  /** Requests in flight to one host; default 16. */
  hostConcurrency?: number;
  /** Fewer of them while latency grows. */
  adaptive?: boolean;
  /** Of one request; default 5. */
  tries?: number;
  /** For one request with all waits; default 60000. Infinity: no limit. */
  timeMs?: number;
  /** For one try; default 30000. */
  tryTimeMs?: number;
  jitter?: 'full' | 'equal' | 'decorrelated' | 'none';
  /** The first wait between tries; default 100. */
  backoffBaseMs?: number;
  /** The longest wait between tries; default 20000. */
  backoffCapMs?: number;
  /** Bytes of a body; default 16 MiB. Of one that is read while it arrives (stream, fetch): no bound. */
  bodyMost?: number;
  /** Requests that wait or are in flight; default 100000. */
  queueMost?: number;
  /** Whether redirects are followed. */
  follow?: boolean;
  userAgent?: string;
  /** Of the jitter, for tests. */
  seed?: number;
  /** Called for each try when it has ended. */
  onTry?: (one: Try) => void;
  /** Header fields of all requests. */
  headers?: Record<string, string | number>;
  /** Statuses that are retried besides those that always are, such as [408, 425]; at most 16. */
  retryOn?: number[];
  /** Exactly these statuses are retried, instead of those that always are and of retryOn; at most 16. */
  retryStatuses?: number[];
  /** By which waits between tries grow: 1 to 100; default 2. */
  backoffFactor?: number;
  /** The most that is sent to a host, whatever its server says: '10/s', '10/s, api.example.com=5/10s burst 5'. */
  rate?: string;
}

export interface RequestOptions {
  headers?: Record<string, string | number>;
  data?: string | Uint8Array;
  /** What becomes a body of JSON. */
  json?: unknown;
  /** Sends an Idempotency-Key, the same in all tries, so that any method is retried. */
  idempotencyKey?: boolean;
  /** Waiting requests of a higher one go first. */
  priority?: number;
  /** What the server counts by when it is not the client's address, such as an API key. */
  scope?: string;
  tries?: number;
  timeMs?: number;
  /** Cancels the request; the promise is rejected with the signal's reason. */
  signal?: AbortSignal;
}

/** A final answer, whatever its status. */
export class Response {
  readonly url: string;
  readonly status: number;
  readonly tries: number;
  readonly limit: KnownLimit;
  readonly fields: [name: string, value: string][];
  /** Names in lower case; of the same name the last. */
  readonly headers: Record<string, string>;
  readonly content: Buffer;
  /** Whether the status is below 400. */
  get ok(): boolean;
  get text(): string;
  json(): any;
}

/** A final answer whose body is read while it arrives, by one reader. */
export class Stream implements AsyncIterable<Buffer> {
  readonly url: string;
  readonly status: number;
  readonly tries: number;
  readonly limit: KnownLimit;
  readonly fields: [name: string, value: string][];
  readonly headers: Record<string, string>;
  get ok(): boolean;
  /** The next piece; null at the end. Rejected with a Failed where the answer broke off. */
  read(): Promise<Buffer | null>;
  [Symbol.asyncIterator](): AsyncGenerator<Buffer, void, void>;
  /** Ends it: what has not been read is lost. */
  cancel(): void;
}

/** A request without a final answer. */
export class Failed extends Error {
  readonly code: string;
  /** The last answer. */
  readonly response: Response | null;
  readonly tries: number;
  readonly limit: KnownLimit;
  /** When a try may succeed; null: not known. */
  readonly retryAfterMs: number | null;
}
/** The last answer was 429, or the limit leaves no room in time. */
export class Limited extends Failed {}
/** The request's time ended. */
export class Timeout extends Failed {}
/** The server or the connection failed, and no try was left or allowed. */
export class GaveUp extends Failed {}
/** No try can help: a certificate that is not valid, an answer that is too large. */
export class Refused extends Failed {}
/** The session was closed. */
export class Cancelled extends Failed {}

export class Session {
  constructor(options?: SessionOptions);
  request(method: string, url: string | URL, options?: RequestOptions): Promise<Response>;
  /** An answer as soon as it has begun; then nothing is tried again. `timeMs` ends with the head, and an answer without
   * a byte for `tryTimeMs` is a Timeout. */
  stream(method: string, url: string | URL, options?: RequestOptions): Promise<Stream>;
  get(url: string | URL, options?: RequestOptions): Promise<Response>;
  head(url: string | URL, options?: RequestOptions): Promise<Response>;
  post(url: string | URL, options?: RequestOptions): Promise<Response>;
  put(url: string | URL, options?: RequestOptions): Promise<Response>;
  patch(url: string | URL, options?: RequestOptions): Promise<Response>;
  delete(url: string | URL, options?: RequestOptions): Promise<Response>;
  /** null: nothing is known. */
  known(url: string | URL, scope?: string): KnownLimit | null;
  /** How many requests are still to come; Infinity: not known. */
  expect(requests: number): void;
  /** Cancels what is left, and closes. */
  close(): void;
}
