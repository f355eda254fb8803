// Where the person is. All of it stands in the fragment of the address, so every view has a link:
// #/queue/mail?tab=dead
import { signal } from "@preact/signals";

export interface Place {
  path: string[];
  query: URLSearchParams;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function read(): Place {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { path: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

export const place = signal(read());

addEventListener("hashchange", () => (place.value = read()));

export type Query = Record<string, string | number | readonly string[] | undefined>;

/** href is the address of a page. The range of the charts goes with the person to the next page. */
export function href(path: string[], query: Query = {}): string {
  let text = "";
  const add = (name: string, value?: string | number) => {
    if (value !== undefined && value !== "") text += `${text ? "&" : "?"}${name}=${encodeURIComponent(value).replaceAll("%20", "+")}`;
  };
  if (!("range" in query)) add("range", place.value.query.get("range") ?? undefined);
  for (const name in query) {
    const value = query[name];
    if (typeof value === "object") for (const one of value) add(name, one);
    else add(name, value);
  }
  return `#/${path.map(encodeURIComponent).join("/")}${text}`;
}

export function go(path: string[], query?: Query) {
  location.hash = href(path, query);
}

/** setQuery changes parts of the address without a new entry in the history of the browser. */
export function setQuery(changes: Query) {
  const { path, query } = place.value;
  const q = Object.fromEntries([...query.keys()].map((name) => [name, query.getAll(name)]));
  history.replaceState(null, "", href(path, { range: undefined, ...q, ...changes }));
  place.value = read();
}

/** param is one part of the address, or what holds without it. */
export function param(name: string, without = ""): string {
  return place.value.query.get(name) ?? without;
}
