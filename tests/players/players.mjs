// Plays an asset in Chromium with every player of the page: startup, seek, renditions, languages, subtitles.
// Usage: node players.mjs BASE_URL ASSET_PATH [SCREENSHOT_FOLDER]

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [base, asset, shots] = process.argv.slice(2);
const engines = ['hls', 'hls-ts', 'dash', 'shaka', 'shaka-hls'];
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'players-')), {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  viewport: { width: 1280, height: 1000 },
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
});

let passed = 0;
let failed = 0;
const foreign = new Set();

async function until(what, probe, seconds = 60) {
  const end = Date.now() + seconds * 1000;
  let last;
  while (Date.now() < end) {
    last = await probe();
    if (last) return last;
    await new Promise(r => setTimeout(r, 100));
  }
  throw new Error(`${what}: not within ${seconds} s`);
}

async function step(engine, name, run) {
  try {
    const note = await run();
    passed += 1;
    console.log(`${engine.padEnd(10)} ${name.padEnd(20)} ok ${note ?? ''}`);
    return true;
  } catch (error) {
    failed += 1;
    console.log(`${engine.padEnd(10)} ${name.padEnd(20)} FAILED ${error.message.split('\n')[0]}`);
    return false;
  }
}

for (const engine of engines) {
  const page = await browser.newPage();
  const requests = [];
  page.on('request', r => {
    requests.push(r.url());
    if (!r.url().startsWith(base) && !r.url().startsWith('data:') && !r.url().startsWith('blob:')) foreign.add(r.url());
  });
  await page.goto(base);
  await page.waitForFunction(() => window.millpond && window.millpond.ready);
  const state = () => page.evaluate(() => window.millpond.engineState());
  const moves = async (from, what) => until(what, async () => (await state()).time > from);
  // One thing after the other: in the moment of a seek dash.js sometimes loses a text track that is chosen, and hls.js shows TS of
  // another rendition with the parameters of the one before.
  const ended = () => until('the end of a seek', () => page.evaluate(() => !document.querySelector('video').seeking));
  const started = await step(engine, 'startup', async () => {
    const ms = await page.evaluate(([path, e]) => window.millpond.load(path, e), [asset, engine]);
    return `${ms} ms`;
  });
  if (started) {
    await step(engine, 'plays 3 s', () => moves(3, 'playback').then(() => undefined));
    await step(engine, 'seeks and goes on', async () => {
      await page.evaluate(() => { document.querySelector('video').currentTime = 11.3; });
      await moves(12.3, 'playback after the seek');
      const { time } = await state();
      if (time > 16) throw new Error(`at ${time}`);
    });
    const { renditions, audios, texts } = await state();
    for (const [name, n] of [['switches up', renditions.length - 1], ['switches down', 0]]) {
      await step(engine, name, async () => {
        await page.evaluate(() => { document.querySelector('video').currentTime = 1; });
        await ended();
        await page.evaluate(r => window.millpond.player().setRendition(r), n);
        await until(`rendition ${n} of ${renditions}`, async () => (await state()).rendition === n);
        const wanted = n ? 600 : 400;
        await until(`picture ${n ? 'above' : 'below'} ${wanted}`, async () => (n ? (await state()).width > wanted : (await state()).width < wanted));
      });
    }
    await step(engine, 'second language', async () => {
      if (audios.length < 2) throw new Error(`only ${audios}`);
      const before = requests.length;
      await page.evaluate(() => window.millpond.player().setAudio(1));
      await until('a segment of a2', () => requests.slice(before).some(u => /\/a2\/(\d+)\.(m4s|ts)/.test(u)));
      const { time } = await state();
      await moves(time + 0.5, 'playback in the other language');
      return audios.join(', ');
    });
    await step(engine, 'subtitles', async () => {
      if (texts.length < 2) throw new Error(`only ${texts}`);
      await page.evaluate(() => { document.querySelector('video').currentTime = 1.5; });
      await ended();
      await page.evaluate(() => window.millpond.player().setText(0));
      // Where the machine is busy, playback can be past the last cue before its segment is there: then it goes back.
      await until('a cue', () => page.evaluate(() => {
        const video = document.querySelector('video');
        const shown = [...video.textTracks].some(t => t.mode !== 'disabled' && t.activeCues && t.activeCues.length);
        if (!shown && video.currentTime > 15) {
          video.currentTime = 1.5;
          video.play();
        }
        return shown || !!document.querySelector('.shaka-text-container span');
      }));
      return texts.join(', ');
    });
    if (shots) await page.screenshot({ path: join(shots, `${engine}.png`), fullPage: true });
  }
  await step(engine, 'no error', async () => {
    const { problem } = await state();
    if (problem) throw new Error(problem);
  });
  await page.close();
}
await step('all', 'nothing from outside', async () => {
  if (foreign.size) throw new Error([...foreign].join(' '));
});
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
