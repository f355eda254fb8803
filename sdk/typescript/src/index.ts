export * from "./client.js";
export { CodeqError, PermanentError, ReleaseError, RetryError } from "./errors.js";
export type { Token } from "./http.js";
export { Job, type Outcome, type Progress } from "./job.js";
export type { SocketClass } from "./link.js";
export type * as protocol from "./protocol.js";
export type { Handler, Middleware, WorkerEvent, WorkerOptions } from "./worker.js";
export { Watch, type Gap, type NewsOf, type Position, type QueueFigures, type Subscription, type WatchOptions } from "./watch.js";
export { Worker } from "./worker.js";
