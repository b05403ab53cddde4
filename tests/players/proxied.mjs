// Uses the page below a sub-path of a proxy, and with a user and password in its address. No request leaves the sub-path, and
// none fails.
// Usage: node proxied.mjs NAME PAGE_URL RTSP_PORT all | few [SCREENSHOT_FOLDER]
// The server has the place `films` with one.mp4, and `cams` with the live stream one.mp4. PAGE_URL may have credentials.
// `few`: one player of each kind. Players differ in how they carry paths and credentials, proxies in little.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import jsQR from 'jsqr';
import { chromium } from 'playwright-core';

const [name, opened, rtspPort, players, shots] = process.argv.slice(2);
const { username, password, origin, pathname, hostname } = new URL(opened);
// The address without credentials, and without the slash at its end.
const base = `${origin}${pathname}`.replace(/\/$/, '');
// Proxies serve the page below a sub-path.
const isProxied = pathname !== '/';
const PATIENCE = { timeout: 60000 };

let passed = 0;
let failed = 0;

// Each step has a browser of its own: one remembers passwords for all its pages.
async function step(what, run) {
  const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'proxied-')), {
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    headless: true,
    viewport: { width: 1280, height: 1000 },
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
  });
  browser.setDefaultTimeout(60000);
  const page = await browser.newPage();
  const faults = [];
  const seen = [];
  page.on('pageerror', error => faults.push(`the page's script failed: ${error.message}`));
  page.on('console', message => { if (/Content Security Policy/.test(message.text())) faults.push(message.text()); });
  page.on('request', request => {
    const url = new URL(request.url());
    if (!/^http/.test(url.protocol)) return;
    seen.push(`${url.pathname}${url.search}`);
    if (!`${url.origin}${url.pathname}/`.startsWith(`${base}/`)) faults.push(`a request left the sub-path: ${url}`);
  });
  page.on('requestfailed', request => {
    // Streams that are not wanted any more are aborted.
    if (!/ERR_ABORTED/.test(request.failure().errorText)) faults.push(`${request.url()}: ${request.failure().errorText}`);
  });
  page.on('response', response => {
    const isAsked = response.status() === 401 && username;
    if (response.status() >= 400 && !isAsked) faults.push(`${response.status()}: ${response.url()}`);
  });
  try {
    const note = await run(page, { seen, faults });
    if (faults.length) throw new Error(faults[0]);
    passed += 1;
    console.log(`${name.padEnd(10)} ${what.padEnd(34)} ok ${note ?? ''}`);
  } catch (error) {
    failed += 1;
    console.log(`${name.padEnd(10)} ${what.padEnd(34)} FAILED ${error.message.split('\n')[0]}${faults.length ? ` (${faults[0]})` : ''}`);
    await shot(page, 'failed');
  }
  await browser.close();
}

