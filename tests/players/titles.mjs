// Plays a stored title of an RTSP server in Chromium with every player of the page, and seeks in it.
// Usage: node titles.mjs BASE_URL TITLE_PATH SECONDS

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [base, title, seconds] = process.argv.slice(2);
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'titles-')), {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
});

async function until(what, probe, limit = 60) {
  const end = Date.now() + limit * 1000;
  while (Date.now() < end) {
    const found = await probe();
    if (found) return found;
    await new Promise(r => setTimeout(r, 100));
  }
  throw new Error(`${what}: not within ${limit} s`);
}

let failed = 0;
for (const engine of ['hls', 'dash', 'shaka']) {
  const page = await browser.newPage();
  try {
    await page.goto(base);
    await page.waitForFunction(() => window.millpond && window.millpond.ready);
    const state = () => page.evaluate(() => window.millpond.engineState());
    const started = await page.evaluate(([path, e]) => window.millpond.load(path, e), [title, engine]);
    await until('playback', async () => (await state()).time > 2);
    const duration = await page.evaluate(() => document.querySelector('video').duration);
    if (Math.abs(duration - Number(seconds)) > 1.5) throw new Error(`a duration of ${duration} s`);
    const waits = [];
    for (const at of [0.75, 0.3]) {
      const target = duration * at;
      const began = Date.now();
      await page.evaluate(time => { document.querySelector('video').currentTime = time; }, target);
      await until('playback after a seek', async () => {
        const { time } = await state();
        return time > target + 1 && time < target + 15;
      });
      waits.push(Date.now() - began);
    }
    const frames = await page.evaluate(() => document.querySelector('video').getVideoPlaybackQuality().totalVideoFrames);
    const { problem } = await state();
    if (problem) throw new Error(problem);
    console.log(`${engine.padEnd(6)} ok: begins after ${started} ms, plays 1 s behind a seek after ${waits.join(' and ')} ms, ${frames} pictures`);
  } catch (error) {
    failed += 1;
    console.log(`${engine.padEnd(6)} FAILED ${error.message.split('\n')[0]}`);
  }
  await page.close();
}
await browser.close();
process.exit(failed ? 1 : 0);
