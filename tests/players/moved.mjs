// Plays a live stream in Chromium with hls.js, through a balancer without stickiness, while the node of the stream dies: no request fails, no
// playlist of variants is loaded again, and how long playback stands still.
// Usage: node moved.mjs BASE_URL STREAM_PATH SECONDS_BEFORE SECONDS_AFTER COMMAND...
// COMMAND kills the node.

import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [base, stream, before, after, ...kill] = process.argv.slice(2);
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'players-')), {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
});
const sleep = ms => new Promise(r => setTimeout(r, ms));
const page = await browser.newPage();
const seen = { replies: 0, variants: 0, runs: new Set(), wrong: [], broken: [] };
page.on('response', r => {
  const path = new URL(r.url()).pathname;
  if (!path.startsWith(`/${stream}/`)) return;
  seen.replies += 1;
  if (path === `/${stream}/index.m3u8`) seen.variants += 1;
  const run = path.split('/').find(part => part.startsWith('~'));
  if (run) seen.runs.add(run);
  if (r.status() >= 400) seen.wrong.push(`${r.status()} ${path}`);
});
page.on('requestfailed', r => seen.broken.push(`${new URL(r.url()).pathname} ${r.failure()?.errorText}`));
await page.goto(base);
await page.waitForFunction(() => window.millpond && window.millpond.ready);
await page.evaluate(([path, e]) => window.millpond.load(path, e), [stream, 'hls']);
await page.waitForFunction(() => document.querySelector('video').currentTime > 0 && !document.querySelector('video').paused, null, { timeout: 60000 });
// The longest time for which the position stands still, and how far it came.
await page.evaluate(() => {
  const video = document.querySelector('video');
  const seen = { at: performance.now(), time: video.currentTime, worst: 0 };
  window.seen = seen;
  setInterval(() => {
    const now = performance.now();
    if (video.currentTime !== seen.time) { seen.time = video.currentTime; seen.at = now; }
    seen.worst = Math.max(seen.worst, now - seen.at);
  }, 20);
});
await sleep(Number(before) * 1000);
const calm = await page.evaluate(() => { const { worst } = window.seen; window.seen.worst = 0; return worst; });
const first = await page.evaluate(() => document.querySelector('video').currentTime);
execFileSync(kill[0], kill.slice(1));
await sleep(Number(after) * 1000);
const { time, problem } = await page.evaluate(() => window.millpond.engineState());
const worst = await page.evaluate(() => window.seen.worst);
const played = time - first;
// A busy machine stands still before the kill too: a measurement asks for less.
const most = Number(process.env.MOVED_MOST ?? 15000);
const is_well = !problem && seen.wrong.length === 0 && seen.variants === 1 && seen.runs.size === 1 && worst < most && played > Number(after) - most / 1000 - 5;
console.log(`hls.js ${is_well ? 'ok' : 'FAILED'}: ${seen.replies} replies, ${seen.wrong.length} errors, ${seen.broken.length} broken off, ${seen.runs.size} runs,`
  + ` playlist of variants ${seen.variants} times; longest standstill ${calm.toFixed(0)} ms before, ${worst.toFixed(0)} ms after the end of the node; played ${played.toFixed(1)} of ${after} s`
  + ` ${problem ?? ''} ${seen.wrong.slice(0, 5).join('; ')} ${seen.broken.slice(0, 5).join('; ')}`);
await browser.close();
console.log(is_well ? '1 passed, 0 failed' : '0 passed, 1 failed');
process.exit(is_well ? 0 : 1);
