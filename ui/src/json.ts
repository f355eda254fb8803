// JSON whose numbers stay as they are written, and what a person has changed in one.

/** JSON as browsers have it since 2024: a number can keep its text. */
const json = JSON as typeof JSON & { rawJSON?: (text: string) => unknown };

/** exact reads JSON so that JSON.stringify writes each number with all its digits. */
export function exact(text: string): unknown {
  return JSON.parse(text, (_, v: unknown, c?: { source: string }) => {
    if (typeof v !== "number" || (c && String(v) === c.source)) return v;
    if (c && json.rawJSON) return json.rawJSON(c.source);
    if (Math.abs(v) > Number.MAX_SAFE_INTEGER) throw new Error(`this browser does not keep all digits of ${v}`);
    return v;
  });
}

type Plain = Record<string, unknown>;

const isPlain = (v: unknown): v is Plain => !!v && Object.getPrototypeOf(v) === Object.prototype;

/** Change is a member that has another value, or none any more. Without a path it is the whole. */
export interface Change {
  path: string[];
  before: unknown;
  value: unknown;
}

export function changesOf(before: unknown, value: unknown, path: string[] = []): Change[] {
  if (isPlain(before) && isPlain(value)) {
    const names = new Set([...Object.keys(before), ...Object.keys(value)]);
    return [...names].flatMap((name) => changesOf(before[name], value[name], [...path, name]));
  }
  return JSON.stringify(before) === JSON.stringify(value) ? [] : [{ path, before, value }];
}

/** changed is a value with a member set, or without it. */
export function changed(of: unknown, [first, ...rest]: string[], value: unknown): unknown {
  if (first === undefined) return value;
  if (!isPlain(of)) throw new Error("its payload is not made like that of the first");
  if (rest.length === 0 && value === undefined) return Object.fromEntries(Object.entries(of).filter(([name]) => name !== first));
  return { ...of, [first]: changed(Object.hasOwn(of, first) ? of[first] : {}, rest, value) };
}
