// Who asks. A pasted token becomes a cookie that no script can read; the page keeps nothing of it.
import { signal, useSignal } from "@preact/signals";
import { ask } from "./api";
import { connect, link } from "./live";
import { Problem } from "./parts";
import type { Answers } from "./protocol";

export const who = signal<Answers["GET /login"] | undefined>(undefined);

/** learn asks who the person is for the server. */
export const learn = () => ask("GET /login").then((w) => (who.value = w), () => (who.value = undefined));

/** readsOnly says that the credential of the person changes nothing. */
export const readsOnly = () => !!who.value && !who.value.scopes.some((s) => /admin|operator/.test(s));

export async function leave() {
  await ask("DELETE /login");
  location.reload();
}

export function Login() {
  const token = useSignal(""), problem = useSignal(""), busy = useSignal(false);
  const enter = async (e: Event) => {
    e.preventDefault();
    busy.value = true;
    problem.value = "";
    try {
      who.value = await ask("POST /login", { token: token.value.trim() });
      token.value = "";
      connect();
    } catch (e) {
      problem.value = (e as Error).message;
    }
    busy.value = false;
  };
  return (
    <form class="login card" onSubmit={enter}>
      <h1>This server asks who you are</h1>
      <label>
        Token <input type="password" autocomplete="current-password" required value={token.value} onInput={(e) => (token.value = e.currentTarget.value)} />
      </label>
      <p class="muted">
        It needs the scope <code>admin</code>, or <code>codeq:read</code> to look only. The browser keeps a cookie in its place for 12 hours.
        <code>codeq token new</code> makes one.
      </p>
      {(problem.value || link.value.why) && <Problem>{problem.value || link.value.why}</Problem>}
      <div class="buttons"><button class="main" disabled={busy.value}>Log in</button></div>
    </form>
  );
}
