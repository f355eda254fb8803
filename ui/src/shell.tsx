// What every page has around it: where one is, how fresh the figures are, search, pause.
import { computed, signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { theme } from "./chart";
import { Jobs } from "./jobs";
import { onKey } from "./keys";
import { Login, learn, leave, readsOnly, who } from "./login";
import { heardAt, link, pause, paused, second, welcome } from "./live";
import { menu } from "./menu";
import { needs } from "./needs";
import { go, href, place } from "./route";
import { Help, Palette } from "./palette";
import { ask } from "./api";

const ready = signal<{ durability: string; diskGuard: string; shards: number } | null>(null);

/** urgencies is how many sentences are critical. The sentences themselves change once a second, and the shell need not. */
const urgencies = computed(() => needs.value?.filter((n) => n.severity === "critical").length);

function Dot() {
  void second.value;
  const { state, why } = link.value, age = Math.max(0, Date.now() - heardAt);
  const words = {
    connecting: "connecting",
    live: `live · ${(age / 1000).toFixed(1)} s`,
    stalled: `stalled ${Math.round(age / 1000)} s`,
    lost: heardAt ? `reconnecting · figures are ${Math.round(age / 1000)} s old` : "no answer, trying again",
    refused: why || "refused",
    draining: "server is stopping",
  };
  return <span class={`dot ${paused.value ? "held" : state}`}>{paused.value ? "paused" : words[state]}</span>;
}

function setTheme(next: string) {
  document.documentElement.dataset.theme = next;
  localStorage.setItem("theme", next);
  theme.value++;
}

function Theme() {
  const dark = useSignal(false);
  useEffect(() => {
    const chosen = localStorage.getItem("theme");
    if (chosen) setTheme(chosen);
    dark.value = getComputedStyle(document.documentElement).colorScheme === "dark" ||
      (!chosen && matchMedia("(prefers-color-scheme: dark)").matches);
  }, []);
  return (
    <button
      type="button" class="quiet icon" aria-label={dark.value ? "Light colours" : "Dark colours"} title={dark.value ? "Light" : "Dark"}
      onClick={() => { dark.value = !dark.value; setTheme(dark.value ? "dark" : "light"); }}
    >
      <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M8 1.5a6.5 6.5 0 1 0 0 13z" fill="currentColor" /><circle cx="8" cy="8" r="6.3" /></svg>
    </button>
  );
}

export function Shell({ children }: { children: preact.ComponentChildren }) {
  useEffect(() => {
    const off = [
      ...menu.map((p) => onKey(`g ${p.key}`, () => go(p.path))),
      onKey("space", () => pause(!paused.value)),
    ];
    return () => off.forEach((f) => f());
  }, []);
  useEffect(() => {
    if (!welcome.value) return;
    ask("GET /readyz").then((r) => (ready.value = r), () => (ready.value = null));
    void learn();
  }, [welcome.value]);
  const here = place.value.path[0], urgent = urgencies.value;
  useEffect(() => {
    document.title = `${urgent ? `(${urgent}) ` : ""}${place.value.path.at(-1) ?? "overview"} · codeq`;
  }, [place.value, urgent]);
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>To the content</a>
      <header class="top">
        <a class="brand" href={href([])} aria-label="codeq, overview">
          <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M3 4h10M3 8h6.5M3 12h3.5" /></svg>
          codeq
        </a>
        <nav aria-label="Pages">
          {menu.map((p) => (
            <a key={p.name} href={href(p.path)} aria-current={here === p.path[0] || (here && p.also?.includes(here)) ? "page" : undefined}>
              {p.name}
            </a>
          ))}
        </nav>
        <Palette />
        <span class="server">
          {welcome.value && <>{welcome.value.tenantId} · {welcome.value.version}</>}
          {ready.value && <> · <span title="What the server does before it answers">{ready.value.durability} before every answer</span></>}
        </span>
        {who.value?.authentication && (
          <button type="button" class="quiet" title={readsOnly() ? "This credential only looks" : "Log out"} onClick={leave}>
            {who.value.subject}{readsOnly() && " · looks only"} · log out
          </button>
        )}
        <Dot />
        <button type="button" class="quiet icon" aria-pressed={paused.value} aria-label="Pause the page" title="Pause the page (space)" onClick={() => pause(!paused.value)}>
          <svg viewBox="0 0 16 16" aria-hidden="true"><path d={paused.value ? "M5 3v10l8-5z" : "M5.5 3v10M10.5 3v10"} /></svg>
        </button>
        <Theme />
      </header>
      <main id="main" tabIndex={-1} class={readsOnly() ? "reads" : ""}>{link.value.state === "refused" ? <Login /> : children}</main>
      <Help />
      <Jobs />
    </>
  );
}
