// The page's players tell of themselves by CMCD, and the server counts it.
// Usage: node cmcd.mjs BASE_URL ADMIN_URL PATH

import { chromium } from 'playwright-core';

const [base, admin, path] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
});

// Sum of a metric over its labels.
async function metric(name) {
  const text = await (await fetch(`${admin}/metrics`)).text();
  const lines = text.split('\n').filter(line => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').pop()), 0);
}

let passed = 0;
let failed = 0;
for (const engine of ['hls', 'dash', 'shaka']) {
  const before = await metric('millpond_cmcd_requests_total');
  const page = await browser.newPage();
  try {
    await page.goto(base);
    await page.waitForFunction(() => window.millpond && window.millpond.ready);
    await page.evaluate(([asset, name]) => window.millpond.load(asset, name), [path, engine]);
    await page.waitForFunction(() => document.querySelector('video').currentTime > 0.5, null, { timeout: 60000 });
    // A request counts when its reply was sent.
    for (let tries = 0; tries < 100 && await metric('millpond_cmcd_requests_total') === before; tries += 1) {
      await new Promise(resolve => { setTimeout(resolve, 100); });
    }
    const told = await metric('millpond_cmcd_requests_total') - before;
    const invalid = await metric('millpond_cmcd_invalid_total');
    if (told < 1 || invalid > 0) throw new Error(`${told} requests with CMCD, ${invalid} invalid`);
    passed += 1;
    console.log(`${engine.padEnd(10)} tells of itself (CMCD)  ok ${told} requests`);
  } catch (error) {
    failed += 1;
    console.log(`${engine.padEnd(10)} tells of itself (CMCD)  FAILED ${error.message.split('\n')[0]}`);
  }
  await page.close();
}
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
