// Plays a title in Chromium with every player of the page while its node dies: no error, and how long playback stands still.
// Usage: node failover.mjs BASE_URL ASSET_PATH KILL_URL SECONDS
// BASE_URL is a node that stays, KILL_URL kills the other one when it is fetched. All players play in tabs of their own at once.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [base, asset, kill, seconds] = process.argv.slice(2);
const engines = (process.env.ENGINES || 'hls,hls-ts,dash,shaka,shaka-hls').split(',');
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'players-')), {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required',
    '--disable-background-timer-throttling', '--disable-renderer-backgrounding',
    '--disable-backgrounding-occluded-windows'],
});
const sleep = ms => new Promise(r => setTimeout(r, ms));
let passed = 0;
let failed = 0;

const tabs = [];
for (const engine of engines) {
  const page = await browser.newPage();
  const hosts = {};
  const broken = [];
  page.on('request', r => { const host = new URL(r.url()).host; hosts[host] = (hosts[host] || 0) + 1; });
  page.on('requestfailed', r => broken.push(`${new URL(r.url()).pathname} ${r.failure()?.errorText}`));
  await page.goto(base);
  await page.waitForFunction(() => window.millpond && window.millpond.ready);
  await page.evaluate(([path, e]) => window.millpond.load(path, e), [asset, engine]);
  // The longest time for which the position stands still.
  await page.evaluate(() => {
    const video = document.querySelector('video');
    const seen = { at: performance.now(), time: video.currentTime, worst: 0 };
    window.seen = seen;
    setInterval(() => {
      const now = performance.now();
      if (video.currentTime !== seen.time || video.ended) { seen.time = video.currentTime; seen.at = now; }
      seen.worst = Math.max(seen.worst, now - seen.at);
    }, 20);
  });
  tabs.push({ engine, page, hosts, broken });
}
await sleep(4000);
for (const { page } of tabs) await page.evaluate(() => { window.seen.worst = 0; });
const before = tabs.map(({ broken }) => broken.length);
await fetch(kill);
await sleep(Number(seconds) * 1000);
for (const [index, { engine, page, hosts, broken }] of tabs.entries()) {
  const { time, problem } = await page.evaluate(() => window.millpond.engineState());
  const stall = await page.evaluate(() => window.seen.worst);
  const is_well = !problem && stall < 1000 && time > Number(seconds);
  is_well ? passed += 1 : failed += 1;
  console.log(`${engine.padEnd(10)} ${is_well ? 'ok' : 'FAILED'}: longest standstill ${stall.toFixed(0)} ms, at ${time.toFixed(1)} s,`
    + ` failed requests ${broken.length - before[index]}, hosts ${JSON.stringify(hosts)} ${problem ?? ''} ${broken.slice(-2).join('; ')}`);
}
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
