// Takes pictures of the page: gallery, player, phone, dark, light, no titles, faults, a screen of 4K, many titles, and the focus of a remote control.
// Usage: node gallery_pictures.mjs BASE_URL FOLDER
// The place has films/ with titles, many/ with thousands, odd/ with files that don't play, and empty/.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [base, shots] = process.argv.slice(2);
mkdirSync(shots, { recursive: true });
const profile = mkdtempSync(join(tmpdir(), 'pictures-'));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
});
browser.setDefaultTimeout(30000);
let failed = 0;

const DESKTOP = { width: 1200, height: 900 };
const PHONE = { width: 360, height: 740 };
const TELEVISION = { width: 1920, height: 1080 };
const LARGE = { width: 3840, height: 2160 };

async function shot(name, size, look, hash, run = async () => {}) {
  const page = await browser.newPage();
  try {
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme: look, ...run.media });
    await page.goto(`${base}/#${hash}`);
    await page.waitForFunction(() => document.querySelector('#list li') || document.getElementById('list-note').textContent);
    await run(page);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (wide > 0) throw new Error(`the page is ${wide} px wider than its window`);
    await page.screenshot({ path: join(shots, `${name}.png`) });
    console.log(`${name.padEnd(20)} ok`);
  } catch (error) {
    failed += 1;
    console.log(`${name.padEnd(20)} FAILED ${error.message.split('\n')[0]}`);
  }
  await page.close();
}

// Waits for the posters in view.
const posters = async page => {
  await page.waitForFunction(() => {
    const seen = [...document.querySelectorAll('#list li:not(.folder):not([data-kind=left-out])')].filter(li => li.getBoundingClientRect().top < innerHeight);
    return seen.length && seen.every(li => li.querySelector('canvas') || li.dataset.unplayable);
  });
};
const plays = async page => {
  await page.waitForFunction(() => document.querySelector('video').currentTime > 1);
  await page.keyboard.press('k');
  await page.locator('#screen').hover({ position: { x: 100, y: 60 } });
};
const keys = (...all) => async page => {
  await posters(page);
  for (const key of all) await page.keyboard.press(key);
};
const contrast = page => posters(page);
contrast.media = { contrast: 'more' };

const first = 'folder=films/&path=films/Harbour%20(2019).mp4&engine=hls';
for (const look of ['dark', 'light']) {
  await shot(`gallery-${look}`, DESKTOP, look, 'folder=films/', posters);
  await shot(`player-${look}`, DESKTOP, look, first, plays);
  await shot(`phone-${look}`, PHONE, look, 'folder=films/', posters);
  await shot(`phone-player-${look}`, PHONE, look, first, plays);
}
await shot('phone-lying', { width: 740, height: 360 }, 'dark', first, plays);
await shot('contrast', DESKTOP, 'light', 'folder=films/', contrast);
await shot('television', TELEVISION, 'dark', 'folder=films/', keys('ArrowDown', 'ArrowDown', 'ArrowRight'));
await shot('large', LARGE, 'dark', 'folder=films/', posters);
await shot('large-player', LARGE, 'dark', first, plays);
await shot('many', DESKTOP, 'light', 'folder=many/', posters);
await shot('odd', DESKTOP, 'light', 'folder=odd/', posters);
await shot('empty', DESKTOP, 'light', 'folder=empty/');
await shot('no-folder', DESKTOP, 'light', 'folder=absent/');
await shot('fault', DESKTOP, 'dark', 'folder=odd/&path=odd/old.wmv&engine=hls', page => page.locator('#problem').waitFor());
await shot('phone-fault', PHONE, 'light', 'folder=odd/&path=odd/old.wmv&engine=hls', page => page.locator('#problem').waitFor());
await shot('no-sound', DESKTOP, 'dark', 'folder=odd/&path=odd/Interview.mkv&engine=hls', page => page.locator('#hint', { hasText: 'No sound' }).waitFor());
await shot('menu', DESKTOP, 'dark', first, async page => {
  await plays(page);
  await page.locator('#settings').click();
});

await browser.close();
rmSync(profile, { recursive: true, force: true });
process.exit(failed ? 1 : 0);