const shot = (page, of) => shots && page.screenshot({ path: join(shots, `${name}-${of}.png`), fullPage: true });
const row = (page, path) => page.locator(`#list button[data-path="${path}"]`);
const is = (what, found, expected) => {
  if (found !== expected) throw new Error(`${what}: ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
};
// Opens what only technical people read.
const openDetails = page => page.locator('#details').evaluate(e => { e.open = true; });
// The page's address without credentials and fragment.
const address = page => `${new URL(page.url()).origin}${new URL(page.url()).pathname}`;
const isPlaying = (page, from = 1) => page.waitForFunction(at => document.querySelector('video').currentTime > at, from, PATIENCE);

// A request of a program: with the password in a header field.
async function program(url, fields = {}) {
  const basic = username ? { Authorization: `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')}` } : {};
  const reply = await fetch(url, { redirect: 'manual', headers: { ...basic, ...fields } });
  return { status: reply.status, fields: reply.headers, text: /text|json|mpegurl|xml/.test(reply.headers.get('content-type')) ? await reply.text() : (await reply.body.cancel(), '') };
}

const few = { few: 1 }[players];
for (const engine of ['hls', 'hls-ts', 'dash', 'shaka', 'shaka-hls', 'native'].slice(0, few)) {
  await step(`lists and plays: ${engine}`, async (page, { seen }) => {
    await page.goto(opened);
    await row(page, 'films/').click();
    await row(page, 'films/one.mp4').click();
    await openDetails(page);
    await page.locator('#engine').selectOption(engine);
    await isPlaying(page);
    is('problem', await page.evaluate(() => window.millpond.engineState().problem), null);
    if (engine === 'hls') {
      await row(page, 'films/one.mp4').locator('canvas').waitFor();
      await page.waitForFunction(() => seeking.times.length > 1, null, PATIENCE);
      await shot(page, 'asset');
    }
    return `${seen.length} requests`;
  });
}

for (const engine of ['stream', 'hls', 'dash'].slice(0, few)) {
  await step(`a live stream: ${engine}`, async (page, { seen }) => {
    await page.goto(`${opened}#path=cams/one.mp4&engine=${engine}`);
    await isPlaying(page, 2);
    is('player', await page.locator('#engine').inputValue(), engine);
    if (engine !== 'stream') is('the clock is asked', seen.includes(`${new URL(base).pathname.replace(/\/$/, '')}/.millpond/time`), true);
  });
}

await step('addresses are those of the browser', async (page, { faults }) => {
  await page.goto(`${opened}#path=films/one.mp4&engine=hls`);
  await isPlaying(page);
  const shown = await page.locator('#outputs a').evaluateAll(all => all.map(a => ({ text: a.textContent, href: a.href })));
  if (shown.length < 6) throw new Error(`${shown.length} addresses`);
  for (const { text, href } of shown) {
    is('the link', href, text);
    if (text.startsWith('rtsp')) {
      is('RTSP', text, `rtsp://${hostname}:${rtspPort}/films/one.mp4`);
      continue;
    }
    if (!text.startsWith(`${base}/`)) throw new Error(`${text} is not below ${base}`);
    is(text, (await program(text)).status, 200);
  }
  await openDetails(page);
  const tr = page.locator('#outputs tr', { has: page.locator('th', { hasText: /^HLS, fMP4$/ }) });
  await tr.locator('button', { hasText: 'QR' }).click();
  await page.locator('#code .note').filter({ hasText: isProxied ? 'Other devices need another address' : 'Other devices cannot reach this address' }).waitFor();
  // A proxy that tells of the client has the server keep its addresses to itself.
  is('other faults', faults.splice(0).filter(fault => fault !== `404: ${opened}.millpond/network`).join(), '');
  if (!isProxied) return;
  const { side, dark } = await page.locator('#code svg').evaluate(e => ({
    side: e.viewBox.baseVal.width, dark: [...e.querySelector('path').getAttribute('d').matchAll(/M(\d+) (\d+)/g)].map(([, x, y]) => [+x, +y]),
  }));
  const scale = 4;
  const pixels = new Uint8ClampedArray(4 * (side * scale) ** 2).fill(255);
  for (const [x, y] of dark) {
    for (let dy = 0; dy < scale; dy += 1) {
      const from = 4 * ((y * scale + dy) * side * scale + x * scale);
      for (let n = 0; n < scale; n += 1) pixels.fill(0, from + 4 * n, from + 4 * n + 3);
    }
  }
  is('QR code', jsQR(pixels, side * scale, side * scale)?.data, `${base}/films/one.mp4/index.m3u8`);
});

await step('all references are below the sub-path', async () => {
  const queue = ['films/one.mp4/index.m3u8', 'films/one.mp4/ts/index.m3u8', 'films/one.mp4/v1/thumbnails.vtt', 'cams/one.mp4/index.m3u8'].map(path => `${base}/${path}`);
  const known = new Set();
  while (queue.length) {
    const url = queue.pop();
    if (known.has(url)) continue;
    known.add(url);
    if (!url.startsWith(`${base}/`)) throw new Error(`${url} is not below ${base}`);
    const { status, text } = await program(url);
    // Segments of a live stream are evicted.
    if (status !== 200 && !(status === 404 && url.includes('/cams/'))) throw new Error(`${status}: ${url}`);
    const lines = text.startsWith('#EXTM3U') ? [...text.matchAll(/URI="([^"]+)"/g)].map(([, uri]) => uri).concat(text.split('\n').filter(line => line && !line.startsWith('#'))) : [];
    const cues = text.startsWith('WEBVTT') ? [...text.matchAll(/^(\S+)#xywh/gm)].map(([, uri]) => uri) : [];
    for (const uri of [...lines, ...cues].slice(0, 60)) queue.push(new URL(uri, url).href.split('#')[0]);
  }
  if (known.size < 20) throw new Error(`only ${known.size} addresses`);
  return `${known.size} addresses`;
});

for (const path of ['films/', 'films']) {
  await step(`the page at a folder: /${path}`, async page => {
    await page.goto(`${opened}${path}`);
    await row(page, 'films/one.mp4').click();
    await isPlaying(page);
    is('address', address(page), `${base}/`);
    is('folder', new URLSearchParams(new URL(page.url()).hash.slice(1)).get('folder'), 'films/');
    await shot(page, 'folder');
    await page.reload();
    await row(page, 'films/one.mp4').waitFor();
  });
}

await step('the page at a stream', async page => {
  await page.goto(`${opened}cams/one.mp4`);
  await isPlaying(page, 2);
  is('path', new URLSearchParams(new URL(page.url()).hash.slice(1)).get('path'), 'cams/one.mp4');
});

await step('an error has plain words and a way on', async (page, { faults }) => {
  // A wrong folder in a folder: the way to the page is two levels up.
  const reply = await page.goto(`${opened}films/none/at all.html`);
  is('status', reply.status(), 404);
  is('the fault', faults.splice(0).length, 1);
  await page.locator('h1', { hasText: 'Nothing is at this address' }).waitFor();
  await shot(page, 'error');
  await page.locator('a').click();
  await row(page, 'films/').waitFor();
  is('address', address(page), `${base}/`);
  const { status, fields } = await program(`${base}/films/none`, { Accept: '*/*' });
  is('for programs', `${status} ${fields.get('content-type')}`, '404 application/problem+json');
});

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
