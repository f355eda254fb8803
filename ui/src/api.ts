// Requests to the API, typed by its documents.
import { api } from "./live";
import type { Answers, Bodies, Error as Refusal } from "./protocol";

/** Refused has the sentence of the server, or says that it could not be reached. */
export class Refused extends Error {
  constructor(message: string, readonly code: string, readonly status: number, readonly body: Partial<Refusal> = {}) {
    super(message);
  }
}

export interface Parts {
  /** What stands in the path in braces. */
  command?: string;
  id?: string;
  session?: string;
  tenant?: string;
  name?: string;
  query?: Record<string, string | number | boolean | readonly string[] | undefined>;
  signal?: AbortSignal;
  /** A credential for this request alone. */
  token?: string;
}

/** ask sends a request and returns its answer; what is refused is thrown as Refused. */
export async function ask<R extends keyof Answers>(
  route: R,
  parts: Parts = {},
  body?: R extends keyof Bodies ? Bodies[R] : never,
): Promise<Answers[R]> {
  const [method, pattern] = route.split(" ") as [string, string];
  const filled = pattern.replace(/\{(\w+)\}/g, (_, name: "command" | "id" | "session" | "tenant" | "name") => encodeURIComponent(parts[name] ?? ""));
  const ofServer = /^\/(healthz|readyz|version)$/.test(pattern);
  const url = new URL((ofServer ? "../.." : ".") + filled, api);
  for (const [name, value] of Object.entries(parts.query ?? {})) {
    for (const one of [value].flat()) if (one !== undefined && one !== "") url.searchParams.append(name, String(one));
  }
  let response: Response;
  try {
    response = await fetch(url, {
      method,
      headers: { ...(body === undefined ? {} : { "Content-Type": "application/json" }), "X-Codeq-UI": "1", ...(parts.token ? { Authorization: `Bearer ${parts.token}` } : {}) },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: parts.signal,
    });
  } catch (e) {
    if ((e as Error).name === "AbortError") throw e;
    throw new Refused("The server did not answer. What was asked may have happened or not.", "unreachable", 0);
  }
  if (response.status === 204) return undefined as Answers[R];
  const text = await response.text();
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new Refused(`The answer is no JSON but ${response.status} ${response.statusText}: a proxy may have sent it.`, "no_json", response.status);
  }
  if (response.ok) return answer as Answers[R];
  const refusal = answer as Partial<Refusal>;
  throw new Refused(refusal.error ?? `The server answered ${response.status}.`, refusal.code ?? "", response.status, refusal);
}
