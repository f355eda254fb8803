// Makes TypeScript of docs/asyncapi.yaml and docs/openapi.yaml, for the pages and for the SDK.
const last = (ref) => ref.split("/").at(-1);
const upper = (name) => name[0].toUpperCase() + name.slice(1);
const quoted = (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name));
const comment = (text, pad) => (text ? `${pad}/** ${text.trim().replace(/\s+/g, " ")} */\n` : "");

/** typeOf is the TypeScript for a schema. */
function typeOf(schema, pad = "") {
  if (!schema || typeof schema !== "object") return "unknown";
  if (schema.$ref) return last(schema.$ref);
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((v) => JSON.stringify(v)).join(" | ");
  const any = schema.oneOf ?? schema.anyOf;
  if (any) return any.map((s) => typeOf(s, pad)).join(" | ");
  if (schema.allOf) return schema.allOf.map((s) => typeOf(s, pad)).join(" & ");
  const names = [schema.type ?? (schema.properties ? "object" : "any")].flat();
  return names.map((name) => named(name, schema, pad)).join(" | ");
}

function named(name, schema, pad) {
  switch (name) {
    case "integer":
      return "number";
    case "array": {
      const of = typeOf(schema.items, pad);
      return /[|&]/.test(of) ? `(${of})[]` : `${of}[]`;
    }
    case "object":
      return members(schema, pad);
    case "string":
    case "number":
    case "boolean":
    case "null":
      return name;
  }
  return "unknown";
}

function members(schema, pad) {
  const all = Object.entries(schema.properties ?? {});
  const open = schema.additionalProperties;
  if (all.length === 0) return `Record<string, ${open && open !== true ? typeOf(open, pad) : "unknown"}>`;
  const inner = pad + "  ";
  const lines = all.map(([name, s]) => {
    const optional = schema.required?.includes(name) ? "" : "?";
    return `${comment(s.description, inner)}${inner}${quoted(name)}${optional}: ${typeOf(s, inner)};\n`;
  });
  return `{\n${lines.join("")}${pad}}`;
}

const declare = (name, schema) => `${comment(schema.description, "")}export type ${name} = ${typeOf(schema)};\n\n`;

/** content is the JSON schema of a body or an answer, with references to answers resolved. */
function content(api, body) {
  if (body?.$ref) body = api.components.responses[last(body.$ref)];
  return body?.content?.["application/json"]?.schema;
}

function operations(api) {
  let answers = "", bodies = "";
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, op] of Object.entries(methods)) {
      if (!/^(get|put|post|delete)$/.test(method)) continue;
      const key = `  ${JSON.stringify(`${method.toUpperCase()} ${path.replace("/v1/codeq", "")}`)}: `;
      const good = Object.entries(op.responses).find(([status]) => /^2/.test(status))?.[1];
      answers += `${key}${typeOf(content(api, good), "  ")};\n`;
      const body = content(api, op.requestBody);
      if (body) bodies += `${key}${typeOf(body, "  ")};\n`;
    }
  }
  return `/** What each request is answered with. */\nexport interface Answers {\n${answers}}\n\n` +
    `/** What each request has as its body. */\nexport interface Bodies {\n${bodies}}\n`;
}

/** typesOf is the text of a file with all types of the two documents. */
export function typesOf(api, events) {
  let text = "// Made by types.mjs from docs/asyncapi.yaml and docs/openapi.yaml. Do not change it by hand.\n\n";
  for (const [name, schema] of Object.entries(api.components.schemas)) text += declare(name, schema);
  for (const [name, schema] of Object.entries(events.components.schemas)) {
    if (!(name in api.components.schemas)) text += declare(name, schema);
  }
  const frames = Object.entries(events.components.messages);
  for (const [name, m] of frames) text += declare(`${upper(name)}Frame`, { description: m.summary, ...m.payload });
  for (const [name, operation] of [["ClientFrame", "ask"], ["ServerFrame", "tell"]]) {
    const all = events.operations[operation].messages.map((m) => `${upper(last(m.$ref))}Frame`);
    text += `export type ${name} = ${all.join(" | ")};\n\n`;
  }
  text += operations(api);
  return text;
}
