// Startup delay in Chromium: milliseconds from asking for an asset to its first picture, one page for each asset.
// Usage: node startup.mjs BASE_URL ENGINE PATH...
// The last line is JSON: a list of numbers, null where playback did not start.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [base, engine, ...paths] = process.argv.slice(2);
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'startup-')), {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
});

const delays = [];
for (const path of paths) {
  const page = await browser.newPage();
  try {
    await page.goto(base);
    await page.waitForFunction(() => window.millpond && window.millpond.ready);
    delays.push(await page.evaluate(async ([p, e]) => {
      const begun = performance.now();
      await window.millpond.load(p, e);
      return Math.round(performance.now() - begun);
    }, [path, engine]));
  } catch (error) {
    console.error(`${path}: ${error.message.split('\n')[0]}`);
    delays.push(null);
  }
  await page.close();
}
await browser.close();
console.log(JSON.stringify(delays));
