// A table of many rows: only those in sight exist, keys move a cursor, and rows keep their place
// while the pointer is on them.
import { useSignal, type Signal } from "@preact/signals";
import type { ComponentChild, ComponentChildren, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
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
  cell: (row: T) => ComponentChildren;
  /** What the cell shows, if nothing else is in it: while it is the same, and so is the address, the cell is not drawn again. */
  same?: (row: T) => string | number;
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
const mostCells = 10_000;

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
  draw: (row: T, place: number) => ComponentChildren;
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
      {rows.slice(from, to).map((row, i) => draw(row, from + i))}
      {to < rows.length && <tr class="space" style={{ height: `${(rows.length - to) * height}px` }} />}
    </tbody>
  );
}

export function Rows<T>({ rows, columns, id, label, sort = "", onSort, open, picked, picks = (row) => [id(row)], height = 34, tone }: Props<T>) {
  const body = useRef<HTMLTableSectionElement>(null);
  const cursor = useSignal("");
  const chosen = (row: T) => !!picked && picks(row).every((p) => picked.value.has(p));
  const toggle = (row: T) => {
    if (!picked) return;
    const all = new Set(picked.value), on = chosen(row);
    for (const p of picks(row)) on ? all.delete(p) : all.add(p);
    picked.value = all;
  };
  const drawn = useRef({ place: place.value, cells: new Map<string, [same: string | number, cell: ComponentChild]>() });
  if (drawn.current.place !== place.value || drawn.current.cells.size > mostCells) drawn.current = { place: place.value, cells: new Map() };
  const cell = (c: Column<T>, row: T, key: string) => {
    const same = c.same?.(row), name = `${c.name} ${key}`, had = drawn.current.cells.get(name);
    if (had && had[0] === same) return had[1];
    const td = <td key={c.name} class={c.class}>{c.cell(row)}</td>;
    if (same !== undefined) drawn.current.cells.set(name, [same, td]);
    return td;
  };
  const state = useRef({ rows, id, open, toggle });
  state.current = { rows, id, open, toggle };

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
          {columns.map((c) => <Head key={c.name} column={c as Column<unknown>} sort={sort} onSort={onSort} />)}
        </tr>
      </thead>
      <InSight
        rows={rows} height={height} body={body}
        draw={(row, place) => {
          const key = id(row);
          return (
            <tr
              key={key} aria-rowindex={place + 2} class={`${cursor.value === key ? "at" : ""} ${tone?.(row) ?? ""}`}
              aria-selected={picked ? chosen(row) : undefined}
              onClick={(e) => {
                if ((e.target as Element).closest("a,button,input,summary") || String(getSelection())) return;
                cursor.value = key;
                open?.(row);
              }}
            >
              {picked && (
                <td class="pick">
                  <input type="checkbox" aria-label={`Choose ${key}`} checked={chosen(row)} onChange={() => toggle(row)} />
                </td>
              )}
              {columns.map((c) => cell(c, row, key))}
            </tr>
          );
        }}
      />
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
