// The one connection to the server: it connects again after each loss, subscribes again to what the
// pages watch, and says how old what they show is.
import { signal } from "@preact/signals";
import type { ClientFrame, ServerFrame, SubscribeFrame, WelcomeFrame } from "./protocol";

/** The API lies beside the pages, below whatever prefix a proxy has added. */
export const api = new URL("../v1/codeq/", document.baseURI);

export interface Watching {
  /** The subscription to ask for, now or after a loss of the connection. */
  ask: () => Omit<SubscribeFrame, "type">;
  take: (frame: ServerFrame) => void;
}

export type LinkState = "connecting" | "live" | "stalled" | "lost" | "refused" | "draining";

/** What is known of the connection. */
export const link = signal<{ state: LinkState; why: string }>({ state: "connecting", why: "" });
/** heardAt is when the last message came, by the clock of the page. It is no signal: each message would draw the shell anew. */
export let heardAt = 0;
export const welcome = signal<WelcomeFrame | null>(null);
export const paused = signal(false);

// The server says something at least every 5 s.
const stalledAfterMs = 6500;
/** With a quarter more by chance, the page is live within 2 s after the server answers again. */
const slowestRetryMs = 1200;

const watching = new Map<string, Watching>();
const everything = new Set<(frame: ServerFrame) => void>();
let socket: WebSocket | undefined;
let attempts = 0;
let aheadMs = 0; // of the server's clock

/** serverNow is the time by the clock of the server. */
export const serverNow = () => Date.now() + aheadMs;

/** hear calls a function with each frame that belongs to no single subscription. */
export const hear = (take: (frame: ServerFrame) => void) => void everything.add(take);

/** watch subscribes until the function that it returns is called. */
export function watch(id: string, w: Watching): () => void {
  watching.set(id, w);
  if (welcome.value && link.value.state === "live") subscribe(id, w);
  return () => {
    if (watching.get(id) !== w) return;
    watching.delete(id);
    send({ type: "unsubscribe", id });
  };
}

/** again asks anew for a subscription, whose parameters have changed. */
export function again(id: string) {
  const w = watching.get(id);
  if (w && welcome.value) subscribe(id, w);
}

const subscribe = (id: string, w: Watching) => send({ type: "subscribe", ...w.ask(), id });

function send(frame: ClientFrame) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(frame));
}

function say(state: LinkState, why = "") {
  link.value = { state, why };
}

export function connect() {
  const url = new URL("events", api);
  url.protocol = url.protocol.replace("http", "ws");
  const s = (socket = new WebSocket(url, "codeq.events.v1"));
  s.onopen = () => send({ type: "hello" });
  s.onmessage = (m) => {
    heardAt = Date.now();
    for (const frame of JSON.parse(m.data) as ServerFrame[]) take(frame);
    schedule();
  };
  s.onclose = (e) => {
    if (s !== socket) return;
    welcome.value = null;
    if (e.code === 4401) return say("refused", e.reason);
    say("lost", e.reason);
    setTimeout(connect, Math.min(slowestRetryMs, 250 * 2 ** attempts++) * (0.75 + Math.random() / 2));
  };
}

function take(frame: ServerFrame) {
  if (frame.type === "welcome") {
    attempts = 0;
    aheadMs = Date.parse(frame.serverTime) - Date.now();
    welcome.value = frame;
    say("live");
    for (const [id, w] of watching) subscribe(id, w);
  } else if (frame.type === "draining") {
    say("draining", frame.reason);
  }
  if ("id" in frame && frame.id !== undefined) watching.get(frame.id)?.take(frame);
  for (const hears of everything) hears(frame);
}

// What came is shown at most once in a frame of the screen, and not while the person pauses.
const stale = new Set<() => void>();
let scheduled = false;

/** changed asks for a call of show before the next frame of the screen. */
export function changed(show: () => void) {
  stale.add(show);
  schedule();
}

function schedule() {
  if (scheduled || stale.size === 0 || paused.value) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    const shows = [...stale];
    stale.clear();
    for (const show of shows) show();
  });
}

export function pause(on: boolean) {
  paused.value = on;
  schedule();
}

/** everyMs is how often figures are wanted: seldom while nobody sees the page. */
export const everyMs = () => (document.hidden ? 10_000 : 1000);

document.addEventListener("visibilitychange", () => {
  for (const [id, w] of watching) if (w.ask().everyMs) again(id);
});

/** second changes once in a second, for who shows how old things are. */
export const second = signal(0);

setInterval(() => {
  second.value++;
  const { state } = link.value, silent = Date.now() - heardAt > stalledAfterMs;
  if (state === "live" && silent) say("stalled");
  if (state === "stalled" && !silent) say("live");
}, 1000);
