// How to post a task like one that is there, from a shell and from three languages.
import { who } from "./login";
import { api } from "./live";
import type { Task } from "./protocol";
import { param, setQuery } from "./route";
import { newTask, visible } from "./task";
import { CopyText } from "./tree";

const text = JSON.stringify;

/** body is the request for the same task, with the payload byte for byte. */
function body(t: Task): string {
  return visible(`${text(newTask(t, undefined)).slice(0, -1)},"payload":${t.payload}}`);
}

const url = new URL("tasks", api).href;
const token = (before: string, after = "") => (who.value?.authentication ? before : after);

const languages: Record<string, (t: Task) => string> = {
  curl: (t) => `curl '${url}' -H 'Content-Type: application/json' \\
${token('  -H "Authorization: Bearer $CODEQ_TOKEN" \\\n')}  -d '${body(t).replaceAll("'", "'\\''")}'`,
  Go: (t) => `c, err := client.New(${text(new URL("../..", api).href)}${token(', client.WithToken(os.Getenv("CODEQ_TOKEN"))')})
// …
task, err := c.Enqueue(ctx, ${text(t.command)}, json.RawMessage(${text(visible(t.payload))}),
\tclient.Priority(${t.priority}), client.MaxAttempts(${t.maxAttempts})${t.timeoutSeconds ? `, client.Timeout(${t.timeoutSeconds}*time.Second)` : ""}${
    Object.entries(t.labels ?? {}).map(([k, v]) => `, client.Label(${text(k)}, ${text(v)})`).join("")})`,
  TypeScript: (t) => `await fetch(${text(url)}, {
  method: "POST",
  headers: { "Content-Type": "application/json"${token(", Authorization: `Bearer ${process.env.CODEQ_TOKEN}`")} },
  body: ${text(body(t))},
});`,
  Python: (t) => `import os, urllib.request

urllib.request.urlopen(urllib.request.Request(
    ${text(url)}, method="POST",
    headers={"Content-Type": "application/json"${token(', "Authorization": "Bearer " + os.environ["CODEQ_TOKEN"]')}},
    data=${text(body(t))}.encode()))`,
};

export function Snippet({ of }: { of: Task }) {
  const name = param("as", "curl"), code = (languages[name] ?? languages.curl!)(of);
  return (
    <section class="tree card">
      <header>
        <h2>Post it again</h2>
        <span class="choices">
          {Object.keys(languages).map((l) => <button type="button" key={l} aria-pressed={l === name} onClick={() => setQuery({ as: l })}>{l}</button>)}
        </span>
        <CopyText text={code} />
      </header>
      <div class="json mono" tabIndex={0} role="group" aria-label={`As ${name}`}><pre>{code}</pre></div>
    </section>
  );
}
