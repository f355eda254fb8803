import { now, onAbort } from "./clock.js";
import { CodeqError, garbled, isRefusal, messageOf, outcomeUnknown, refusal, unanswered } from "./errors.js";

const answerWithinMs = 15_000;
const maxHops = 5;
const lostForMs = 30_000;

/** A token, or what returns one: it is asked before each request and each connection. */
export type Token = string | (() => string | Promise<string>);

/** One request. @internal */
export interface Call {
  method: "GET" | "POST" | "PUT";
  path: string;
  body?: string | Uint8Array | Blob | undefined;
  /** The body of the answer is the Response, unread. */
  raw?: true;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** The time that the server was asked to wait. */
  waitMs?: number;
  /** What to do if no answer came: set for changes that are not repeated here. */
  remedy?: string;
}

/** @internal */
export interface Reply<T> {
  body: T;
  headers: Headers;
}

/** The addresses of the servers. They are tried in turn, and a server may name the one that leads. @internal */
export class Servers {
  readonly #all: URL[];
  readonly #lostAt = new Map<URL, number>();
  #at = 0;

  constructor(url: string | readonly string[]) {
    this.#all = (typeof url === "string" ? url.split(",") : url).map((u) => u.trim()).filter(Boolean).map(baseURL);
    if (this.#all.length === 0) throw new TypeError("url names no server: give it one such as http://127.0.0.1:8080");
  }

  get current(): URL {
    return this.#all[this.#at]!;
  }

  get count(): number {
    return this.#all.length;
  }

  /** lost goes on to the next address after an error for which another may be better, unless somebody else has. It reports whether there is such an address. */
  lost(from: URL, error: unknown): boolean {
    if (this.count === 1 || !(error instanceof CodeqError) || !["unreached", "away", "internal", "broken", "gateway"].includes(error.fate)) return false;
    this.#lostAt.set(from, now());
    if (from === this.current) this.#at = (this.#at + 1) % this.count;
    return true;
  }

  /**
   * leads goes to the server that an answer names as the leader, and reports whether it is another one. It must be one of
   * ours, because the token goes there, and none that was lost a moment ago: others may reach it, and this client not.
   */
  leads(leader: string | null | undefined): boolean {
    if (!leader || this.count === 1) return false;
    let origin: string;
    try {
      origin = baseURL(leader).origin;
    } catch {
      return false;
    }
    const at = this.#all.findIndex((u) => u.origin === origin);
    if (at < 0 || at === this.#at || now() - (this.#lostAt.get(this.#all[at]!) ?? -Infinity) < lostForMs) return false;
    this.#at = at;
    return true;
  }

  /** mayKnowToken reports whether an address has the host and port of one of ours. */
  mayKnowToken(at: URL): boolean {
    return this.#all.some((u) => u.host === at.host);
  }
}

function baseURL(given: string): URL {
  const text = /^[a-z+.-]+:\/\//i.test(given) ? given : `http://${given}`;
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new TypeError(`url ${JSON.stringify(given)} is no address: give one such as http://127.0.0.1:8080`);
  }
  if (url.protocol === "ws:" || url.protocol === "wss:") url = new URL(text.replace(/^ws/i, "http"));
  if (url.protocol !== "http:" && url.protocol !== "https:") throw new TypeError(`url ${JSON.stringify(given)} begins with ${url.protocol}//: give http:// or https://`);
  url.search = url.hash = url.username = url.password = "";
  if (url.pathname.endsWith("/")) url.pathname = url.pathname.slice(0, -1);
  return url;
}

/** at is the address of a path of the API. @internal */
export function at(base: URL, path: string): URL {
  return new URL(`${base.href.replace(/\/$/, "")}/v1/codeq${path}`);
}

/** Requests of one client. @internal */
export class Http {
  readonly servers: Servers;

  constructor(url: string | readonly string[], private readonly tokenOf: Token | undefined, private readonly tenant: string | undefined) {
    this.servers = new Servers(url);
  }

  /** token is the token that may be sent to an address, if any. Without the one that is asked for nothing is sent. */
  async token(to: URL): Promise<string | undefined> {
    if (!this.servers.mayKnowToken(to)) return undefined;
    try {
      return (typeof this.tokenOf === "function" ? await this.tokenOf() : this.tokenOf) || undefined;
    } catch (cause) {
      throw new CodeqError({ code: "unreachable", fate: "unreached", cause, message: `nothing was sent to ${to.origin}, because there is no token: ${messageOf(cause)}` });
    }
  }

  /**
   * ask sends one request, once. While nothing was done for certain, the other servers are asked. The error is a
   * CodeqError, or the reason of the signal.
   */
  async ask<T>(call: Call): Promise<Reply<T>> {
    for (let asked = 1; ; asked++) {
      const base = this.servers.current;
      try {
        return await this.#once<T>(call, at(base, call.path));
      } catch (error) {
        if (!(error instanceof CodeqError)) throw error;
        this.servers.lost(base, error);
        if ((error.fate === "unreached" || error.fate === "away") && asked < this.servers.count) continue;
        throw call.remedy && unanswered(error.fate) ? outcomeUnknown(error, call.remedy) : error;
      }
    }
  }

  async #once<T>(call: Call, to: URL): Promise<Reply<T>> {
    for (let hops = 0; ; hops++) {
      const [response, text] = await this.#send(call, to);
      this.servers.leads(response.headers.get("Codeq-Leader"));
      if (response.ok) return { body: (call.raw ? response : parse(text, to, response.status)) as T, headers: response.headers };
      const next = redirected(to, response.status, response.type, response.headers.get("Location"), hops);
      if (!next) throw answered(to, response.status, text, response.headers.get("Retry-After"));
      to = next;
    }
  }

