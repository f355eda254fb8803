// "Needs you": sentences that the server makes, the worst first.
import { signal } from "@preact/signals";

export interface Need {
  sentence: string;
  command?: string;
}

/** needs is undefined while the server has not said anything about it. */
export const needs = signal<Need[] | undefined>(undefined);

export function Needs() {
  const all = needs.value;
  if (!all) return null;
  if (all.length === 0) return <p class="needs none" role="status">Nothing needs you.</p>;
  return (
    <section class="needs" aria-label="Needs you">
      <h2>Needs you</h2>
      <ol>{all.map((n) => <li key={n.sentence}>{n.sentence}</li>)}</ol>
    </section>
  );
}
