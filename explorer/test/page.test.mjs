/** The page in headless Chromium. tests/unit/test_explorer.py calls it with CHROMIUM, PAGE and CASES in the environment. */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const { CHROMIUM, PAGE, CASES, SCREENSHOTS, FRAGMENTS, TAKEN, SITE } = process.env;
const page = pathToFileURL(PAGE).href;
let browser;

before(async () => {
  // Chromium's own sandbox needs rights that a container may lack; the only page it sees here is ours.
  browser = await puppeteer.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
});
after(() => browser.close());

/** Opens the page, and fails on an error of its script or a request beyond the page itself. */
async function opened(t, fragment = "", { width = 1280, height = 900, scheme = "light", url = page } = {}) {
  const tab = await browser.newPage();
  t.after(() => tab.close());
  const unwanted = [];
  tab.on("pageerror", (error) => unwanted.push(error.message));
  tab.on("console", (message) => unwanted.push(message.text()));
  // The worker's script comes out of the page's own memory.
  tab.on("request", (request) => request.url().split("#")[0] === url || /^(data|blob):/.test(request.url()) || unwanted.push(request.url()));
  t.after(() => assert.deepEqual(unwanted, []));
  await tab.setViewport({ width, height });
  await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await tab.goto(url + fragment);
  await tab.waitForSelector("html[data-ready]");
  return tab;
}

const text = (tab, selector) => tab.$eval(selector, (found) => found.textContent);
const completion = async (tab, side) => Number(await tab.$eval(`#ladder-${side}`, (found) => found.dataset.completionNs));

test("it opens with IW 3 against 10 and writes out the difference", async (t) => {
  const tab = await opened(t);
  assert.match(await text(tab, "#verdict"), /^A: IW 3: [\d.]+ ms\. B: IW 10: [\d.]+ ms\. B is [\d.]+ ms faster \(\d+%\)\.$/);
  assert.equal(await text(tab, "#problem"), "");
});

test("the site's page has drawn before its simulator comes, and other settings wait for it", async (t) => {
  for (const [fragment, before, then] of [["", /^A: IW 3: 274\.3 ms\. B: IW 10: 209\.8 ms\./, ""], ["#a.iw=10", /^The simulator is loading\.$/, /^A: IW 10: 209\.8 ms\./]]) {
    const tab = await browser.newPage();
    t.after(() => tab.close());
    await tab.setRequestInterception(true);
    let send;
    const held = new Promise((resolve) => (send = resolve));
    tab.on("request", async (request) => {
      const name = new URL(request.url()).pathname.slice(1);
      if (name === "simulator.bin") await held;
      if (request.url().startsWith("http")) await request.respond({ body: readFileSync(`${SITE}/${name}`), contentType: name.endsWith("html") ? "text/html" : "application/octet-stream" });
      else await request.continue();
    });
    await tab.goto(`http://site.test/playground.html${fragment}`);
    await tab.waitForFunction(() => document.getElementById("verdict").textContent !== "");
    assert.match(await text(tab, "#verdict"), before);
    assert.equal((await completion(tab, "b")) > 0, fragment === "");
    const drawn = await tab.evaluate(() => document.documentElement.dataset.ready);
    assert.equal(drawn, undefined);
    send();
    await tab.waitForSelector("html[data-ready]");
    if (then !== "") assert.match(await text(tab, "#verdict"), then);
    await tab.waitForSelector("#sizes[data-done]");
  }
});

for (const { name, file, fragment, columns, completion_ns } of JSON.parse(readFileSync(CASES, "utf8"))) {
  test(`every event is that of firstflight trace: ${name}`, async (t) => {
    const tab = await opened(t, fragment, { url: pathToFileURL(file).href });
    assert.equal(await text(tab, "#problem"), "");
    assert.equal(await completion(tab, "a"), completion_ns);
    const ours = await tab.evaluate((names) => window.firstflight.rows("a", names), Object.keys(columns));
    assert.deepEqual(ours, Object.values(columns));
    // Where there is other traffic the run that is drawn is shorter, and the same as far as it goes.
    const drawn = await tab.evaluate(() => window.firstflight.transfers.a.segments.map(({ sentNs, seq, length }) => [sentNs, seq, length]));
    const sent = columns.time_ns.flatMap((time, row) => (columns.event[row] === 0 ? [[time, columns.seq[row], columns.length[row]]] : []));
    assert.deepEqual(drawn, sent.slice(0, drawn.length));
    assert.ok(drawn.length === sent.length || drawn.at(-1)[0] > completion_ns);
  });
}

test("a move of a knob is answered and kept in the address", async (t) => {
  const tab = await opened(t);
  const before = await completion(tab, "a");
  await tab.$eval("#a-iw", (input) => {
    input.value = "20";
    input.dispatchEvent(new Event("input"));
  });
  assert.ok((await completion(tab, "a")) < before);
  await tab.waitForFunction(() => location.hash === "#a.iw=20");
  assert.match(await text(tab, "#verdict"), /^A: IW 20: /);
  const again = await opened(t, "#a.iw=20");
  assert.equal(await completion(again, "a"), await completion(tab, "a"));
});

