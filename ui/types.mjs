// Writes src/protocol.ts, and the same for the SDK, from docs/asyncapi.yaml and docs/openapi.yaml, so that no type of the
// protocol is written twice. With --check it only says whether the file is current.
import { readFileSync, writeFileSync } from "node:fs";
import { parse } from "yaml";
import { typesOf } from "./typesof.mjs";

const read = (name) => parse(readFileSync(new URL(`../docs/${name}`, import.meta.url), "utf8"));
const text = typesOf(read("openapi.yaml"), read("asyncapi.yaml"));
for (const name of ["ui/src/protocol.ts", "sdk/typescript/src/protocol.ts"]) {
  const file = new URL(`../${name}`, import.meta.url);
  if (!process.argv.includes("--check")) {
    writeFileSync(file, text);
  } else if (readFileSync(file, "utf8") !== text) {
    console.error(`${name} is not what the documents say: run \`make ui\` and commit it`);
    process.exit(1);
  }
}
