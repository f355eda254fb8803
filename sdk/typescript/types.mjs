// Writes src/protocol.ts from docs/asyncapi.yaml and docs/openapi.yaml, so that no type of the
// protocol is written twice. With --check it only says whether the file is current.
import { readFileSync, writeFileSync } from "node:fs";
import { parse } from "yaml";
import { typesOf } from "../../ui/typesof.mjs";

const read = (name) => parse(readFileSync(new URL(`../../docs/${name}`, import.meta.url), "utf8"));
const text = typesOf(read("openapi.yaml"), read("asyncapi.yaml"));
const file = new URL("src/protocol.ts", import.meta.url);
if (!process.argv.includes("--check")) {
  writeFileSync(file, text);
} else if (readFileSync(file, "utf8") !== text) {
  console.error("sdk/typescript/src/protocol.ts is not what the documents say: run `npm run types` in sdk/typescript and commit it");
  process.exit(1);
}
