/** How long the page takes to answer a move of a knob, in headless Chromium. Usage: CHROMIUM=... node bench/moves.mjs PAGE.html */

import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const MOVES = 40;
const CASES = {
  "100 kB": "",
  "1 MB": "#size_bytes=1000000",
  "10 MB": "#size_bytes=10000000",
  "10 MB, loss 1 %": "#size_bytes=10000000&loss_percent=1",
  "10 MB, 1 Gbit/s": "#size_bytes=10000000&rate_bps=1000000000&limit=1000",
};

// One side is simulated anew, or both.
const KNOBS = { "B's IW": ["b-iw", 4], RTT: ["path-rtt_ms", 30] };

const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
console.log("| transfer | lines drawn | knob | least, ms | median, ms | 90th percentile, ms |\n|---|---|---|---|---|---|");
for (const [name, fragment] of Object.entries(CASES)) {
  for (const [label, [id, first]] of Object.entries(KNOBS)) {
    const tab = await browser.newPage();
    await tab.setViewport({ width: 1280, height: 900 });
    await tab.goto(pathToFileURL(process.argv[2]).href + fragment);
    await tab.waitForSelector("html[data-ready]");
    const { taken, marks } = await tab.evaluate(moved, id, first, MOVES);
    taken.sort((one, other) => one - other);
    const at = (share) => taken[Math.round(share * (MOVES - 1))].toFixed(1);
    console.log(`| ${name} | ${marks.toLocaleString("en")} | ${label} | ${at(0)} | ${at(0.5)} | ${at(0.9)} |`);
    await tab.close();
  }
}
await browser.close();

/** Moves a knob in the page, a frame apart, and returns what each move took. */
async function moved(id, first, moves) {
  const knob = document.getElementById(id);
  const taken = [];
  for (let index = 0; index < moves; index++) {
    knob.value = String(first + index);
    knob.dispatchEvent(new Event("input"));
    taken.push(Number(document.documentElement.dataset.moveMs));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  }
  return { taken, marks: window.firstflight.marks };
}