test("moves take less than 50 ms", async (t) => {
  const tab = await opened(t);
  const taken = await tab.evaluate(() => {
    const knob = document.getElementById("b-iw");
    return Array.from({ length: 40 }, (_, index) => {
      knob.value = String(4 + index);
      knob.dispatchEvent(new Event("input"));
      return Number(document.documentElement.dataset.moveMs);
    });
  });
  taken.sort((one, other) => one - other);
  t.diagnostic(`moves take ${taken[0]} ms at least, in the median ${taken[taken.length / 2]} ms`);
  // The least, for a busy machine interrupts the others.
  assert.ok(taken[0] < 50, `the least of 40 moves took ${taken[0]} ms`);
});

test("of a long transfer the beginning is drawn at once, and the completion time follows", async (t) => {
  const tab = await opened(t, "#size_bytes=40000000&rate_bps=100000000");
  const atOnce = await tab.evaluate(() => {
    document.getElementById("b-iw").dispatchEvent(new Event("input"));
    return document.getElementById("verdict").textContent;
  });
  assert.equal(atOnce, "A: IW 3 and B: IW 10: the beginning is drawn, the completion times follow.");
  const cut = Number(/drawn until ([\d,.]+) ms/.exec(await text(tab, "#caption-a"))[1].replaceAll(",", ""));
  // The one that is asked for last.
  await tab.waitForFunction(() => document.getElementById("ladder-b").dataset.completionNs !== "");
  assert.ok((await completion(tab, "a")) > cut * 1e6);
  assert.match(await text(tab, "#verdict"), /^A: IW 3: [\d.,]+ ms\. B: IW 10: [\d.,]+ ms\. B is [\d.,]+ ms faster/);
  // What is drawn is what a whole run has.
  const [drawn, whole] = await tab.evaluate(() => {
    const drawn = window.firstflight.transfers.a.segments.map(({ sentNs }) => sentNs);
    const [times, events] = window.firstflight.rows("a", ["time_ns", "event"]);
    return [drawn, times.filter((_, row) => events[row] === 0).slice(0, drawn.length)];
  });
  assert.deepEqual(drawn, whole);
});

test("a setting that makes no sense is refused in one sentence", async (t) => {
  const tab = await opened(t, "#a.cc=bbr&a.startup=paced");
  assert.match(await text(tab, "#problem"), /^A: .*congestion_control = bbr/);
  const none = await opened(t, "#b.iw=0");
  assert.equal(await text(none, "#problem"), "B: IW: 0 segments is not from 1 to 1,000 segments.");
  assert.equal(await none.$eval("#b-iw", (input) => input.getAttribute("aria-invalid")), "true");
  const wrong = await opened(t, "#rate_bps=-4&size_bytes=cat&nonsense=1&a.__proto__=2");
  assert.equal(await text(wrong, "#problem"), "rate: -0.000004 Mbit/s is not from 0.001 to 100,000 Mbit/s.");
});

for (const [fragment, problem] of [
  ["a.cc=foo", /^A: congestion control: foo is not one of .*cubic/],
  ["b.startup=foo", /^B: start-up: foo is not one of window, /],
  ["a.profile=foo", /^A: profile: foo is not one of .*linux/],
  ["a.chain=foo", /^A: chain: foo is not one of none, ecdsa, /],
  ["queue=foo", /^queue: foo is not one of drop_tail, /],
  ["limit_unit=foo", /^limit in: foo is not one of packets, kB/],
  ["neighbor=foo", /^neighbor: foo is not one of none, /],
  ["lose=3+x", /^loss list: x is not the number of a packet/],
]) {
  test(`a word of a link that no knob has is said, and no setting is called by it: ${fragment}`, async (t) => {
    const tab = await opened(t, `#${fragment}`);
    assert.match(await text(tab, "#problem"), problem);
    assert.equal(await text(tab, "#verdict"), "");
  });
}

test("the command has the loss list as the page took it: ascending, each number once", async (t) => {
  const tab = await opened(t, "#lose=14,3+3");
  await tab.waitForFunction(() => document.getElementById("command").textContent.includes("loss_list"));
  assert.match(await text(tab, "#command"), /loss_list=\[3, 14\]/);
});

