export interface Subscription { kind: string }
export interface WatchOptions { signal?: AbortSignal }
export class Watch<S extends Subscription> { constructor(_a: unknown, readonly subscription: S, _o: WatchOptions) {} }
