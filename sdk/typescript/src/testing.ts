import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { Codeq, type AnyCommands, type ClientOptions, type Commands } from "./client.js";
import { CodeqError } from "./errors.js";

export interface TestOptions extends Omit<ClientOptions, "url" | "token"> {
  /** The program. Without it `CODEQ`, or `codeq` of the PATH. */
  program?: string;
  /** More flags of `codeq test-server`. */
  flags?: readonly string[];
}

/** A server in memory whose clock stands still until it is moved, and a client of it. */
export class TestServer<C extends Commands<C> = AnyCommands> {
  readonly url: string;
  readonly codeq: Codeq<C>;
  readonly #process: ChildProcess;

  /** @internal */
  constructor(url: string, process: ChildProcess, options: ClientOptions) {
    this.url = url;
    this.#process = process;
    this.codeq = new Codeq<C>({ ...options, url });
  }

  /** advance moves the clock of the server, and resolves when all that became due is done: delays, leases, backoff, retention. Returns the new time. */
  async advance(ms: number): Promise<Date> {
    const response = await fetch(`${this.url}/advance`, { method: "POST", body: JSON.stringify({ ms }) });
    if (!response.ok) throw new Error(`advance ${ms} ms: ${await response.text()}`);
    return new Date(((await response.json()) as { now: string }).now);
  }

  /** close ends the server. It forgets everything. */
  async close(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode) return;
    const ended = new Promise((done) => this.#process.once("exit", done));
    this.#process.ref();
    this.#process.stdin?.end();
    await ended;
  }
}

/** codeqTest starts `codeq test-server`. Close it at the end of the test; it ends with this process in any case. */
export async function codeqTest<C extends Commands<C> = AnyCommands>(options: TestOptions = {}): Promise<TestServer<C>> {
  const { program = process.env["CODEQ"] || "codeq", flags = [], ...client } = options;
  const child = spawn(program, ["test-server", "--until-eof", ...flags], { stdio: ["pipe", "pipe", "pipe"] });
  let log = "";
  child.stderr.on("data", (text) => (log = (log + String(text)).slice(-4096)));
  child.stdin.on("error", () => {}); // it has ended already
  const url = await new Promise<string>((done, fail) => {
    child.once("error", (cause) => fail(new CodeqError({ code: "unreachable", fate: "unreached", cause, message: `${program} cannot be started (${cause.message}): put codeq into the PATH, or name it in CODEQ` })));
    child.once("exit", (code) => fail(new CodeqError({ code: "unreachable", fate: "unreached", message: `codeq test-server ended with ${code}: ${log}` })));
    createInterface({ input: child.stdout }).once("line", (line) => done((JSON.parse(line) as { url: string }).url));
  });
  child.unref();
  for (const pipe of [child.stdin, child.stdout, child.stderr]) (pipe as unknown as { unref(): void }).unref();
  return new TestServer<C>(url, child, client);
}
