// SPDX-License-Identifier: Apache-2.0
/// <reference types="node" />
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

export interface Options {
  /** The state file that processes share; else that of the rules file, else private memory. */
  state?: string;
  /** Bytes; default 64 MiB. */
  stateBytes?: number;
  /** Of a state file that is made: a user, a group, bits of 0o666. */
  stateOwner?: string;
  stateGroup?: string;
  stateMode?: number;
  /** How long a check waits for a process on the state file that is stopped; default 100. */
  statePatienceMs?: number;
  stateOpenPatienceMs?: number;
  /** Threads that check at the same time with this object; default 1, what one thread of Node needs. */
  threads?: number;
  /** Whether leases end when this process dies; default true. */
  leasesEndWithProcess?: boolean;
  /** Whether a state file that cannot be opened is an error. Else `on_store_error` of the limits decides, and weir
   * tries again each second; default false. */
  stateMustOpen?: boolean;
  /** Where weir logs what an operator has to know; default `console`. */
  logger?: { info(text: string): void; warn(text: string): void; error(text: string): void };
}

export type AttributeValue = string | number | bigint | boolean | null | undefined;

export interface CheckRequest {
  method?: string;
  path?: string;
  host?: string;
  /** The client's address, or that of its connection if the next two are given. */
  ip?: string;
  /** X-Forwarded-For and Forwarded as they arrived: they count if `ip` is a trusted proxy. */
  forwardedFor?: string;
  forwarded?: string;
  /** Names in any case; a list has the lines of one field. */
  headers?: Record<string, AttributeValue | AttributeValue[]>;
  attributes?: Record<string, AttributeValue>;
  /** Default 1; 0 asks whether a limit is used up. */
  cost?: number;
  /** Decides, and charges nothing. */
  dryRun?: boolean;
  /** Charges this request once, however often it is checked. */
  idempotencyKey?: string;
  /** Header fields are a client's that may not say its class of priority. */
  untrusted?: boolean;
}

export interface LimitAnswer {
  name: string;
  algorithm: string;
  allowed: boolean;
  shadow: boolean;
  unlimited: boolean;
  borrowed: boolean;
  overflow: boolean;
  /** `warn_at` that is reached, in percent; 0: none. */
  warning: number;
  cost: number;
  windowMs: number;
  limit: number;
  remaining: number;
  /** Infinity: never. */
  retryAfterMs: number;
  resetAfterMs: number;
}

export class Reservation {
  private constructor();
  /** Good in all processes on the state. */
  readonly token: string;
}

/** What weir says of one request. */
export class Answer {
  private constructor();
  allowed: boolean;
  /** 200, or what the denial means. */
  status: number;
  /** The limit's name, 'standing', or null. */
  readonly deniedBy: string | null;
  /** 0 when allowed; Infinity: never. */
  retryAfterMs: number;
  /** How long to hold the request, or its denial. */
  delayMs: number;
  /** Of the tightest limit; Infinity where none applies. */
  remaining: number;
  warning: number;
  storeFailed: boolean;
  repeated: boolean;
  readonly action: 'mark' | 'delay' | 'challenge' | 'tarpit' | 'reject' | null;
  readonly standing: string | null;
  readonly reason: string | null;
  readonly className: string | null;
  /** To release(), where a limit of concurrency gave one. */
  readonly lease: string | null;
  readonly reservation: Reservation | null;
  /** Finished header fields: RateLimit, Retry-After, … */
  readonly headers: [name: string, value: string][];
  readonly contentType: string | null;
  /** Of a denial. */
  readonly body: string | null;
  readonly limits: LimitAnswer[];
}

/** Errors have a `code`: 'WEIR_ERR_SYNTAX', 'WEIR_ERR_BUSY', … */
export interface WeirError extends Error { code: string; }

