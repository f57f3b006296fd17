// Asks the language server of Taplo, which VS Code runs, about a job file.
//
//     node language_server.cjs PACKAGE FOLDER < questions.json
//
// PACKAGE is the folder of @taplo/lsp, FOLDER that of the file. The questions are
// {"text": the text of job.toml, "places": [[method, line, character], …]}. Prints the answers in their order, and what
// the server marks as wrong.
const fs = require("fs");
const path = require("path");
const { pathToFileURL } = require("url");

const [root, folder] = process.argv.slice(2);
const { TaploLsp } = require(root);
const { text, places } = JSON.parse(fs.readFileSync(0, "utf-8"));
const uri = pathToFileURL(folder).href;
const job = `${uri}/job.toml`;
// What an editor without a network has. The extension of VS Code has the same settings for schemas, with catalogs.
const settings = { schema: { enabled: true, catalogs: [], links: false } };

const environment = {
  now: () => new Date(),
  envVar: (name) => process.env[name],
  envVars: () => Object.entries(process.env),
  stdErrAtty: () => false,
  stdin: async () => new Uint8Array(0),
  stdout: async (bytes) => bytes.length,
  stderr: async (bytes) => process.stderr.write(bytes) && bytes.length,
  glob: () => [],
  readFile: (name) => fs.promises.readFile(name),
  writeFile: (name, bytes) => fs.promises.writeFile(name, bytes),
  urlToFilePath: (url) => decodeURI(url).slice("file://".length),
  isAbsolute: (name) => path.isAbsolute(name),
  cwd: () => folder,
  findConfigFile: (from) =>
    [path.join(from, ".taplo.toml")].find((name) => fs.existsSync(name)),
};

async function main() {
  const waiting = new Map();
  const marked = [];
  let found;
  const associated = new Promise((resolve) => (found = resolve));
  const server = await TaploLsp.initialize(environment, {
    onMessage(message) {
      if (message.method === "textDocument/publishDiagnostics") marked.push(message.params.diagnostics);
      if (message.method === "taplo/didChangeSchemaAssociation" && message.params.schemaUri) found();
      if (message.method && message.id !== undefined)
        server.send({ jsonrpc: "2.0", id: message.id, result: (message.params.items || []).map(() => settings) });
      else if (!message.method) waiting.get(message.id)?.(message.result ?? null);
    },
  });
  const tell = (method, params) => server.send({ jsonrpc: "2.0", method, params });
  const ask = (method, params) =>
    new Promise((resolve) => {
      const id = waiting.size + 1;
      waiting.set(id, resolve);
      server.send({ jsonrpc: "2.0", id, method, params });
    });
  const workspaceFolders = [{ uri, name: "jobs" }];
  await ask("initialize", { processId: null, rootUri: uri, capabilities: {}, workspaceFolders });
  tell("initialized", {});
  tell("textDocument/didOpen", { textDocument: { uri: job, languageId: "toml", version: 1, text } });
  await associated;
  const answers = [];
  for (const [method, line, character] of places)
    answers.push(await ask(`textDocument/${method}`, { textDocument: { uri: job }, position: { line, character } }));
  // It marks what is wrong after each change, when it comes to it: once more, and wait for the schema's complaints.
  tell("textDocument/didChange", { textDocument: { uri: job, version: 2 }, contentChanges: [{ text }] });
  await new Promise((resolve) => setTimeout(resolve, 3000));
  process.stdout.write(JSON.stringify({ answers, marked: marked.at(-1) }) + "\n", () => process.exit(0));
}

main();
