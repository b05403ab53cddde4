// Plays films of several clips, each with its own sample entry. The number of each picture is drawn in its top row, a bit in
// each tenth of its width, the lowest bit first.
// Usage: node joined.mjs BASE_URL ASSET=SECONDS=WIDTHS=ENGINES[=periods] ...
// SECONDS is the length of each clip, WIDTHS the width of the pictures of each. Pictures follow each other at 25 a second.
// dash.js may leave out the last pictures of a period.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { Doubt, withoutDoubt } from './doubt.mjs';

const [base, ...wanted] = process.argv.slice(2);
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'joined-')), {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
});

let passed = 0;
let failed = 0;

function report(asset, name, error) {
  if (error) failed += 1; else passed += 1;
  console.log(`${asset.padEnd(20)} ${name.padEnd(10)} ${error ? `FAILED ${error}` : 'ok'}`);
}

// Runs in the page: plays an asset to its end, then from the second clip back to the first one. Returns time, number and
// width of the pictures that were shown, and whether the page was told late.
async function watch([asset, engine, seconds, end]) {
  const video = document.querySelector('video');
  video.muted = true;
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [320, 32];
  const context = canvas.getContext('2d', { willReadFrequently: true });
  const seen = [];
  const note = (_, { mediaTime, width, expectedDisplayTime }) => {
    video.requestVideoFrameCallback(note);
    // The frame that is drawn is that of this moment, which a busy page reaches later than the browser's callbacks say.
    const now = performance.now();
    context.drawImage(video, 0, 0, video.videoWidth, video.videoWidth / 10, 0, 0, 320, 32);
    let number = 0;
    for (let bit = 0; bit < 10; bit += 1) if (context.getImageData(bit * 32 + 16, 16, 1, 1).data[0] > 128) number += 1 << bit;
    seen.push([mediaTime, number, width, now > expectedDisplayTime + 20]);
  };
  video.requestVideoFrameCallback(note);
  const until = async (what, test) => {
    const last = performance.now() + 30000;
    while (!test()) {
      if (video.error) throw new Error(`${what}: ${video.error.message}`);
      if (performance.now() > last) throw new Error(`${what}: at ${video.currentTime} s, ready ${video.readyState} after 30 s`);
      await new Promise(resolve => setTimeout(resolve, 20));
    }
  };
  window.millpond.load(asset, engine);
  await until('the end', () => video.currentTime > end - 0.3);
  const played = seen.splice(0);
  video.pause();
  video.currentTime = seconds - 0.8;
  await until('a seek back', () => !video.seeking && video.readyState >= 3);
  seen.splice(0);
  await video.play();
  await until('the second clip again', () => video.currentTime > seconds + 0.6);
  return { played, again: seen.splice(0) };
}

// Checks the pictures that were shown. Times of TS begin with the first decode time, so only their order counts.
function judge(seen, [from, to], widths, seconds, isTs, hasPeriods) {
  let last = -1;
  let hasty = 0;
  for (const [time, number, width, isLate] of seen) {
    const at = `picture ${number} at ${time.toFixed(3)} s`;
    if (number < last) throw new Error(`${at} after picture ${last}`);
    last = number;
    // Told late, the page draws a later picture than the one whose time it was told. On a busy machine the browser has gone on by a few
    // pictures before the page knows that it is late.
    const early = number - time * 25;
    const isAhead = !isTs && early > 0.6 && early < 5;
    hasty += isAhead && !isLate;
    if (Math.abs(early) > (isTs ? 4 : 0.6) && !(isLate && early > 0) && !isAhead) throw new Error(at);
    const expected = widths[Math.min(Math.floor(number / 25 / seconds), widths.length - 1)];
    if (width !== expected && !isLate) throw new Error(`${at} is ${width} wide, not ${expected}`);
  }
  if (4 * hasty > seen.length) throw new Doubt(`${hasty} of ${seen.length} pictures are ahead of their time`);
  const numbers = new Set(seen.map(([, number]) => number));
  const isAtJoint = second => hasPeriods && second % seconds + 0.5 > seconds;
  for (let second = from; second < to; second += 0.4) {
    if (isAtJoint(second)) continue;
    let count = 0;
    for (let n = Math.round(second * 25); n < (second + 0.4) * 25; n += 1) count += numbers.has(n);
    if (count < 4) throw new Doubt(`only ${count} pictures after ${second.toFixed(1)} s`);
  }
}

async function checked(page, asset, engine, seconds, widths, hasPeriods) {
  await page.goto(base);
  await page.waitForFunction(() => window.millpond && window.millpond.ready);
  const end = seconds * widths.length;
  const { played, again } = await page.evaluate(watch, [asset, engine, seconds, end]);
  judge(played, [1, end - 0.8], widths, seconds, engine === 'hls-ts', hasPeriods);
  judge(again, [seconds - 0.4, seconds + 0.2], widths, seconds, engine === 'hls-ts', hasPeriods);
}

for (const argument of wanted) {
  const [asset, seconds, widths, engines, periods] = argument.split('=');
  for (const engine of engines.split(',')) {
    const problem = await withoutDoubt(async () => {
      const page = await browser.newPage();
      try {
        await checked(page, asset, engine, Number(seconds), widths.split(',').map(Number), periods === 'periods');
      } finally {
        await page.close();
      }
    }).then(() => null, error => error.message.split('\n')[0]);
    report(asset, engine, problem);
  }
}
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
