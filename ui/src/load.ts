// What a page asks the API for, again whenever what it depends on changes.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { serverNow } from "./live";

export interface Loaded<T> {
  value?: T;
  /** The sentence of a refusal. The value of before stays. */
  error?: string;
  /** When the value was asked for, by the clock of the server. */
  at: number;
  again: () => void;
}

export function useLoad<T>(fetch: (signal: AbortSignal) => Promise<T>, on: unknown[]): Loaded<T> {
  const state = useSignal<Omit<Loaded<T>, "again">>({ at: 0 });
  const running = useRef<AbortController | undefined>(undefined);
  const run = () => {
    running.current?.abort();
    const mine = (running.current = new AbortController());
    const at = serverNow();
    fetch(mine.signal).then(
      (value) => mine.signal.aborted || (state.value = { value, at }),
      (e: Error) => mine.signal.aborted || (state.value = { ...state.value, error: e.message }),
    );
  };
  useEffect(() => {
    run();
    return () => running.current?.abort();
  }, on);
  return { ...state.value, again: run };
}
