// A table of many rows: only those in sight exist, keys move a cursor, and rows keep their place
// while the pointer is on them.
import { useSignal, type Signal } from "@preact/signals";
import type { ComponentChild, ComponentChildren, RefObject } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { onKey } from "./keys";
import { place } from "./route";

export interface Column<T> {
  name: string;
  /** The head of the column, or its name. */
  head?: ComponentChildren;
  title?: string;
  class?: string;
  /** Sorted by this: words first, numbers from the largest. Without it the column has no order. */
  by?: (row: T) => number | string;
  /** A column has a text, or cells that are drawn. */
  cell?: (row: T) => ComponentChildren;
  /** What the cell shows, if nothing else is in it: while it is the same, and so is the address, the cell is not drawn again. */
  same?: (row: T) => unknown;
  /** The text, its class in the style sheet, and where it leads unless that class is "zero". */
  text?: (row: T) => string;
  tone?: (row: T) => string;
  to?: (row: T) => string;
}

/**
 * Figure is a text of a row that changes often: it is set at its place, without a new drawing of the row. Five
 * hundred of them change in a second.
 */
class Figure<T> {
  readonly td: ComponentChild;
  private node: HTMLElement | null = null;
  private text = "";
  private tone = "";

  constructor(readonly column: Column<T>, private row: T) {
    const hold = (node: HTMLElement | null) => {
      if ((this.node = node)) this.write(node);
    };
    this.td = <td key={column.name} class={column.class}>{column.to ? <a ref={hold} /> : <span ref={hold} />}</td>;
    this.show(column, row);
  }

  /** show sets what the text is now. */
  show({ text, tone }: Column<T>, row: T) {
    const now = text!(row), kind = tone?.(row) ?? "", isTone = kind !== this.tone;
    if (now === this.text && !isTone) return;
    [this.text, this.tone, this.row] = [now, kind, row];
    if (isTone && this.node) this.write(this.node);
    else if (this.node) this.node.firstChild!.nodeValue = now;
  }

  private write(node: HTMLElement) {
    const to = this.tone === "zero" ? undefined : this.column.to?.(this.row);
    node.replaceChildren(new Text(this.text));
    node.className = this.tone;
    to ? node.setAttribute("href", to) : node.removeAttribute("href");
  }
}

/** Still is drawn again only if it is another one: an element by itself is always compared with all that is in it. */
export function Still({ children }: { children?: ComponentChildren }) {
  return children;
}

/** Drawn is a row as it is in the table, with all that was drawn from. */
interface Drawn<T> {
  from: readonly unknown[];
  cells: Cell<T>[];
  tr: ComponentChild;
}

interface Cell<T> {
  name: string;
  td: ComponentChild;
  same?: unknown;
  figure?: Figure<T>;
}

/** cellOf is the cell that a row had before if what is in it is the same, or is a text, which is set. */
function cellOf<T>(c: Column<T>, row: T, had: Cell<T> | undefined): Cell<T> {
  if (had?.name !== c.name) had = undefined;
  if (c.text) {
    if (had?.figure) {
      had.figure.show(c, row);
      return had;
    }
    const figure = new Figure(c, row);
    return { name: c.name, td: figure.td, figure };
  }
  const same = c.same?.(row);
  if (had && same !== undefined && had.same === same) return had;
  return { name: c.name, td: <td key={c.name} class={c.class}>{c.cell?.(row)}</td>, same };
}

interface Props<T> {
  rows: T[];
  columns: Column<T>[];
  id: (row: T) => string;
  label: string;
  sort?: string;
  onSort?: (sort: string) => void;
  open?: (row: T) => void;
  picked?: Signal<ReadonlySet<string>>;
  /** What is chosen with a row, if that is not its id alone. */
  picks?: (row: T) => string[];
  height?: number;
  /** A class of the style sheet for a row. */
  tone?: (row: T) => string;
}

const extra = 8; // rows above and below what is in sight
const mostDrawn = 700;

/** sorted puts rows in an order such as "-ready" or "name". */
export function sorted<T>(rows: T[], columns: Column<T>[], sort: string): T[] {
  const by = columns.find((c) => c.name === sort.replace("-", ""))?.by;
  if (!by) return rows;
  const sign = sort.startsWith("-") ? -1 : 1;
  return rows.map((row) => ({ row, x: by(row) })).sort((a, b) => sign * (a.x < b.x ? -1 : a.x > b.x ? 1 : 0)).map(({ row }) => row);
}