  async #send(call: Call, to: URL): Promise<[Response, string]> {
    const stop = new AbortController();
    const late = new CodeqError({ code: "timeout", fate: "broken", message: `${to.origin} took the request and gave no answer in time` });
    const timer = setTimeout(() => stop.abort(late), (call.waitMs ?? 0) + answerWithinMs);
    const forget = onAbort(call.signal, (reason) => stop.abort(reason));
    let response: Response | undefined;
    try {
      const token = await this.token(to);
      const headers: Record<string, string> = { ...call.headers };
      if (call.body !== undefined) headers["Content-Type"] ??= "application/json";
      if (token) headers["Authorization"] = `Bearer ${token}`;
      if (this.tenant && this.servers.mayKnowToken(to)) headers["X-Codeq-Tenant"] = this.tenant;
      response = await fetch(to, {
        method: call.method, headers, signal: stop.signal, redirect: "manual", cache: "no-store", ...(call.body === undefined ? {} : { body: call.body as string | Blob }),
      });
      return [response, call.raw && response.ok ? "" : await response.text()];
    } catch (error) {
      call.signal?.throwIfAborted();
      throw error instanceof CodeqError ? error : noAnswer(to, error, response !== undefined);
    } finally {
      clearTimeout(timer);
      forget();
    }
  }
}

/** Codes of Node's fetch for a connection that was never there. */
const unreached = new Set([
  "ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "EADDRNOTAVAIL", "ETIMEDOUT", "UND_ERR_CONNECT_TIMEOUT",
  "DEPTH_ZERO_SELF_SIGNED_CERT", "SELF_SIGNED_CERT_IN_CHAIN", "UNABLE_TO_VERIFY_LEAF_SIGNATURE", "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "CERT_HAS_EXPIRED", "ERR_TLS_CERT_ALTNAME_INVALID", "ERR_SSL_WRONG_VERSION_NUMBER", "EPROTO",
]);

/** noAnswer is the error of a request or a dial that ended without a whole answer. @internal */
export function noAnswer(to: URL, error: unknown, began: boolean): CodeqError {
  const cause = ((error as Error).cause ?? error) as { code?: string; message?: string; socket?: { bytesWritten?: number } };
  const code = cause.code ?? "";
  if (!began && (unreached.has(code) || cause.socket?.bytesWritten === 0)) {
    const why = code === "ECONNREFUSED" ? `no codeq server answers at ${to.origin}: start one with "codeq serve", or give another url`
      : /CERT|SIGNATURE/.test(code) ? `the certificate of ${to.host} is not trusted (${code}): start node with NODE_EXTRA_CA_CERTS=FILE of its issuer`
      : /SSL|EPROTO/.test(code) ? `${to.host} does not speak TLS: write http:// in the url`
      : `nothing could be sent to ${to.origin} (${code || messageOr(cause.message)}): check the url and the network`;
    return new CodeqError({ code: "unreachable", fate: "unreached", message: why, cause: error });
  }
  const what = began ? `the answer of ${to.origin} broke off` : `the connection to ${to.origin} ended before the answer came`;
  return new CodeqError({ code: "unreachable", fate: "broken", message: `${what} (${code || messageOr(cause.message)})`, cause: error });
}

const messageOr = (message: string | undefined) => message || "no reason was given";

function parse(text: string, to: URL, status: number): unknown {
  try {
    return text === "" ? undefined : JSON.parse(text);
  } catch (cause) {
    throw garbled(`${to.origin} answered ${status} with something that is not JSON`, cause);
  }
}

/** redirected is where a 307 or 308 leads; undefined if the answer is no redirect. @internal */
export function redirected(from: URL, status: number, type: string, location: string | null | undefined, hops: number): URL | undefined {
  const opaque = type === "opaqueredirect";
  if (!opaque && ![301, 302, 303, 307, 308].includes(status)) return undefined;
  const moved = (message: string) => new CodeqError({ code: "moved", fate: "moved", status, message, retryable: false });
  const said = `${from.origin} answered ${opaque ? "with a redirect" : status}`;
  let to: URL;
  try {
    to = new URL(location ?? "", location ? from : undefined);
  } catch {
    throw moved(`${said} without an address that can be used: give the url of the server itself`);
  }
  if (to.protocol === "ws:" || to.protocol === "wss:") to = new URL(to.href.replace(/^ws/, "http"));
  if (status !== 307 && status !== 308) throw moved(`${said}: the server has moved to ${to.origin}: give that url`);
  if (from.protocol === "https:" && to.protocol !== "https:") throw moved(`${said} and names ${to.origin}, which is not encrypted: the request was not sent there`);
  if (hops >= maxHops) throw moved(`${said} and names ${to.origin}, after ${hops} redirects: give the url of the server itself`);
  return to;
}

/** answered is the error of an answer that is neither a success nor a redirect. @internal */
export function answered(to: URL, status: number, text: string, retryAfter: string | null | undefined): CodeqError {
  const after = Number(retryAfter) || undefined;
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  if (isRefusal(body)) return refusal(body, status, after);
  const said = `${to.origin} answered ${status}, not in the words of codeq`;
  const parts = { code: "not_codeq", status, retryAfterMs: after && after * 1000 };
  if (/HTTPS server|HTTPS port|SSL-enabled/.test(text)) return new CodeqError({ code: "unreachable", fate: "refused", status, message: `${to.host} wants TLS: write https:// in the url` });
  if (status === 429) return new CodeqError({ ...parts, fate: "putOff", message: `${said}: a proxy lets no more requests through now` });
  if (status >= 500) return new CodeqError({ ...parts, fate: "gateway", message: `${said}: a proxy has no answer of the server` });
  return new CodeqError({ ...parts, fate: "foreign", retryable: false, message: `${said}: is it a codeq server?` });
}
