// Plays encrypted assets by ClearKey in Chromium: with dash.js and Shaka by DASH, with Shaka and hls.js by HLS.
// Usage: node encrypted.mjs BASE_URL ASSET... [--shots FOLDER] [--engine NAME]
// The server has each asset in the places `films` (key-uri = "/keys/{kid}") and `clearkey` (with the key format of that system).

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { chromium } from 'playwright-core';

const args = process.argv.slice(2);
const shotsAt = args.indexOf('--shots');
const shots = shotsAt >= 0 ? args.splice(shotsAt, 2)[1] : undefined;
const engineAt = args.indexOf('--engine');
const only = engineAt >= 0 ? args.splice(engineAt, 2)[1] : undefined;
const [base, ...assets] = args;
const KID = '0123456789abcdef0123456789abcdef';
const KEY = '00112233445566778899aabbccddeeff';
const base64url = hex => Buffer.from(hex, 'hex').toString('base64url');
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'encrypted-')), {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  viewport: { width: 640, height: 400 },
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
});

// Each begins to play and gives nothing; `window.failed` has what went wrong.
const engines = {
  'dash.js': { script: 'dash.all.min.js', place: 'films', manifest: 'index.mpd', start: async (url, keys) => {
    const player = window.dashjs.MediaPlayer().create();
    player.on('error', event => { window.failed = JSON.stringify(event.error); });
    player.initialize();
    player.setProtectionData({ 'org.w3.clearkey': { clearkeys: keys.base64 } });
    player.attachView(document.querySelector('video'));
    player.attachSource(url);
  } },
  'Shaka, DASH': { script: 'shaka-player.compiled.js', place: 'films', manifest: 'index.mpd', start: async (url, keys) => {
    const player = new window.shaka.Player();
    await player.attach(document.querySelector('video'));
    player.addEventListener('error', event => { window.failed = `Shaka ${event.detail.code} ${event.detail.data}`; });
    player.configure({ drm: { clearKeys: keys.hex } });
    await player.load(url);
  } },
  // It fetches the key from the address in the playlist.
  'Shaka, HLS': { script: 'shaka-player.compiled.js', place: 'films', manifest: 'index.m3u8', start: async url => {
    const player = new window.shaka.Player();
    await player.attach(document.querySelector('video'));
    player.addEventListener('error', event => { window.failed = `Shaka ${event.detail.code} ${event.detail.data}`; });
    await player.load(url);
  } },
  'hls.js': { script: 'hls.min.js', place: 'clearkey', manifest: 'index.m3u8', start: async url => {
    const player = new window.Hls({ emeEnabled: true, drmSystems: { 'org.w3.clearkey': { licenseUrl: '/keys/license' } } });
    player.on('hlsError', (_, data) => { if (data.fatal) window.failed = `${data.details} ${data.error}`; });
    player.loadSource(url);
    player.attachMedia(document.querySelector('video'));
  } },
};

async function until(what, probe, seconds = 60) {
  const end = Date.now() + seconds * 1000;
  while (Date.now() < end) {
    if (await probe()) return;
    await new Promise(r => setTimeout(r, 100));
  }
  throw new Error(`${what}: not within ${seconds} s`);
}

// Whether what is on the screen has colours: a picture that was not decrypted is green or grey, or isn't there. Pages can't
// read pictures of encrypted media, so another page looks at a screenshot.
async function hasColours(page) {
  const shot = (await page.screenshot({ clip: { x: 0, y: 0, width: 640, height: 360 } })).toString('base64');
  const other = await browser.newPage();
  try {
    return await other.evaluate(async png => {
      const image = new Image();
      image.src = `data:image/png;base64,${png}`;
      await image.decode();
      const context = new OffscreenCanvas(64, 36).getContext('2d');
      context.drawImage(image, 0, 0, 64, 36);
      const { data } = context.getImageData(0, 0, 64, 36);
      const colours = new Set();
      for (let i = 0; i < data.length; i += 4) colours.add(`${data[i] >> 6} ${data[i + 1] >> 6} ${data[i + 2] >> 6}`);
      return colours.size >= 8;
    }, shot);
  } finally {
    await other.close();
  }
}

async function play(name, engine, asset) {
  const page = await browser.newPage();
  try {
    let asked = 0;
    await page.route('**/keys/*', route => {
      asked += 1;
      const keys = [{ kty: 'oct', kid: base64url(KID), k: base64url(KEY) }];
      return route.request().url().endsWith('/license')
        ? route.fulfill({ status: 200, contentType: 'application/json', body: JSON.stringify({ keys, type: 'temporary' }) })
        : route.fulfill({ status: 200, contentType: 'application/octet-stream', body: Buffer.from(KEY, 'hex') });
    });
    await page.goto(base);
    await page.evaluate(() => { document.body.innerHTML = '<video muted autoplay style="position:fixed;left:0;top:0;width:640px;height:360px"></video>'; });
    await page.addScriptTag({ url: `${base}/.millpond/vendor/${engine.script}` });
    const keys = { hex: { [KID]: KEY }, base64: { [base64url(KID)]: base64url(KEY) } };
    const url = `${base}/${engine.place}/${asset}/${engine.manifest}`;
    const started = page.evaluate(([start, url, keys]) => new Function(`return (${start})(...arguments)`)(url, keys),
      [engine.start.toString(), url, keys]);
    await started;
    await page.evaluate(() => document.querySelector('video').play().catch(() => {}));
    const time = () => page.evaluate(() => {
      if (window.failed) throw new Error(window.failed);
      return document.querySelector('video').currentTime;
    });
    await until('2 s of playback', async () => (await time()) > 2);
    await page.evaluate(() => { document.querySelector('video').currentTime = 7; });
    await until('playback after a seek', async () => (await time()) > 7.5);
    if (!(await hasColours(page))) throw new Error('the picture has no colours');
    if (!(await page.evaluate(() => !!document.querySelector('video').mediaKeys))) throw new Error('nothing was decrypted');
    if (shots) await page.screenshot({ path: join(shots, `${basename(asset)}-${name.replace(/\W+/g, '-')}.png`) });
    return asked;
  } finally {
    await page.close();
  }
}

let passed = 0;
let failed = 0;
for (const asset of assets) {
  const init = Buffer.from(await (await fetch(`${base}/films/${asset}/v1/init.mp4`)).arrayBuffer());
  for (const [name, engine] of Object.entries(engines).filter(([name]) => !only || name === only)) {
    // It begins with the header that Chromium finds in the init segment.
    if (name === 'hls.js' && !init.includes('pssh')) {
      console.log(`${asset.padEnd(22)} ${name.padEnd(12)} SKIPPED: the file has no pssh`);
      continue;
    }
    try {
      const asked = await play(name, engine, asset);
      passed += 1;
      console.log(`${asset.padEnd(22)} ${name.padEnd(12)} ok, keys asked for ${asked} times`);
    } catch (error) {
      failed += 1;
      console.log(`${asset.padEnd(22)} ${name.padEnd(12)} FAILED ${error.message.split('\n')[0]}`);
    }
  }
}
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