/** InSight is the body of a table. Only the rows in sight exist, and some above and below; all are of one height. */
export function InSight<T>({ rows, height, body, draw }: {
  rows: T[];
  height: number;
  body: RefObject<HTMLTableSectionElement | null>;
  /** drawn is how many rows there are at most at a time. */
  draw: (row: T, place: number, drawn: number) => ComponentChildren;
}) {
  const seen = useSignal<[number, number]>([0, 60]);
  useEffect(() => {
    const look = () => {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const from = Math.max(0, Math.floor(-top / height) - extra);
      const to = Math.ceil((innerHeight - top) / height) + extra;
      if (from !== seen.value[0] || to !== seen.value[1]) seen.value = [from, to];
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [height]);
  const [from, to] = seen.value;
  return (
    <tbody ref={body}>
      {from > 0 && <tr class="space" style={{ height: `${Math.min(from, rows.length) * height}px` }} />}
      {rows.slice(from, to).map((row, i) => draw(row, from + i, to - from))}
      {to < rows.length && <tr class="space" style={{ height: `${(rows.length - to) * height}px` }} />}
    </tbody>
  );
}

export function Rows<T>({ rows, columns, id, label, sort = "", onSort, open, picked, picks = (row) => [id(row)], height = 34, tone }: Props<T>) {
  const body = useRef<HTMLTableSectionElement>(null), names = columns.map((c) => c.name).join();
  const cursor = useSignal("");
  const chosen = (row: T) => !!picked && picks(row).every((p) => picked.value.has(p));
  const toggle = (row: T) => {
    if (!picked) return;
    const all = new Set(picked.value), on = chosen(row);
    for (const p of picks(row)) on ? all.delete(p) : all.add(p);
    picked.value = all;
  };
  const drawn = useRef({ place: place.value, rows: new Map<string, Drawn<T>>() });
  if (drawn.current.place !== place.value || drawn.current.rows.size > mostDrawn) drawn.current = { place: place.value, rows: new Map() };
  const draw = (row: T, at: number) => {
    const key = id(row), had = drawn.current.rows.get(key), isChosen = chosen(row);
    const from = [row, at, cursor.value === key, isChosen, tone?.(row) ?? "", names];
    const cells = columns.map((c, i) => cellOf(c, row, had?.cells[i]));
    if (had?.from.every((x, i) => x === from[i]) && had.cells.every((c, i) => c === cells[i])) return had.tr;
    const tr = (
      <Still key={key}><tr
        aria-rowindex={at + 2} class={`${from[2] ? "at" : ""} ${from[4]}`}
        aria-selected={picked ? isChosen : undefined}
        onClick={(e) => {
          if ((e.target as Element).closest("a,button,input,summary") || String(getSelection())) return;
          cursor.value = key;
          state.current.open?.(row);
        }}
      >
        {picked && (
          <td class="pick">
            <input type="checkbox" aria-label={`Choose ${key}`} checked={isChosen} onChange={() => state.current.toggle(row)} />
          </td>
        )}
        {cells.map((c) => c.td)}
      </tr></Still>
    );
    drawn.current.rows.set(key, { from, cells, tr });
    return tr;
  };
  const state = useRef({ rows, id, open, toggle, onSort });
  state.current = { rows, id, open, toggle, onSort };
  const heads = useMemo(
    () => columns.map((c) => <Head key={c.name} column={c as Column<unknown>} sort={sort} onSort={onSort && ((s) => state.current.onSort?.(s))} />),
    [sort, names, !onSort],
  );

  useEffect(() => {
    const move = (by: number) => {
      const { rows, id } = state.current;
      const now = rows.findIndex((r) => id(r) === cursor.value);
      const next = rows[now < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, now + by))];
      if (!next) return;
      cursor.value = id(next);
      const top = body.current!.getBoundingClientRect().top + rows.indexOf(next) * height;
      if (top < 120 || top > innerHeight - 90) scrollBy({ top: top - innerHeight / 2 });
    };
    const current = () => state.current.rows.find((r) => state.current.id(r) === cursor.value);
    const off = [
      onKey("j", () => move(1)),
      onKey("k", () => move(-1)),
      onKey("Enter", () => {
        const row = current();
        if (row) state.current.open?.(row);
      }),
      onKey("x", () => {
        const row = current();
        if (row) state.current.toggle(row);
      }),
    ];
    return () => off.forEach((f) => f());
  }, []);

  const all = picked && rows.length > 0 && rows.every(chosen);
  return (
    <table class="rows" aria-label={label} aria-rowcount={rows.length + 1}>
      <thead>
        <tr>
          {picked && (
            <th class="pick">
              <input
                type="checkbox" aria-label="Choose all rows" checked={all}
                onChange={() => (picked.value = new Set(all ? [] : rows.flatMap(picks)))}
              />
            </th>
          )}
          {heads}
        </tr>
      </thead>
      <InSight rows={rows} height={height} body={body} draw={draw} />
    </table>
  );
}

function Head({ column: c, sort, onSort }: { column: Column<unknown>; sort: string; onSort?: (s: string) => void }) {
  const dir = sort === c.name ? "ascending" : sort === `-${c.name}` ? "descending" : undefined;
  const first = c.class?.includes("n") ? `-${c.name}` : c.name;
  const next = !dir ? first : dir === "ascending" ? `-${c.name}` : c.name;
  return (
    <th scope="col" class={c.class} title={c.title} aria-sort={c.by && onSort ? (dir ?? "none") : undefined}>
      {c.by && onSort ? (
        <button type="button" onClick={() => onSort(next)}>
          {c.head ?? c.name} <span aria-hidden="true">{dir === "ascending" ? "↑" : dir ? "↓" : ""}</span>
        </button>
      ) : (
        (c.head ?? c.name)
      )}
    </th>
  );
}
