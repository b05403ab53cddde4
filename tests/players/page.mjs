// Uses the page as people do: folders and search in the address, durations, RTSP addresses, HEVC, a phone, the keyboard.
// Usage: node page.mjs BASE_URL RTSP_PORT [SCREENSHOT_FOLDER]
// The place has films/one.mp4, films/series/two.mp4 and, where it could be made, films/hevc.mp4.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [base, rtspPort, shots] = process.argv.slice(2);
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'page-')), {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  viewport: { width: 1280, height: 1000 },
  permissions: ['clipboard-read', 'clipboard-write'],
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
});

let passed = 0;
let failed = 0;

async function step(name, run) {
  const page = await browser.newPage();
  const faults = [];
  page.on('pageerror', error => faults.push(error.message));
  try {
    await page.goto(base);
    const note = await run(page);
    if (faults.length) throw new Error(`the page's script failed: ${faults[0]}`);
    passed += 1;
    console.log(`page       ${name.padEnd(34)} ok ${note ?? ''}`);
  } catch (error) {
    failed += 1;
    console.log(`page       ${name.padEnd(34)} FAILED ${error.message.split('\n')[0]}`);
  }
  await page.close();
}

const row = (page, path) => page.locator(`#list button[data-path="${path}"]`);
const is = (what, found, expected) => {
  if (found !== expected) throw new Error(`${what}: ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
};
const shot = (page, name) => shots && page.screenshot({ path: join(shots, `page-${name}.png`), fullPage: true });
const hash = page => new URLSearchParams(new URL(page.url()).hash.slice(1));
const isPlaying = page => page.waitForFunction(() => document.querySelector('video').currentTime > 0.5, null, { timeout: 60000 });

await step('folders are in the address', async page => {
  // The only folder of the place opens by itself.
  await row(page, 'films/series/').click();
  await row(page, 'films/series/two.mp4').waitFor();
  is('folder', hash(page).get('folder'), 'films/series/');
  is('the row', await row(page, 'films/series/two.mp4').locator('.name').textContent(), 'two.mp4');
  await page.goBack();
  await row(page, 'films/one.mp4').waitFor();
  is('folder', hash(page).get('folder'), 'films/');
  await page.goForward();
  await row(page, 'films/series/two.mp4').waitFor();
  await page.reload();
  await row(page, 'films/series/two.mp4').waitFor();
});

await step('Back stops the asset', async page => {
  await row(page, 'films/one.mp4').click();
  await isPlaying(page);
  is('path', hash(page).get('path'), 'films/one.mp4');
  await page.goBack();
  await page.locator('#stage').waitFor({ state: 'hidden' });
  await page.waitForFunction(() => document.querySelector('video').readyState === 0 && !window.millpond.player());
  await page.goForward();
  await isPlaying(page);
  await shot(page, 'desktop');
});

await step('a search finds in all folders', async page => {
  await row(page, 'films/one.mp4').waitFor();
  await page.locator('#filter').fill('tWo');
  await row(page, 'films/series/two.mp4').waitFor();
  is('rows', await page.locator('#list button').count(), 1);
  is('q', hash(page).get('q'), 'tWo');
  await page.waitForFunction(() => /^1 found in \d+ folders\.$/.test(document.querySelector('#list-note').textContent));
  await page.reload();
  await row(page, 'films/series/two.mp4').waitFor();
  is('the field', await page.locator('#filter').inputValue(), 'tWo');
  await shot(page, 'search');
  await page.goBack();
  await row(page, 'films/one.mp4').waitFor();
  is('the field', await page.locator('#filter').inputValue(), '');
  await page.locator('#filter').fill('no such film');
  await page.waitForFunction(() => document.querySelector('#list-note').textContent.startsWith('Nothing found in '));
});

await step('rows have durations', async page => {
  await page.waitForFunction(() => /^0:\d\d, /.test(document.querySelector('#list button[data-path="films/one.mp4"] .side')?.textContent ?? ''));
  return row(page, 'films/one.mp4').locator('.side').textContent();
});

await step('RTSP addresses are copied', async page => {
  await row(page, 'films/one.mp4').click();
  const tr = page.locator('#outputs tr', { has: page.locator('th', { hasText: /^RTSP$/ }) });
  const expected = `rtsp://${new URL(base).hostname}:${rtspPort}/films/one.mp4`;
  is('address', await tr.locator('a').textContent(), expected);
  await tr.locator('button').click();
  await tr.locator('button', { hasText: 'copied' }).waitFor();
  is('clipboard', await page.evaluate(() => navigator.clipboard.readText()), expected);
});

await step('HEVC has a sentence', async page => {
  await row(page, 'films/one.mp4').waitFor();
  const hevc = row(page, 'films/hevc.mp4');
  if (!await hevc.count()) return 'SKIPPED: no HEVC could be made';
  if (await page.evaluate(() => MediaSource.isTypeSupported('video/mp4; codecs="hvc1.1.6.L60.90"'))) return 'SKIPPED: this browser decodes HEVC';
  await hevc.click();
  const problem = page.locator('#problem');
  await problem.waitFor();
  const text = await problem.textContent();
  if (!text.startsWith("This browser can't decode HEVC (H.265), which the pictures are coded in (hvc1.")) throw new Error(text);
  await shot(page, 'hevc');
  return undefined;
});

await step('a phone of 360 px', async page => {
  await page.setViewportSize({ width: 360, height: 740 });
  const fits = async what => {
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    if (width > 360) throw new Error(`${what}: ${width} px wide`);
  };
  await row(page, 'films/one.mp4').waitFor();
  await fits('the list');
  await row(page, 'films/one.mp4').click();
  await isPlaying(page);
  await fits('an asset');
  is('empty cells', await page.locator('#tracks td:empty:visible').count(), 0);
  const cells = await page.locator('#outputs td, #tracks td:not(:empty)').evaluateAll(all =>
    all.map(cell => cell.getBoundingClientRect()).filter(box => box.right > 361 || box.width < 40).length);
  is('cells cut off', cells, 0);
  await shot(page, 'phone');
});

await step('focus stays where it was', async page => {
  await row(page, 'films/one.mp4').waitFor();
  await row(page, 'films/one.mp4').focus();
  const focused = () => page.evaluate(() => document.activeElement.dataset.path ?? document.activeElement.tagName);
  await page.evaluate(() => window.millpond.refresh());
  is('after a refresh', await focused(), 'films/one.mp4');
  await row(page, 'films/series/').focus();
  await page.keyboard.press('Enter');
  await row(page, 'films/series/two.mp4').waitFor();
  is('in another folder', await focused(), 'films/series/two.mp4');
});

if (shots) {
  await step('dark', async page => {
    await page.emulateMedia({ colorScheme: 'dark' });
    await row(page, 'films/one.mp4').click();
    await isPlaying(page);
    await shot(page, 'dark');
  });
}

await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
