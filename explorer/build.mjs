/** Writes the explorer as one file. Usage: node build.mjs MODULE.wasm START.json PAGE.html */

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const [modulePath, startPath, pagePath] = process.argv.slice(2);

async function bundled(entry, format = "esm") {
  const { outputFiles } = await build({ entryPoints: [new URL(entry, import.meta.url).pathname], bundle: true, minify: true, write: false, format, target: "es2022" });
  return outputFiles[0].text.trim();
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

// As `css` of python/firstflight/report/style.py.
const { colors, roles } = JSON.parse(readFileSync(new URL("../python/firstflight/report/theme.json", import.meta.url), "utf8"));
const variables = (of) => Object.entries(of).map(([name, value]) => `--${name}:${value};`).join("");
const scheme = (place) => variables(Object.fromEntries(Object.entries(colors).map(([name, pair]) => [name, pair[place]])));
const theme = `:root{color-scheme:light dark;${scheme(0)}${variables(Object.fromEntries(Object.entries(roles).map(([role, name]) => [role, `var(--${name})`])))}}@media(prefers-color-scheme:dark){:root{${scheme(1)}}}`;

const module = readFileSync(modulePath);
const start = JSON.parse(readFileSync(startPath, "utf8"));
const { first } = await import(`data:text/javascript,${encodeURIComponent(await bundled("src/first.ts"))}`);
const packed = (bytes) => gzipSync(bytes, { level: 9 }).toString("base64");
const [script, worker, style] = [await bundled("src/page.ts"), await bundled("src/worker.ts", "iife"), theme + (await bundled("src/style.css"))];
const parts = {
  // Nothing but this very script, its worker and style; WebAssembly may be compiled.
  POLICY: `default-src 'none'; script-src ${hash(script)} 'wasm-unsafe-eval'; worker-src blob:; style-src ${hash(style)}; img-src data:; base-uri 'none'; form-action 'none'`,
  STYLE: style,
  // In a block of data "<" could end the block.
  START: JSON.stringify({ ...start, first: packed(JSON.stringify(first(module, start))) }).replaceAll("<", "\\u003c"),
  MODULE: packed(module),
  WORKER: worker,
  SCRIPT: script,
};
const page = readFileSync(new URL("src/index.html", import.meta.url), "utf8").replace(/%([A-Z]+)%/g, (_, name) => parts[name]);
writeFileSync(pagePath, page);
