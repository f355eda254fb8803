// What the workers of a task say while they work: how far it is, and what their programs print.
import { signal } from "@preact/signals";
import type { ComponentChild } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { count, moment } from "./format";
import { changed, serverNow } from "./live";
import { Time } from "./parts";
import type { GapFrame, OutputFrame, ProgressFrame, ServerFrame, Task } from "./protocol";
import { visible } from "./task";
import { CopyText } from "./tree";

export type Progress = NonNullable<Task["progress"]>;

/** Piece is output of one delivery and stream, or with gone says that there was more before the next piece. */
interface Piece {
  key: number;
  delivery: number;
  stream?: OutputFrame["stream"];
  at: string;
  text: string;
  gone?: GapFrame["reason"];
  drawn?: ComponentChild;
}

/** So many characters are kept, as the server does. */
const mostKept = 256 << 10;
/** A piece that is as long grows no more, so what comes changes little of the page. */
const mostGrown = 4 << 10;

const colours = /\x1b\[[0-9;]*m/g; // of a terminal

const why: Partial<Record<GapFrame["reason"], string>> = {
  restarted: "What was printed before the server started is gone.",
  evicted: "What was printed before is gone: the server keeps the last 256 KiB of a task, or less if many tasks print.",
};

/** Reports are those of one task, as they come. Behind a loss of the connection the server sends again what it has. */
export class Reports {
  readonly progress = signal<Progress | undefined>(undefined);
  readonly output = signal<readonly Piece[]>([]);
  private newest: Progress | undefined;
  private pieces: Piece[] = [];
  private size = 0;
  private said = 0; // the number of the last progress, and that of the last output
  private last = 0;
  private lost: GapFrame["reason"] | undefined; // output before the next may be gone

  take(f: ServerFrame) {
    if (f.type === "progress") this.tell(f);
    else if (f.type === "output") this.print(f);
    else if (f.type === "gap" && f.of === "output") this.miss(f.reason);
    else return;
    changed(this.show);
  }

  private show = () => {
    this.progress.value = this.newest;
    this.output.value = [...this.pieces];
  };

  private tell(f: ProgressFrame) {
    if (f.n <= this.said) return;
    this.said = f.n;
    this.newest = f;
  }

  private miss(reason: GapFrame["reason"]) {
    this.lost = reason;
    if (!this.last && !this.pieces.length) this.gap("");
  }

  private gap(at: string) {
    if (this.lost) this.pieces.push({ key: -this.last, delivery: 0, at, text: "", gone: this.lost });
    this.lost = undefined;
  }

  private print({ n, at, delivery, stream, text }: OutputFrame) {
    if (n <= this.last) {
      this.lost = undefined; // it came before, so nothing is missing behind it
      return;
    }
    this.gap(at);
    this.last = n;
    const more = visible(text.replace(/\r\n?/g, "\n").replace(colours, "")), before = this.pieces.at(-1);
    if (before?.stream === stream && before.delivery === delivery && before.text.length < mostGrown) {
      this.pieces.splice(-1, 1, { ...before, text: before.text + more, drawn: undefined });
    } else {
      this.pieces.push({ key: n, delivery, stream, at, text: more });
    }
    this.size += more.length;
    if (this.size <= mostKept) return;
    while (this.size > mostKept) this.size -= this.pieces.shift()!.text.length;
    this.pieces.unshift({ key: 0, delivery: 0, at, text: "", gone: "evicted" });
  }
}

/** Said is the last progress of a task. now is the number of the delivery that is under way, or 0. */
export function Said({ of: p, now }: { of: Progress; now: number }) {
  return (
    <section class="card progress" aria-label="Progress">
      <p>
        {p.percent !== undefined && <><progress max={100} value={p.percent} aria-label="Part that is done" /><b>{p.percent} %</b></>}
        {p.note && <span>{visible(p.note)}</span>}
        <span class="muted">said by delivery {p.delivery} at <Time ms={Date.parse(p.at)} />{now > p.delivery && "; the delivery of now has said nothing yet"}</span>
      </p>
      {p.data !== undefined && <pre class="json mono" tabIndex={0} role="group" aria-label="Data of the progress">{visible(JSON.stringify(p.data, null, 1))}</pre>}
    </section>
  );
}

/** Output is the last part of what programs print. It stays at its end as long as the person does not scroll away from there. */
export function Output({ of: reports }: { of: Reports }) {
  const box = useRef<HTMLPreElement>(null), atEnd = useRef(true), all = reports.output.value;
  useLayoutEffect(() => {
    if (box.current && atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [all]);
  const length = all.reduce((n, p) => n + p.text.length, 0);
  return (
    <section class="output card">
      <header>
        <h2>Output</h2>
        <span class="muted">{count(length)} characters</span>
        <CopyText text={all.map((p) => p.text).join("")} />
      </header>
      <pre
        ref={box} class="mono" tabIndex={0} role="log" aria-live="off" aria-label="Output"
        onScroll={({ currentTarget: e }) => (atEnd.current = e.scrollHeight - e.scrollTop - e.clientHeight < 30)}
      >
        {all.length === 0 && <i>Nothing of it is kept.</i>}
        {all.map((p, i) => (p.drawn ??= <Print key={p.key} of={p} begins={!p.gone && p.delivery !== all[i - 1]?.delivery} />))}
      </pre>
    </section>
  );
}

function Print({ of: p, begins }: { of: Piece; begins: boolean }) {
  if (p.gone) return <i>{why[p.gone] ?? "Some output is missing here."}{"\n"}</i>;
  return <>{begins && <i>delivery {p.delivery}, from {moment(Date.parse(p.at), serverNow())}{"\n"}</i>}<span class={p.stream}>{p.text}</span></>;
}
