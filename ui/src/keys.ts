// Keys of the page. Those of a field that takes text are not touched.

type Handler = () => void;
const handlers = new Map<string, Handler[]>();
let prefix = "";
let prefixAt = 0;

/** onKey calls a function when a key is pressed, such as "j", "Enter" or "g o". The last one that asked gets it. */
export function onKey(key: string, handle: Handler): () => void {
  const all = handlers.get(key) ?? [];
  handlers.set(key, all);
  all.push(handle);
  return () => void all.splice(all.indexOf(handle), 1);
}

const takesText = (e: Element) => e.matches("input:not([type=checkbox]),textarea,select,[contenteditable]");

addEventListener("keydown", (e) => {
  const target = e.target as Element;
  if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") {
    e.preventDefault();
    return handlers.get("Ctrl+K")?.at(-1)?.();
  }
  if (e.ctrlKey || e.metaKey || e.altKey || takesText(target) || document.querySelector("dialog[open]")) return;
  // Space and Enter belong to the button or link that has the focus.
  if ((e.key === " " || e.key === "Enter") && target.closest("button,a,summary,input")) return;
  const key = e.key === " " ? "space" : e.key;
  const full = prefix && Date.now() - prefixAt < 1500 ? `${prefix} ${key}` : key;
  prefix = "";
  const handle = handlers.get(full)?.at(-1);
  if (handle) {
    e.preventDefault();
    handle();
  } else if (key === "g") {
    prefix = key;
    prefixAt = Date.now();
  }
});
