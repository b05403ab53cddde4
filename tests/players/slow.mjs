// Opens the page over a slow link, 400 kbit/s with 400 ms of latency: the time to the first row, and the requests and bytes until then.
// Nothing that plays is loaded before somebody plays, and then one player only.
// Usage: node slow.mjs PAGE_URL ROW FILM [SCREENSHOT_FOLDER]
// ROW is the path of a row that the page shows first, FILM that of a film.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [base, first, film, shots] = process.argv.slice(2);
const LINK = { offline: false, latency: 400, downloadThroughput: 400_000 / 8, uploadThroughput: 400_000 / 8 };
// Quiet machines take less than 2 s. Busy ones must not fail here.
const PATIENCE = 6000;
// Requests until the first row: the document, then one listing, or two where the only folder opens by itself.
const REQUESTS = 3;
// Bytes until then, with header fields.
const BYTES = 20_000;

let passed = 0;
let failed = 0;

async function step(what, run) {
  const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'slow-')), {
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    headless: true,
    viewport: { width: 1280, height: 800 },
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
  });
  browser.setDefaultTimeout(60000);
  const page = await browser.newPage();
  const session = await browser.newCDPSession(page);
  const traffic = { urls: [], bytes: 0 };
  session.on('Network.requestWillBeSent', ({ request }) => { if (/^http/.test(request.url)) traffic.urls.push(request.url); });
  session.on('Network.loadingFinished', ({ encodedDataLength }) => { traffic.bytes += encodedDataLength; });
  await session.send('Network.enable');
  await session.send('Network.emulateNetworkConditions', LINK);
  try {
    const note = await run(page, traffic, browser);
    passed += 1;
    console.log(`slow link  ${what.padEnd(34)} ok ${note ?? ''}`);
  } catch (error) {
    failed += 1;
    console.log(`slow link  ${what.padEnd(34)} FAILED ${error.message.split('\n')[0]}`);
  }
  await browser.close();
}

const isScript = url => /\.js$/.test(new URL(url).pathname);
const names = urls => urls.map(url => url.replace(/^.*\//, '')).join(', ');
const shot = (page, of) => shots && page.screenshot({ path: join(shots, `slow-${of}.png`), fullPage: true });

// Opens the page and waits for a row. Resolves with the milliseconds, as the page's own clock has them.
async function open(page) {
  // The time of the row is taken in the page: the debugger adds its own.
  await page.addInitScript(path => {
    const look = new MutationObserver(() => {
      if (!document.querySelector(`#list button[data-path="${path}"]`)) return;
      look.disconnect();
      requestAnimationFrame(() => { window.rowAfter = performance.now(); });
    });
    look.observe(document, { childList: true, subtree: true });
  }, first);
  await page.goto(base, { waitUntil: 'commit' });
  await page.waitForFunction(() => window.rowAfter, null, { timeout: 60000 });
  const ms = await page.evaluate(() => window.rowAfter);
  if (ms > PATIENCE) throw new Error(`the first row after ${Math.round(ms)} ms`);
  return ms;
}

await step('the first row', async (page, traffic) => {
  const ms = await open(page);
  const { bytes } = traffic;
  const urls = [...traffic.urls];
  await shot(page, 'first-row');
  // Rows in view ask for their durations and posters as soon as they are there.
  const needed = urls.filter(url => !/\/\.millpond\/brief|player\.(?:js|css)$/.test(url));
  if (needed.length > REQUESTS) throw new Error(`${needed.length} requests: ${names(needed)}`);
  if (bytes > BYTES) throw new Error(`${bytes} bytes`);
  return `after ${Math.round(ms)} ms, ${needed.length} requests, ${bytes} bytes`;
});

await step('nothing that plays before playing', async (page, traffic) => {
  await open(page);
  await page.locator(`#list button[data-path="${film}"] canvas`).waitFor();
  const vendored = traffic.urls.filter(url => url.includes('/vendor/'));
  if (vendored.length) throw new Error(`loaded: ${names(vendored)}`);
  await page.locator(`#list button[data-path="${film}"]`).click();
  await page.waitForFunction(() => /loading/.test(document.getElementById('startup').textContent));
  await shot(page, 'loading');
  await page.waitForFunction(() => document.querySelector('video').readyState >= 2, null, { timeout: 120000 });
  const players = traffic.urls.filter(url => isScript(url) && url.includes('/vendor/'));
  if (names(players) !== 'hls.min.js') throw new Error(`loaded: ${names(players)}`);
  await shot(page, 'playing');
  return `then ${names(players)}`;
});

await step('the second time', async (page, traffic, browser) => {
  await open(page);
  await page.locator(`#list button[data-path="${film}"]`).click();
  await page.waitForFunction(() => document.querySelector('video').readyState >= 2, null, { timeout: 120000 });
  const again = await browser.newPage();
  const session = await browser.newCDPSession(again);
  const fetched = [];
  session.on('Network.responseReceived', ({ response }) => {
    if (isScript(response.url) && !response.fromDiskCache) fetched.push(response.url);
  });
  await session.send('Network.enable');
  await session.send('Network.emulateNetworkConditions', LINK);
  const ms = await open(again);
  await again.locator(`#list button[data-path="${film}"]`).click();
  await again.waitForFunction(() => window.Hls, null, { timeout: 120000 });
  if (fetched.length) throw new Error(`scripts were fetched again: ${names(fetched)}`);
  return `after ${Math.round(ms)} ms, no script is fetched again`;
});

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
