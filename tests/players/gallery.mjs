// Measures the page over an emulated link, in a new profile: bytes, requests and time until the first row, the first poster and the first
// picture of a title; layout shifts, long tasks, the longest frame while scrolling, and the time of a search.
// Usage: node gallery.mjs BASE_URL FOLDER TITLE WORD KBITS LATENCY_MS
// WORD is a search that finds something. The last line is JSON; a link of 0 kbit/s is the machine's own.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [base, folder, title, word, kbits, latency] = process.argv.slice(2);
const PATIENCE = 60000;
// Wheel turns through the gallery, their distance in pixels, and milliseconds between them.
const TURNS = 100;
const STEP = 400;
const TURN = 30;

const profile = mkdtempSync(join(tmpdir(), 'gallery-'));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  viewport: { width: 1280, height: 800 },
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
});
browser.setDefaultTimeout(PATIENCE);
const page = await browser.newPage();

// Times of requests and of the ends of responses, in the clock of the page, with URLs and bytes.
const traffic = { sent: [], got: [], ahead: null };
const session = await browser.newCDPSession(page);
session.on('Network.requestWillBeSent', ({ request, timestamp, wallTime }) => {
  traffic.ahead ??= wallTime - timestamp;
  if (/^http/.test(request.url)) traffic.sent.push({ at: 1000 * (timestamp + traffic.ahead), url: request.url });
});
// The length at the end of a response includes its header fields.
session.on('Network.loadingFinished', ({ timestamp, encodedDataLength }) => traffic.got.push({ at: 1000 * (timestamp + traffic.ahead), bytes: encodedDataLength }));
await session.send('Network.enable');
if (Number(kbits)) {
  const bytes = Number(kbits) * 1000 / 8;
  await session.send('Network.emulateNetworkConditions', { offline: false, latency: Number(latency), downloadThroughput: bytes, uploadThroughput: bytes });
}

// Requests that were sent, and bytes of responses that ended, between two times.
function between(from, to) {
  const within = ({ at }) => at >= from && at <= to;
  return { requests: traffic.sent.filter(within).length, bytes: traffic.got.filter(within).reduce((sum, { bytes }) => sum + bytes, 0) };
}

await page.addInitScript(() => {
  window.measured = { shift: 0, tasks: [], row: 0, poster: 0 };
  new PerformanceObserver(all => {
    for (const entry of all.getEntries()) if (!entry.hadRecentInput) window.measured.shift += entry.value;
  }).observe({ type: 'layout-shift', buffered: true });
  new PerformanceObserver(all => {
    for (const { startTime, duration } of all.getEntries()) window.measured.tasks.push({ at: performance.timeOrigin + startTime, lasts: duration });
  }).observe({ type: 'longtask', buffered: true });
  const look = new MutationObserver(() => {
    for (const [name, of] of [['row', '#list li'], ['poster', '#list canvas']]) {
      if (window.measured[name] || !document.querySelector(of)) continue;
      window.measured[name] = Infinity;
      requestAnimationFrame(() => { window.measured[name] = performance.timeOrigin + performance.now(); });
    }
  });
  look.observe(document, { childList: true, subtree: true });
});

const measured = () => page.evaluate(() => window.measured);
const when = name => page.waitForFunction(of => Number.isFinite(window.measured[of]) && window.measured[of] > 0, name);
const long = (tasks, from, to) => {
  const lasts = tasks.filter(({ at }) => at >= from && at <= to).map(task => Math.round(task.lasts));
  return { number: lasts.length, longest: Math.max(0, ...lasts) };
};

const found = {};
try {
  await page.goto(`${base}/#folder=${encodeURIComponent(folder)}`, { waitUntil: 'commit' });
  const begun = await page.evaluate(() => performance.timeOrigin);
  await when('row');
  await when('poster');
  await page.waitForTimeout(1000);
  const { row, poster, shift, tasks } = await measured();
  Object.assign(found, {
    row: { ms: Math.round(row - begun), ...between(begun, row) },
    poster: { ms: Math.round(poster - begun), ...between(begun, poster) },
    shift, tasks: long(tasks, begun, poster),
  });

  // A search, from its last letter to its rows.
  await page.locator('#filter').fill(word.slice(0, -1));
  await page.waitForFunction(() => /found/.test(document.getElementById('list-note').textContent));
  const typed = Date.now();
  await page.locator('#filter').press(word.at(-1));
  await page.waitForFunction(of => new URLSearchParams(location.hash.slice(1)).get('q') === of && /found/.test(document.getElementById('list-note').textContent)
    && document.querySelector('#list li'), word, { polling: 'raf' });
  found.search = { ms: Date.now() - typed };
  await page.locator('#filter').fill('');
  await page.locator(`#list button[data-path="${title}"]`).waitFor();

  // Scrolling through the gallery, as fast as a wheel turns.
  const from = Date.now();
  await page.evaluate(() => {
    window.measured.frame = 0;
    let last = performance.now();
    const next = now => {
      window.measured.frame = Math.max(window.measured.frame, now - last);
      last = now;
      if (window.measured.isScrolling) requestAnimationFrame(next);
    };
    window.measured.isScrolling = true;
    requestAnimationFrame(next);
  });
  await page.mouse.move(640, 600);
  for (let turn = 0; turn < TURNS; turn += 1) {
    await page.mouse.wheel(0, STEP);
    await page.waitForTimeout(TURN);
  }
  const scrolled = await page.evaluate(() => {
    window.measured.isScrolling = false;
    return { ...window.measured, cards: document.querySelectorAll('#list li').length };
  });
  found.scroll = { cards: scrolled.cards, frame: Math.round(scrolled.frame), tasks: long(scrolled.tasks, from, Date.now()) };

  // A title, from the click to its first picture.
  await page.evaluate(() => scrollTo(0, 0));
  await page.waitForTimeout(1000);
  const before = (await measured()).shift;
  const clicked = Date.now();
  await page.locator(`#list button[data-path="${title}"]`).click();
  await page.waitForFunction(() => document.querySelector('video').readyState >= 2, null, { polling: 'raf' });
  const shown = Date.now();
  const { problem } = await page.evaluate(() => window.millpond.engineState());
  if (problem) throw new Error(problem);
  await page.waitForTimeout(1000);
  const after = await measured();
  found.picture = { ms: shown - clicked, ...between(clicked, shown), shift: after.shift - before, tasks: long(after.tasks, clicked, shown) };
} catch (error) {
  found.failed = error.message.split('\n')[0];
}
await browser.close();
rmSync(profile, { recursive: true, force: true });
console.log(JSON.stringify(found));
process.exit(found.failed ? 1 : 0);
