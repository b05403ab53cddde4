// Decodes the first seconds of assets in Chromium: init and media segments go into Media Source Extensions as they come from the
// server, without a player that could repair them; then the players of the page play the asset.
// Usage: node mse.mjs BASE_URL ASSET=KINDS[:ENGINE,ENGINE...] ...
// KINDS are those that Chromium must decode: v for video, a for audio. It must refuse the codecs of all others.
// Each ENGINE must play the asset; those that are not named must say in words why they don't.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [base, ...wanted] = process.argv.slice(2);
const engines = ['hls', 'hls-ts', 'dash', 'shaka', 'shaka-hls'];
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'mse-')), {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
});

let passed = 0;
let failed = 0;

function report(asset, name, error, note = '') {
  if (error) failed += 1; else passed += 1;
  console.log(`${asset.padEnd(20)} ${name.padEnd(10)} ${error ? `FAILED ${error}` : `ok ${note}`}`);
}

// Runs in the page: what Chromium makes of the asset's tracks, by kind.
async function decode(url) {
  const mpd = new DOMParser().parseFromString(await (await fetch(`${url}/index.mpd`)).text(), 'text/xml');
  const tracks = new Map();
  for (const set of mpd.querySelectorAll('AdaptationSet')) {
    const kind = set.getAttribute('contentType')[0];
    const one = set.querySelector('Representation');
    if ('va'.includes(kind) && !tracks.has(kind)) {
      tracks.set(kind, { id: one.getAttribute('id'), type: `${set.getAttribute('mimeType')}; codecs="${one.getAttribute('codecs')}"` });
    }
  }
  const result = {};
  const video = document.createElement('video');
  video.muted = true;
  const source = new MediaSource();
  video.src = URL.createObjectURL(source);
  await new Promise(open => source.addEventListener('sourceopen', open, { once: true }));
  const failure = new Promise((_, reject) => {
    video.addEventListener('error', () => reject(new Error(video.error.message)));
    setTimeout(() => reject(new Error(`at ${video.currentTime} s after 30 s`)), 30000);
  });
  const append = (buffer, bytes) => new Promise((resolve, reject) => {
    buffer.addEventListener('updateend', resolve, { once: true });
    buffer.addEventListener('error', () => reject(new Error('the segment was refused')), { once: true });
    buffer.appendBuffer(bytes);
  });
  const fed = [];
  for (const [kind, { id, type }] of tracks) {
    result[kind] = { type, supported: MediaSource.isTypeSupported(type) };
    if (result[kind].supported) fed.push([kind, id, source.addSourceBuffer(type)]);
  }
  const run = async () => {
    for (const [, id, buffer] of fed) {
      for (const part of ['init.mp4', '1.m4s']) {
        const reply = await fetch(`${url}/${id}/${part}`);
        if (!reply.ok) throw new Error(`${id}/${part}: ${reply.status}`);
        await append(buffer, await reply.arrayBuffer());
      }
    }
    if (!fed.length) return;
    source.endOfStream();
    await video.play();
    while (video.currentTime < 1) await new Promise(r => setTimeout(r, 50));
  };
  await Promise.race([run(), failure]);
  if (result.v) result.v.decoded = video.getVideoPlaybackQuality().totalVideoFrames;
  if (result.a) result.a.decoded = video.webkitAudioDecodedByteCount;
  return result;
}

async function bare(page, asset, kinds) {
  const found = await page.evaluate(decode, `${base}/${asset}`);
  const notes = [];
  for (const [kind, { type, supported, decoded }] of Object.entries(found)) {
    if (kinds.includes(kind) !== supported) throw new Error(`${type} is ${supported ? '' : 'not '}supported`);
    if (supported && !decoded) throw new Error(`nothing of ${type} was decoded`);
    notes.push(supported ? `${type}: ${decoded} ${kind === 'v' ? 'pictures' : 'bytes'}` : `${type} isn't decoded by Chromium`);
  }
  for (const kind of kinds) if (!found[kind]) throw new Error(`no track of kind ${kind}`);
  return notes.join(', ');
}

async function played(page, asset, engine) {
  await page.goto(base);
  await page.waitForFunction(() => window.millpond && window.millpond.ready);
  const plays = (async () => {
    await page.evaluate(([path, e]) => window.millpond.load(path, e), [asset, engine]);
    await page.waitForFunction(() => document.querySelector('video').currentTime > 1, null, { timeout: 30000 });
    return '';
  })().catch(error => error.message.split('\n')[0]);
  const problem = (async () => {
    for (;;) {
      const { problem } = await page.evaluate(() => window.millpond.engineState());
      if (problem) return problem;
      await new Promise(r => setTimeout(r, 100));
    }
  })().catch(error => error.message);
  return Promise.race([plays, problem]);
}

for (const argument of wanted) {
  const [asset, expected] = argument.split('=');
  const [kinds, names = ''] = expected.split(':');
  const page = await browser.newPage();
  await page.goto(base);
  await bare(page, asset, kinds).then(note => report(asset, 'MSE', null, note), error => report(asset, 'MSE', error.message.split('\n')[0]));
  for (const engine of engines) {
    const problem = await played(page, asset, engine);
    if (names.split(',').includes(engine)) report(asset, engine, problem);
    else report(asset, engine, problem ? null : 'it plays, which was not expected', problem);
  }
  await page.close();
}
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