/** An open rules file: what open() returns. */
export class Weir {
  private constructor();
  /** Whether some limit has `refund_on`. */
  readonly refunds: boolean;
  passes(code: string): boolean;
  /** Why the state file cannot be opened; null: it is open. */
  readonly stateError: string | null;
  /** The statuses that are strikes of some penalty (`outcomes`). */
  readonly outcomes: ReadonlySet<number>;
  /** Decides a request now, within about a microsecond. A denial is an answer, not an error. */
  check(request: CheckRequest): Answer;
  /** The same, to be settled within `lifeMs` (1 s to 1 h; default 60 s). */
  reserve(request: CheckRequest, options?: { lifeMs?: number }): Answer;
  /** The request has cost `cost` in truth. */
  settle(reservation: Reservation | string, cost: number): void;
  /** The request ended with this status: limits with `refund_on` give back. */
  report(reservation: Reservation | string, status: number): void;
  /** A request, given as to check(), ended with this status: a strike of penalties with it in `outcomes`. */
  outcome(request: CheckRequest, status: number): void;
  /** The request did not happen. */
  cancel(reservation: Reservation | string): void;
  release(lease: string): void;
  renew(lease: string): void;
  /** Reads the rules file again; the old rules stay when it has errors. */
  reload(): void;
  close(): void;
}

declare module 'http' {
  interface IncomingMessage {
    /** What weir has said of the request, behind one of the handlers below. */
    weir?: Answer;
  }
}

/** Opens a rules file, or rules as an object. */
export function open(rules: string | object, options?: Options): Weir;

export type MaybePromise<T> = T | Promise<T>;

export interface LimitOptions<Request, Response> {
  /** Attributes that the rules read: user, plan, org, … Call it after authentication. */
  attributes?: (request: Request) => MaybePromise<Record<string, AttributeValue> | null | undefined>;
  cost?: number | ((request: Request) => MaybePromise<number>);
  /** The true cost, after the response; nothing: it stays as charged. */
  settle?: (request: Request, response: ServerResponse) => MaybePromise<number | null | undefined>;
  /** Gives back what requests with a status below 400, or from 400 on, were charged. */
  skipSuccessful?: boolean;
  skipFailed?: boolean;
  /** Requests that are not limited. */
  skip?: (request: Request) => MaybePromise<boolean | null | undefined>;
  /** The client's address, in place of that of the connection; X-Forwarded-For and Forwarded do not count then. */
  ip?: (request: Request) => MaybePromise<string | null | undefined>;
  /** Called for each denial; what answers by itself is left alone. */
  onLimited?: (answer: Answer, request: Request, response: Response) => unknown;
  /** If weir cannot decide: by default what `on_store_error` of the rules says, else 'closed', a 503, as for a
   * connection without an address. */
  onError?: 'open' | 'closed' | ((error: WeirError, request: Request) => MaybePromise<'open' | 'closed' | void>);
  /** false: no header fields. */
  headers?: boolean;
  /** Clients may say their class of priority in a header field. */
  trusted?: boolean;
}

type Next = (error?: any) => void;

export function http(weir: Weir, options?: LimitOptions<IncomingMessage, ServerResponse>):
  (req: IncomingMessage, res: ServerResponse, next: Next) => void;
export function express(weir: Weir, options?: LimitOptions<any, any>): (req: any, res: any, next: Next) => void;
/** A hook: `app.addHook('onRequest', fastify(weir))`. */
export function fastify(weir: Weir, options?: LimitOptions<any, any>):
  (request: any, reply: any, done: Next) => void;
export function koa(weir: Weir, options?: LimitOptions<any, any>):
  (ctx: any, next: () => Promise<any>) => Promise<void>;
/** `server.on('upgrade', upgrade(weir, (req, socket, head) => wss.handleUpgrade(…)))`. */
export function upgrade(weir: Weir, next: (req: IncomingMessage, socket: Duplex, head: Buffer) => void,
  options?: LimitOptions<IncomingMessage, Duplex>): (req: IncomingMessage, socket: Duplex, head: Buffer) => void;