test("a refused side has no drawing and no verdict, and pointing reads the other one", async (t) => {
  const tab = await opened(t, "#loss_percent=1");
  await seeded(tab);
  await tab.$eval("#b-iw", (input) => {
    input.value = "0";
    input.dispatchEvent(new Event("input"));
  });
  assert.equal(await text(tab, "#verdict"), "");
  assert.deepEqual(await inked(tab, 0.5), [0, 0]);
  for (const id of ["spread", "sizes"]) assert.equal(await tab.$eval(`#${id}`, (found) => getComputedStyle(found).visibility), "hidden");
  const middle = async (id) => tab.$eval(id, (found) => {
    found.scrollIntoView({ block: "center" });
    const { x, y, width, height } = found.getBoundingClientRect();
    return [x + width / 2, y + height / 2];
  });
  await tab.mouse.move(...(await middle("#delivered")));
  assert.match(await text(tab, "#story"), /^At [\d.]+ ms\. A: [\d.]+ kB delivered\.$/);
  const whole = await tab.evaluate(() => window.firstflight.view.toNs);
  const [x, y] = await middle("#ladder-b");
  await tab.mouse.move(x, y);
  await tab.mouse.down();
  await tab.mouse.move(x + 100, y);
  await tab.mouse.up();
  const { fromNs, toNs } = await tab.evaluate(() => window.firstflight.view);
  assert.ok(fromNs > 0.4 * whole && toNs < 0.8 * whole && toNs - fromNs > 0.05 * whole, `${fromNs} to ${toNs} of ${whole}`);
});

test("a damaged plan in the address is said, and a link to another transfer opens it", async (t) => {
  const tab = await browser.newPage();
  t.after(() => tab.close());
  await tab.goto(`${page}#plan=eJyLjgUAARUAuQ`);
  await tab.waitForFunction(() => document.getElementById("problem").textContent !== "");
  assert.match(await text(tab, "#problem"), /the plan in the address is damaged; copy the whole address/);
  const [linked] = JSON.parse(readFileSync(CASES, "utf8")).filter(({ fragment }) => fragment.startsWith("#plan="));
  await tab.goto(page + linked.fragment);
  await tab.waitForSelector("html[data-ready]");
  assert.equal(await text(tab, "#name"), "homes");
  await tab.$eval("#a-iw", (input) => {
    input.value = "4";
    input.dispatchEvent(new Event("input"));
  });
  await tab.waitForFunction((hash) => location.hash === hash, {}, `${linked.fragment}&a.iw=4`);
});

test("the arrow keys tell what happened at each segment", async (t) => {
  const tab = await opened(t, "#lose=3&size_bytes=60000");
  await tab.focus("#ladder-b");
  const told = [];
  for (let step = 0; step < 90; step++) {
    await tab.keyboard.press("ArrowRight");
    told.push(await text(tab, "#story"));
  }
  assert.match(told[0], /^B: SYN: the client asks for a connection, sent at 0\.0 ms\. It arrived at 20\.\d ms\.$/);
  for (const sentence of [/part of the first flight/, /It was lost on the link/, /first duplicate ACK/, /fast retransmit/, /waited [\d.]+ ms in the bottleneck queue/]) {
    assert.ok(told.some((one) => sentence.test(one)), String(sentence));
  }
  await tab.keyboard.press("+");
  await tab.keyboard.press("0");
});

test("the chart of sizes has the time of a transfer of each size", async (t) => {
  const tab = await opened(t);
  await tab.waitForSelector("#sizes[data-done]");
  await tab.focus("#sizes");
  // The 61st of the sizes is 100 kB, as in the ladders.
  for (let step = 0; step < 60; step++) await tab.keyboard.press("ArrowRight");
  assert.equal(await text(tab, "#story"), "100 kB: A 274.3 ms, B 209.8 ms: B is 64.5 ms faster.");
});

/** Waits until the worker has answered for all seeds. */
const seeded = (tab) => tab.waitForFunction(() => window.firstflight.isRandom !== undefined);

test("where something is random the verdict is about many seeds, and one of them is drawn", async (t) => {
  const tab = await opened(t, "#loss_percent=1");
  await seeded(tab);
  const verdict = /^A: IW 3: median ([\d.]+) ms \(80%: ([\d.]+) ms to ([\d.]+) ms\)\. B: IW 10: median [\d.]+ ms \(80%: [\d.]+ ms to [\d.]+ ms\)\. B is faster in (\d+) of (\d+) runs, by [\d.]+ ms in the median\.$/;
  const [, median, low, high, wins, runs] = verdict.exec(await text(tab, "#verdict")).map(Number);
  const times = await tab.evaluate(() => ["a", "b"].map((side) => window.firstflight.spread[side].map(({ completionNs }) => completionNs / 1e6)));
  const sorted = times[0].slice(0, runs).sort((one, other) => one - other);
  assert.ok(low <= median && median <= high && low < high && sorted[0] < low + 0.1 && high < sorted.at(-1) + 0.1);
  assert.equal((await completion(tab, "a")) / 1e6, await tab.evaluate(() => window.firstflight.spread.a[0].completionNs / 1e6));
  assert.ok(wins <= runs && runs === Math.min(...times.map(({ length }) => length)));
  await tab.focus("#seeds");
  await tab.keyboard.press("ArrowRight");
  assert.match(await text(tab, "#story"), /^Seed 2: A [\d.]+ ms, B [\d.]+ ms.*Click or press Enter to draw this run\.$/);
  const before = await text(tab, "#verdict");
  await tab.keyboard.press("Enter");
  assert.equal(await completion(tab, "a"), await tab.evaluate(() => window.firstflight.spread.a[1].completionNs));
  // The seeds are the same: the verdict is no other.
  assert.equal(await text(tab, "#verdict"), before);
  await tab.waitForSelector("#sizes[data-done]");
  assert.deepEqual(await tab.evaluate(() => [window.firstflight.times.b.length, window.firstflight.times.b[20].length]), [31, 15]);
  await tab.focus("#sizes");
  for (let step = 0; step < 15; step++) await tab.keyboard.press("ArrowRight");
  assert.match(await text(tab, "#story"), /^100 kB, medians of 15 seeds: A /);
});

