import { Alarm, now, onAbort, sleep } from "./clock.js";
import { answered, at, noAnswer, redirected, type Http } from "./http.js";
import { CodeqError, isRefusal, messageOf, refusal } from "./errors.js";
import { backoff, persist } from "./retry.js";

const maxMessageChars = 256 << 10;
const maxMessageFrames = 10_000;
const welcomeWithinMs = 10_000;
const closeWithinMs = 1000;
const drainSpreadMs = 2000;
/** The least patience with a socket that hides pings and the bytes of a message that is still coming. */
const hiddenPingsMs = 24_000;

/** A class of WebSockets: that of a platform, or the one of the package `ws`. */
export type SocketClass = new (url: string, protocols: string) => { send(data: string): void; close(code?: number, reason?: string): void };

/** A socket as it is used here; the members with a question mark are those of `ws`. */
interface Socket {
  readonly readyState: number;
  readonly bufferedAmount: number;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onerror: ((event: { error?: unknown; message?: string }) => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
  send(data: string): void;
  close(code?: number, reason?: string): void;
  terminate?(): void;
  on?(event: string, heard: (...args: never[]) => void): void;
  readonly _socket?: { readonly bytesRead?: number } | null;
}

/** A frame of the server. @internal */
export interface Frame {
  type: string;
  ref?: number;
}

interface WelcomeFrame extends Frame {
  sessionId?: string;
  pingSeconds?: number;
  leader?: string;
}

/** What is needed to connect. @internal */
export interface Path {
  http: Http;
  socket: SocketClass | undefined;
  path: string;
  subprotocol: string;
  /** The frame hello without the token. */
  hello: () => object;
}

async function socketClass(given: SocketClass | undefined): Promise<SocketClass> {
  const native = (globalThis as { WebSocket?: SocketClass }).WebSocket;
  if (given ?? native) return (given ?? native)!;
  const name = "ws"; // not seen by tools that bundle for browsers, which have a class of their own
  try {
    return ((await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as { WebSocket: SocketClass }).WebSocket;
  } catch (cause) {
    throw new CodeqError({ code: "unreachable", fate: "refused", cause, message: "this platform has no WebSocket: run `npm install ws`, or use Node 22 or later" });
  }
}

/**
 * dial makes a link: it opens a socket, says hello and waits for the welcome. While another server may be better, the others
 * are asked. With `explain` it asks why that failed, if the socket does not tell. @internal
 */
export async function dial(p: Path, signal: AbortSignal, explain: boolean): Promise<Link> {
  const { servers } = p.http, Class = await socketClass(p.socket);
  for (let asked = 1; ; asked++) {
    const base = servers.current;
    try {
      return await open(p, Class, base, signal, explain);
    } catch (error) {
      if (!servers.lost(base, error) || asked === servers.count || signal.aborted) throw error;
    }
  }
}

async function open(p: Path, Class: SocketClass, base: URL, signal: AbortSignal, explain: boolean): Promise<Link> {
  const { servers } = p.http;
  for (let to = at(base, p.path), hops = 0; ; hops++) {
    const token = await p.http.token(to);
    signal.throwIfAborted();
    const link = new Link(new Class(to.href.replace(/^http/, "ws"), p.subprotocol) as unknown as Socket, to);
    const next = await link.greet({ ...p.hello(), ...(token ? { token } : {}) }, signal, { hops, explain, leads: (leader) => (servers.leads(leader) ? at(servers.current, p.path) : undefined) });
    if (!next) {
      servers.leads(link.welcome.leader); // for the next time
      return link;
    }
    to = next;
  }
}

/** One live socket. Frames that come before it has an owner wait. @internal */
export class Link {
  welcome: WelcomeFrame = { type: "" };
  #first: Frame[] = [];
  #frames: ((frames: Frame[]) => void) | undefined;
  #gone: ((error: CodeqError) => void) | undefined;
  #quiet: (() => void) | undefined;
  #end: CodeqError | undefined;
  #heardAt = now();
  #bytes = 0;
  #silenceMs = 50_000;
  readonly #watchdog = new Alarm(() => this.#listen(), false);

  constructor(private readonly socket: Socket, private readonly to: URL) {}

  /** greet resolves when the welcome is there, with undefined, or with where the server redirects to. */
  greet(hello: object, signal: AbortSignal, { hops, explain, leads }: { hops: number; explain: boolean; leads: (leader: string | undefined) => URL | undefined }): Promise<URL | undefined> {
    return new Promise((done, fail) => {
      const { socket } = this;
      const late = setTimeout(() => over(this.#broken("sent no welcome in time")), welcomeWithinMs);
      const forget = onAbort(signal, (reason) => over(reason));
      let opened = false, settled = false;
      const over = (error: unknown, next?: URL) => {
        if (settled) return;
        settled = true;
        clearTimeout(late);
        forget();
        if (next || error !== undefined) this.#drop(error instanceof CodeqError ? error : this.#broken("was left"));
        if (next) done(next);
        else if (error === undefined) done(undefined);
        else fail(error as Error);
      };
      /** refused takes an answer of HTTP in place of a socket. */
      const refused = (status: number, text: string, header: (name: string) => string | null | undefined, type = "") => {
        try {
          const next = redirected(this.to, status, type, header("location"), hops);
          over(next ? undefined : answered(this.to, status, text, header("retry-after")), next);
        } catch (error) {
          over(error);
        }
      };
      socket.on?.("ping", () => this.#heard());
      socket.on?.("upgrade", ((answer: { headers: Record<string, string> }) => {
        const leader = leads(answer.headers["codeq-leader"]);
        if (leader) over(undefined, leader);
      }) as never);
      socket.on?.("unexpected-response", ((_: unknown, answer: NodeJS.ReadableStream & { statusCode: number; headers: Record<string, string> }) => {
        void readAll(answer).then((text) => refused(answer.statusCode, text, (name) => answer.headers[name]));
      }) as never);
      socket.onopen = () => {
        opened = true;
        this.#heard();
        socket.send(JSON.stringify(hello));
      };
      socket.onmessage = (event) => this.#message(event.data);
      socket.onerror = (event) => {
        if (settled && !opened) return; // a socket of a platform tells the end that it was given, too
        const cause = event.error ?? new Error(event.message || "the socket failed");
        if (opened) this.#drop(this.#broken(`broke off: ${messageOf(cause)}`));
        else if (socket.on) over(noAnswer(this.to, cause, false));
        else if (!explain) over(this.#broken("did not open a socket"));
        else void this.#explain(refused).catch((error) => over(error));
      };
      socket.onclose = (event) => {
        if (opened) this.#drop(closed(event.code, event.reason));
      };
      this.own((frames) => {
        const [first, ...rest] = frames;
        if (first?.type === "welcome") {
          this.welcome = first;
          this.#silenceMs = Math.max((this.welcome.pingSeconds || 20) * 2500, socket.on ? 0 : hiddenPingsMs);
          this.#first = rest;
          this.#frames = undefined;
          over(undefined);
        } else if (isRefusal(first)) over(refusal(first));
        else over(this.#broken("sent something else in place of a welcome"));
      }, over);
    });
  }

  /** own hands frames and the end of the link to its owner, at once what waits. `quiet` asks the server for a sign of life. */
  own(frames: (frames: Frame[]) => void, gone: (error: CodeqError) => void, quiet?: () => void): void {
    this.#frames = frames;
    this.#gone = gone;
    this.#quiet = quiet;
    const first = this.#first;
    this.#first = [];
    if (first.length > 0) frames(first);
    if (this.#end) gone(this.#end);
    else this.#listen();
  }

  /** What the socket has not sent yet. */
  get unsentBytes(): number {
    return this.socket.bufferedAmount;
  }

  /** send sends frames, in as few messages as the limits allow. */
  send(frames: readonly string[]): void {
    for (let i = 0; i < frames.length && this.socket.readyState === 1; ) {
      const from = i;
      let chars = 0;
      do chars += frames[i++]!.length + 1;
      while (i < frames.length && i - from < maxMessageFrames && chars + frames[i]!.length < maxMessageChars);
      this.socket.send(i - from === 1 ? frames[from]! : `[${frames.slice(from, i).join(",")}]`);
    }
  }

  /** close ends the link with a closing frame, and resolves when it has ended. */
  async close(): Promise<void> {
    this.#frames = () => {};
    if (this.#end) return;
    await new Promise<void>((done) => {
      const late = new Alarm(() => this.#drop(this.#broken("did not close")));
      late.set(now() + closeWithinMs);
      this.#gone = () => (late.clear(), done());
      this.socket.close(1000);
    });
  }

  #message(data: unknown): void {
    this.#heard();
    let frames: unknown;
    try {
      if (typeof data !== "string") throw new TypeError("it is binary");
      frames = JSON.parse(data);
      if (!Array.isArray(frames)) throw new TypeError("it is no list of frames");
    } catch (error) {
      this.socket.close(4400);
      this.#drop(this.#broken(`sent a message that is not codeq's (${messageOf(error)})`), false);
      return;
    }
    const known = frames.filter((f): f is Frame => typeof (f as Frame | null)?.type === "string");
    if (this.#end) return;
    if (this.#frames) this.#frames(known);
    else this.#first.push(...known);
  }

  #heard(): void {
    this.#heardAt = now();
  }

  /** listen ends a link over which nothing has come for two and a half pings. */
  #listen(): void {
    if (this.#end) return;
    const bytes = this.socket._socket?.bytesRead ?? 0;
    if (bytes !== this.#bytes) this.#heard();
    this.#bytes = bytes;
    if (now() - this.#heardAt >= this.#silenceMs) return this.#drop(this.#broken(`was silent for ${this.#silenceMs} ms`));
    if (!this.socket.on && now() - this.#heardAt >= this.#silenceMs / 3) this.#quiet?.();
    this.#watchdog.set(Math.min(this.#heardAt + this.#silenceMs, now() + this.#silenceMs / 5));
  }

  /** drop ends the link; the first reason counts. */
  #drop(error: CodeqError, cut = true): void {
    if (this.#end) return;
    this.#end = error;
    this.#watchdog.clear();
    if (cut) {
      if (this.socket.terminate) this.socket.terminate();
      else this.socket.close();
    }
    this.#gone?.(error);
  }

  #broken(what: string): CodeqError {
    return new CodeqError({ code: "unreachable", fate: "broken", message: `${this.to.origin} ${what}` });
  }

  /** explain finds out why a socket could not be opened: those of platforms do not say it. */
  async #explain(refused: (status: number, text: string, header: (name: string) => string | null, type: string) => void): Promise<void> {
    try {
      const response = await fetch(this.to, { redirect: "manual", cache: "no-store", signal: AbortSignal.timeout(5000) });
      const text = await response.text();
      if (response.status === 400) throw this.#broken("answers, and does not open a socket");
      refused(response.status, text, (name) => response.headers.get(name), response.type);
    } catch (error) {
      throw error instanceof CodeqError ? error : noAnswer(this.to, error, false);
    }
  }
}

async function readAll(stream: NodeJS.ReadableStream): Promise<string> {
  let text = "";
  try {
    for await (const chunk of stream) if ((text += String(chunk)).length > 65_536) break;
  } catch {
    // What has come may hold the whole error.
  }
  return text;
}

/** closed is the error of a connection that the server closed. */
function closed(code: number, reason: string): CodeqError {
  const parts = { 4401: ["unauthenticated", "the server closed the session: the token is missing, wrong or expired"], 4409: ["superseded", "another connection has taken the session over"] }[code];
  return new CodeqError({ code: parts?.[0] ?? "unreachable", fate: code === 4401 ? "refused" : "broken", message: parts?.[1] ?? `the connection ended (close code ${code})${reason ? `: ${reason}` : ""}` });
}

/** A dialer makes one link after another, with pauses. @internal */
export class Dialer {
  /** The server has said that it ends: its clients come back at different times. */
  goodbye = false;
  #reached = false;

  /** `again` is the purpose of a link when there was one before. */
  constructor(private readonly path: Path, private readonly again: "first" | "worker", private readonly notice: (text: string) => void) {}

  /** next waits until there is a link. It throws a refusal that will not change, or the reason of the signal. */
  async next(signal: AbortSignal): Promise<Link> {
    const { path, notice } = this, again = this.#reached;
    if (again) await sleep(this.goodbye ? Math.random() * drainSpreadMs : backoff(0), signal);
    this.goodbye = false;
    const link = await persist(again ? this.again : "first", { signal, timeoutMs: Infinity, notice }, (until, _, failures, last) =>
      dial(path, until, failures % 4 === 0 || last?.status !== undefined));
    if (again) notice(`connected to ${path.http.servers.current.origin} again`);
    this.#reached = true;
    return link;
  }
}