test("what nothing random touches has one time, and no chart of seeds", async (t) => {
  const tab = await opened(t);
  await seeded(tab);
  assert.ok(await tab.$eval("#spread", ({ hidden }) => hidden));
  assert.match(await text(tab, "#verdict"), /^A: IW 3: 274\.3 ms\. /);
});

test("a neighbor's flow is timed with A, with B and without either", async (t) => {
  const tab = await opened(t, "#neighbor=short%20flow");
  await seeded(tab);
  const [, a, b, alone, cost] = /^The neighbor's short flow takes ([\d.]+) ms with A, ([\d.]+) ms with B, ([\d.]+) ms without either: B costs it ([\d.]+) ms more \(\d+%\)\.$/.exec(await text(tab, "#harm")).map(Number);
  assert.ok(alone < a && a < b && Math.abs(b - a - cost) < 0.11);
  await tab.select("#path-neighbor", "call");
  await tab.waitForFunction(() => /^The neighbor's call has a longest delay of .* Of 100 packets \d+ come too late or never with A, \d+ with B\.$/.test(document.getElementById("harm").textContent));
  await tab.select("#path-neighbor", "none");
  await seeded(tab);
  assert.equal(await text(tab, "#harm"), "");
});

test("a chain of certificates puts a TLS handshake before the response", async (t) => {
  const tab = await opened(t, "#size_bytes=20000&rate_bps=100000000&rtt_ms=100&limit=200&a.iw=10&b.iw=10&a.chain=ecdsa");
  assert.match(await text(tab, "#verdict"), /^A: IW 10, ECDSA: 406\.1 ms\. B: IW 10, no TLS: /);
  await tab.select("#b-chain", "ml-dsa-44");
  assert.equal(await text(tab, "#verdict"), "A: IW 10, ECDSA: 406.1 ms. B: IW 10, ML-DSA-44: 307.9 ms. B is 98.3 ms faster (24%).");
  assert.equal(
    await text(tab, "#first-flight"),
    "The first flight is the TLS handshake: with A the server's 2 segments take 1 round trip; with B the server's 9 segments take 1 round trip.",
  );
  assert.match(await text(tab, "#caption-b"), /handshake 100\.0 ms, TLS handshake 206\.1 ms, first usable byte 307\.6 ms\.$/);
  await tab.select("#b-chain", "ml-dsa-65");
  assert.match(await text(tab, "#first-flight"), /with B the server's 12 segments take 2 round trips\.$/);
  // ClientHello and Finished; the server's flight.
  const tls = await tab.evaluate(() => window.firstflight.transfers.b.segments.filter(({ isTls }) => isTls).map(({ isDataWay, length }) => [isDataWay, length]));
  assert.deepEqual(tls.filter(([isDataWay]) => !isDataWay).map(([, length]) => length), [1448, 58, 80]);
  assert.equal(tls.filter(([isDataWay]) => isDataWay).reduce((sum, [, length]) => sum + length, 0), 15721);
  await tab.waitForFunction(() => location.hash.endsWith("&b.chain=ml-dsa-65"));
  await tab.select("#a-chain", "none");
  await tab.select("#b-chain", "none");
  assert.equal(await text(tab, "#first-flight"), "");
  assert.match(await text(tab, "#verdict"), /No difference\.$/);
});

test("the chart of sizes has the times without the handshake, too", async (t) => {
  const tab = await opened(t, "#a.iw=10&b.chain=ml-dsa-65");
  await tab.waitForSelector("#sizes[data-done]");
  assert.ok(!(await tab.$eval("#without", ({ hidden }) => hidden)));
  await tab.focus("#sizes");
  for (let step = 0; step < 60; step++) await tab.keyboard.press("ArrowRight");
  assert.match(await text(tab, "#story"), /^100 kB: A 209\.8 ms, B [\d.]+ ms: A is [\d.]+ ms faster\. Without the TLS handshake: B 209\.8 ms\.$/);
});

test("a network sets several knobs, and is named by them", async (t) => {
  const tab = await opened(t);
  for (const [name, rate, rtt] of [["fiber", "500", "20"], ["DSL", "16", "40"], ["LTE", "20", "60"], ["5G", "100", "40"], ["GEO", "25", "600"], ["LEO", "100", "50"], ["congested", "2", "60"]]) {
    await tab.select("#path-network", name);
    assert.deepEqual(await tab.evaluate(() => ["rate_bps", "rtt_ms"].map((key) => document.getElementById(`path-${key}`).value)), [rate, rtt]);
    assert.equal(await text(tab, "#problem"), "");
  }
  const again = await opened(t, "#rate_bps=2000000&rtt_ms=60&limit=12");
  assert.equal(await again.$eval("#path-network", ({ value }) => value), "congested");
  await again.$eval("#path-rtt_ms", (input) => {
    input.value = "61";
    input.dispatchEvent(new Event("input"));
  });
  assert.equal(await again.$eval("#path-network", ({ value }) => value), "");
});

test("a capture is read in the page, and its path becomes the model's", async (t) => {
  const tab = await opened(t);
  const input = await tab.$("#capture");
  await input.uploadFile(new URL("../../examples/flows/server.pcapng", import.meta.url).pathname);
  await tab.waitForFunction(() => document.getElementById("capture-says").textContent !== "");
  assert.match(await text(tab, "#capture-says"), /^server\.pcapng: [\d,]+ packets, [\d,]+ responses; [\d,]+ dots in the chart\.$/);
  const [, observed, rtt] = /in ([\d.]+) ms, RTT ([\d.]+) ms/.exec(await text(tab, "#response option"));
  assert.equal(await tab.$eval("#path-rtt_ms", ({ value }) => value), rtt);
  t.diagnostic(`observed ${observed} ms, modeled ${(await completion(tab, "b")) / 1e6} ms`);
  await tab.waitForSelector("#captured:not([hidden])");
  assert.equal(await text(tab, "#place"), "at the server");
  await tab.focus("#sequence");
  const marks = [];
  for (let step = 0; step < 30; step++) {
    await tab.keyboard.press("ArrowRight");
    marks.push(await text(tab, "#story"));
  }
  assert.match(marks[0], /^Captured: data, bytes 1 to 1,448, at [\d.]+ ms\. With B they pass [\d.]+ ms (later|earlier)\.$/);
  assert.ok(marks.some((mark) => /^Captured: ACK of 1,448 bytes, at /.test(mark)), marks.join("\n"));
  assert.match(marks.at(-1), /^Captured: ACK of 20,242 bytes, at /);
  await input.uploadFile(new URL("page.test.mjs", import.meta.url).pathname);
  await tab.waitForFunction(() => document.getElementById("capture-says").textContent.includes("is no capture"));
  assert.ok(await tab.$eval("#captured", ({ hidden }) => hidden));
});

/** The log of aioquic as quinn writes one: a JSON text sequence, lengths in the header, no frames, other names of metrics. */
function asQuinn({ traces: [{ events }] }) {
  const quinn = events.map(({ time, name, data: { header, raw, type, packet_number, cwnd, frames, ...data } }) => {
    const packet = header ?? (type === undefined ? undefined : { packet_type: type, packet_number });
    return { time: time - 1e6, name, data: { ...data, ...(cwnd === undefined ? {} : { congestion_window: cwnd }), ...(packet === undefined ? {} : { header: { ...packet, length: raw?.length } }) } };
  });
  const head = { qlog_version: "0.3", qlog_format: "JSON-SEQ", trace: { vantage_point: { type: "server" } } };
  return [head, ...quinn].map((record) => `\x1e${JSON.stringify(record)}\n`).join("");
}

test("a qlog of aioquic or quinn opens like a capture, with what was lost and cwnd", async (t) => {
  const tab = await opened(t);
  const qlog = new URL("aioquic.qlog", import.meta.url);
  await (await tab.$("#capture")).uploadFile(qlog.pathname);
  await tab.waitForSelector("#captured:not([hidden])");
  // 60 kB and headers, over 10 Mbit/s with an RTT of 40 ms and one packet of the first flight lost.
  const [, kB, , rtt, rate] = /^aioquic\.qlog: qlog, ([\d.]+) kB in ([\d.]+) ms, RTT ([\d.]+) ms, ([\d.]+) Mbit\/s, first flight of \d+ segments\.$/.exec(await text(tab, "#capture-says")).map(Number);
  assert.ok(kB > 60 && kB < 63 && rtt > 40 && rtt < 42 && rate > 9 && rate < 10.5, [kB, rtt, rate].join(" "));
  assert.deepEqual(await tab.evaluate(() => ["path-rtt_ms", "path-rate_bps"].map((id) => Number(document.getElementById(id).value))), [rtt, rate]);
  const read = () => tab.evaluate(() => ({ ...window.firstflight.own, response: window.firstflight.own.response }));
  const own = await read();
  assert.equal(own.marks.filter(({ isLost }) => isLost).length, 1);
  assert.ok(own.cwnd.values[0] === 12000 && Math.max(...own.cwnd.values) > 20000);
  const middle = await tab.$eval("#captured", (found) => (({ top, bottom }) => (top + bottom) / 2)(found.getBoundingClientRect()));
  assert.ok(middle > 0 && middle < 900, "the chart is in view");
  const sequence = new File([asQuinn(JSON.parse(readFileSync(qlog, "utf8")))], "quinn.sqlog");
  await tab.evaluate((content) => {
    const files = new DataTransfer();
    files.items.add(new File([content], "quinn.sqlog"));
    document.dispatchEvent(new DragEvent("drop", { dataTransfer: files }));
  }, await sequence.text());
  await tab.waitForFunction(() => document.getElementById("capture-says").textContent.startsWith("quinn.sqlog: qlog"));
  const other = await read();
  const data = ({ marks }) => marks.filter(({ isData }) => isData).map(({ from, to, isLost = false }) => [from, to, isLost]);
  assert.deepEqual(data(other), data(own));
  assert.ok(Math.abs(other.response.bytes / own.response.bytes - 1) < 0.03, `${other.response.bytes} of ${own.response.bytes} bytes`);
  assert.deepEqual(other.cwnd.values, own.cwnd.values);
});

test("a home of the cloud gives the knobs its path, and a capture's paths take the homes' place", async (t) => {
  const tab = await opened(t);
  await tab.focus("#cloud");
  await tab.keyboard.press("ArrowRight");
  const [, rtt, rate, limit, loss] = /^UK home: RTT ([\d.]+) ms, ([\d.]+) Mbit\/s, queue of ([\d.]+) kB, loss ([\d.]+)%\./.exec(await text(tab, "#story"));
  await tab.keyboard.press("Enter");
  const knobs = await tab.evaluate(() => ["rtt_ms", "rate_bps", "limit", "limit_unit", "loss_percent"].map((key) => document.getElementById(`path-${key}`).value));
  assert.deepEqual(knobs, [rtt, rate, limit, "kB", loss]);
  assert.equal(await text(tab, "#problem"), "");
  await (await tab.$("#capture")).uploadFile(new URL("../../examples/flows/server.pcapng", import.meta.url).pathname);
  await tab.waitForFunction(() => document.getElementById("whose").value === "own");
  await tab.focus("#cloud");
  await tab.keyboard.press("ArrowRight");
  await tab.keyboard.press("ArrowRight");
  assert.match(await text(tab, "#story"), /^Your capture: [\d.]+ kB in /);
  await tab.keyboard.press("Enter");
  assert.equal(await tab.$eval("#response", ({ value }) => value), "1");
});

test("pointing at a line tells the same", async (t) => {
  const tab = await opened(t);
  const { x, y, width } = await tab.$eval("#ladder-b", (found) => {
    found.scrollIntoView();
    const { x, y, width } = found.getBoundingClientRect();
    return { x, y, width };
  });
  for (let step = 0; step < 20; step++) await tab.mouse.move(x + (width * step) / 20, y + 180);
  assert.match(await text(tab, "#story"), /^B: /);
});

test("the drawings name the rounds, and why slow start ended", async (t) => {
  const tab = await opened(t);
  const names = () => tab.evaluate(() => window.firstflight.transfers.b.rounds.map(({ name, fromNs }) => [name, Math.round(fromNs / 1e6)]));
  // A round begins an RTT and the transmission of a segment after the one before.
  assert.deepEqual(await names(), [["handshake", 0], ["first flight", 60], ["round 2", 101], ["round 3", 143]]);
  const reports = async (fragment) => (await opened(t, fragment)).evaluate(() => window.firstflight.transfers.b.reports.map(({ what }) => what));
  assert.deepEqual(await reports(""), ["slow start ends (ack train)"]);
  assert.equal((await reports("#size_bytes=2000000"))[0], "slow start ends (ack train)");
  assert.deepEqual((await reports("#size_bytes=2000000&lose=8")).slice(0, 2), ["slow start ends (loss)", "recovered"]);
});

/** Pixels of a ladder that have the color of the setting, left and right of a share of its width. */
const inked = (tab, share) =>
  tab.$eval(
    "#ladder-b",
    (canvas, at) => {
      const { width, height } = canvas;
      const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const { data } = copy.getImageData(0, 0, width, height);
      const found = [0, 0];
      for (let index = 0; index < data.length; index += 4) if (data[index + 2] > 120 && data[index] < 60) found[(index / 4) % width < at * width ? 0 : 1]++;
      return found;
    },
    share,
  );

test("time can be played and scrubbed, and for those who want no motion each press is a step", async (t) => {
  const tab = await opened(t);
  const [, whole] = await inked(tab, 0.5);
  await tab.$eval("#sweep", (slider) => {
    slider.value = "300";
    slider.dispatchEvent(new Event("input"));
  });
  const [left, right] = await inked(tab, 0.5);
  assert.ok(left > 0 && whole > 0 && right === 0);
  assert.match(await text(tab, "#story"), /^At [\d.]+ ms\. A: .* delivered, [\d.]+ segments cwnd, \d+ packets? waiting\. B: /);
  await tab.click("#play");
  await tab.waitForFunction(() => Number(document.getElementById("sweep").value) > 320);
  await tab.click("#play");
  await tab.emulateMediaFeatures([{ name: "prefers-reduced-motion", value: "reduce" }]);
  const before = Number(await tab.$eval("#sweep", ({ value }) => value));
  await tab.click("#play");
  assert.equal(Number(await tab.$eval("#sweep", ({ value }) => value)), Math.min(1000, before + 50));
});

test("what lies out of view has no words that would be cut", async (t) => {
  const tab = await opened(t);
  // A's slow start ends with an ACK of its last bytes.
  const [a, b] = await tab.evaluate(() => ["a", "b"].map((side) => window.firstflight.transfers[side].reports.at(-1).atNs - window.firstflight.view.toNs));
  assert.ok(a > 0 && b < 0, `${a} ns, ${b} ns`);
  const words = await given(tab, "svg");
  assert.equal(words.match(/>slow start ends/g).length, 2, words.match(/>slow start ends/g).length);
  assert.equal(words.match(/>complete</g).length, 4);
});

test("a drag brings what it covers into view", async (t) => {
  const tab = await opened(t);
  const { x, y, width } = await tab.$eval("#ladder-b", (found) => (({ x, y, width }) => ({ x, y, width }))(found.getBoundingClientRect()));
  const { toNs } = await tab.evaluate(() => window.firstflight.view);
  await tab.mouse.move(x + 60, y + 50);
  await tab.mouse.down();
  await tab.mouse.move(x + 60 + (width - 74) / 2, y + 50);
  await tab.mouse.up();
  const view = await tab.evaluate(() => window.firstflight.view);
  assert.ok(view.fromNs < 0.01 * toNs && Math.abs(view.toNs - toNs / 2) < 0.01 * toNs, JSON.stringify(view));
});

test("many segments are drawn as bars, and as lines again when they are few in view", async (t) => {
  const tab = await opened(t, "#size_bytes=3000000");
  assert.match(await given(tab, "svg"), /Bars: segments in [\d.]+ ms, at most \d+; queue, at most 100\. Zoom in to see each\./);
  await tab.focus("#ladder-b");
  for (let step = 0; step < 4; step++) await tab.keyboard.press("+");
  assert.doesNotMatch(await given(tab, "svg"), /Bars: segments/);
});

/** The content of the file that a button gives. */
const given = (tab, id) =>
  tab.evaluate(async (button) => {
    const { createObjectURL } = URL;
    const saved = new Promise((resolve) => (URL.createObjectURL = (blob) => (resolve(blob), createObjectURL(blob))));
    HTMLAnchorElement.prototype.click = () => undefined;
    document.getElementById(button).click();
    return (await saved).text();
  }, id);

test("the drawings and segments can be taken away, and Reset is the opening", async (t) => {
  const tab = await opened(t, "#a.iw=20&loss_percent=1");
  await seeded(tab);
  const svg = await given(tab, "svg");
  const [problem, words] = await tab.evaluate((text) => {
    const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
    return [parsed.querySelector("parsererror")?.textContent ?? "", [...parsed.querySelectorAll("text")].map(({ textContent }) => textContent)];
  }, svg);
  assert.equal(problem, "");
  assert.match(words.join(" "), /^A: IW 20: median .* sender .* receiver/);
  assert.match(await given(tab, "png"), /^.PNG/);
  const lines = (await given(tab, "csv")).trim().split("\n");
  assert.match(lines[0], /^setting,time_ns,event,/);
  const [times] = await tab.evaluate(() => ["a", "b"].map((side) => window.firstflight.rows(side, ["time_ns"])[0].length));
  assert.equal(lines.filter((line) => line.startsWith("a,")).length, times);
  await tab.click("#reset");
  assert.match(await text(tab, "#verdict"), /^A: IW 3: 274\.3 ms\. /);
  await tab.waitForFunction(() => location.hash === "");
});

test("the scenario and its command are those of the knobs", async (t) => {
  const taken = [];
  for (const fragment of JSON.parse(FRAGMENTS ?? "[]")) {
    const tab = await opened(t, fragment);
    await tab.waitForFunction(() => document.getElementById("command").textContent !== "");
    taken.push({ toml: await given(tab, "toml"), command: await text(tab, "#command"), completion_ns: [await completion(tab, "a"), await completion(tab, "b")] });
  }
  if (TAKEN !== undefined) writeFileSync(TAKEN, JSON.stringify(taken));
});

/** Top and bottom of elements in the window. */
const places = (tab, ids) => tab.evaluate((all) => Object.fromEntries(all.map((id) => [id, (({ top, bottom }) => [top, bottom])(document.getElementById(id).getBoundingClientRect())])), ids);

test("at 1280 by 800 the verdict, both ladders and the first knobs are visible together", async (t) => {
  const tab = await opened(t, "", { height: 800 });
  const found = await places(tab, ["verdict", "ladder-a", "ladder-b", "path-network", "path-size_bytes", "path-rate_bps", "path-rtt_ms", "a-iw", "b-iw"]);
  for (const [id, [top, bottom]] of Object.entries(found)) assert.ok(top >= 0 && bottom <= 800, `${id}: ${top} to ${bottom}`);
});

test("at 360 px the ladder begins within 500 px and the verdict stays in view", async (t) => {
  const tab = await opened(t, "", { width: 360, height: 740 });
  assert.ok((await places(tab, ["ladder-a"]))["ladder-a"][0] <= 500);
  await tab.evaluate(() => document.getElementById("sizes").scrollIntoView());
  const [top, bottom] = (await places(tab, ["verdict"])).verdict;
  assert.ok(top >= 0 && bottom <= 740);
});

test("the ladder is within ten tabs", async (t) => {
  const tab = await opened(t);
  const focused = [];
  for (let step = 0; step < 10; step++) {
    await tab.keyboard.press("Tab");
    focused.push(await tab.evaluate(() => document.activeElement.id));
  }
  assert.ok(focused.includes("ladder-a"), focused.join(", "));
});

for (const width of [1280, 360]) {
  test(`hovering moves nothing at ${width} px, and each story fits its place`, async (t) => {
    const tab = await opened(t, "#lose=3&size_bytes=60000", { width });
    const ids = ["ladder-a", "ladder-b", "delivered", "sizes", "cloud", "knobs", "answer"];
    const all = async () => [await places(tab, ids), await tab.evaluate(() => document.documentElement.scrollHeight)];
    await tab.waitForSelector("#sizes[data-done]");
    const before = await all();
    for (const canvas of ["ladder-b", "cwnd"]) {
      const { x, y, width } = await tab.$eval(`#${canvas}`, (found) => (({ x, y, width }) => ({ x, y, width }))(found.getBoundingClientRect()));
      for (let step = 4; step < 20; step++) {
        await tab.mouse.move(x + (width * step) / 20, y + 60);
        assert.deepEqual(await all(), before);
      }
    }
    await tab.focus("#ladder-b");
    for (let step = 0; step < 60; step++) {
      await tab.keyboard.press("ArrowRight");
      const [needs, has, says] = await tab.$eval("#story", (story) => [story.scrollHeight, story.clientHeight, story.textContent]);
      assert.ok(needs <= has, `${needs} px in ${has}: ${says}`);
    }
  });
}

/** CIELAB of a color, as seen with full color vision and, by Machado et al. (2009), with deuteranopia and protanopia. */
const VISIONS = [
  [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
];
const product = (matrix, vector) => matrix.map((row) => row.reduce((sum, factor, index) => sum + factor * vector[index], 0));
function lab(color, vision) {
  const linear = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  const seen = product(vision, linear).map((part) => Math.min(1, Math.max(0, part)));
  const toXyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]];
  const [x, y, z] = product(toXyz, seen).map((part, index) => Math.cbrt(part / [0.95047, 1, 1.08883][index]));
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

for (const scheme of ["light", "dark"]) {
  test(`A, B, losses and TLS are told apart by readers who do not see red or green, ${scheme}`, async (t) => {
    const tab = await opened(t, "", { scheme });
    const colors = await tab.evaluate(() => ["a", "b", "alarm", "tls"].map((name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()));
    for (const vision of VISIONS) {
      const seen = colors.map((color) => lab(color, vision));
      seen.forEach((one, index) => seen.slice(index + 1).forEach((other) => assert.ok(Math.hypot(...one.map((part, at) => part - other[at])) >= 25, `${colors}`)));
    }
  });
}

for (const [width, scheme] of [[1280, "light"], [1280, "dark"], [768, "dark"], [390, "light"], [360, "light"], [360, "dark"]]) {
  test(`axe finds nothing and nothing is cut off at ${width} px, ${scheme}`, async (t) => {
    const tab = await opened(t, "#b.chain=ml-dsa-65&loss_percent=1&neighbor=call", { width, scheme });
    await tab.$eval("details", (more) => (more.open = true));
    await seeded(tab);
    assert.ok((await tab.evaluate(() => document.documentElement.scrollWidth)) <= width);
    if (SCREENSHOTS !== undefined) await tab.screenshot({ path: `${SCREENSHOTS}/explorer-${width}-${scheme}.png`, fullPage: true });
    // By the debugger's door: the page's policy lets no other script in.
    await tab.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
    const { violations } = await tab.evaluate(() => window.axe.run());
    assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]), []);
  });
}
