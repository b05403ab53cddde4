// Chooses programmes of a recording on the page, by keys: pictures, title, address, details, QR code, and the place in each programme.
// Usage: node programmes.mjs BASE_URL RECORDING FILM
// RECORDING has programme 7 (Eins, red, 320 pixels wide), 8 (Südwest, blue, 192 pixels wide), 9 (Drei, MPEG-2 video alone) and 10 (Radio,
// sound alone), of 20 s each. FILM has one programme.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [base, recording, film] = process.argv.slice(2);
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'programmes-')), {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  viewport: { width: 1280, height: 1000 },
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
});
browser.setDefaultTimeout(30000);

let passed = 0;
let failed = 0;

async function step(name, run) {
  const page = await browser.newPage();
  const faults = [];
  page.on('pageerror', error => faults.push(error.message));
  try {
    await page.goto(base);
    await page.evaluate(() => localStorage.clear());
    await page.reload();
    await run(page);
    if (faults.length) throw new Error(`the page's script failed: ${faults[0]}`);
    passed += 1;
    console.log(`programmes ${name.padEnd(40)} ok`);
  } catch (error) {
    failed += 1;
    console.log(`programmes ${name.padEnd(40)} FAILED ${error.message.split('\n')[0]}`);
  }
  await page.close();
}

const is = (what, found, expected) => {
  if (found !== expected) throw new Error(`${what}: ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
};
const card = (page, path) => page.locator(`#list button[data-path="${path}"]`);
const path = page => new URLSearchParams(new URL(page.url()).hash.slice(1)).get('path');
const title = page => page.locator('#title').textContent();
const focused = page => page.evaluate(() => document.activeElement.dataset.path ?? document.activeElement.id);
const chosen = page => page.locator('#programme').evaluate(select => select.selectedOptions[0].textContent);
// Waits until pictures of this width play, and returns the colour in their middle.
async function colour(page, width) {
  await page.waitForFunction(wide => {
    const video = document.querySelector('video');
    return video.videoWidth === wide && video.currentTime > 0.5 && !video.seeking;
  }, width);
  return page.evaluate(() => {
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [16, 16];
    const context = canvas.getContext('2d');
    context.drawImage(document.querySelector('video'), 0, 0, 16, 16);
    const [red, , blue] = context.getImageData(8, 8, 1, 1).data;
    return red > 200 && blue < 60 ? 'red' : blue > 200 && red < 60 ? 'blue' : `${red} ${blue}`;
  });
}
const choose = (page, label) => page.locator('#programme').selectOption({ label });
const ready = (page, name) => page.waitForFunction(text => document.getElementById('title').textContent.endsWith(` – ${text}`), name);

await step('arrows reach the choice, letters choose', async page => {
  const scripts = [];
  page.on('request', request => { if (request.url().endsWith('/programmes.js')) scripts.push(request.url()); });
  await card(page, film).click();
  await page.waitForFunction(() => document.querySelector('video').currentTime > 0.3);
  is('scripts for a film', scripts.length, 0);
  is('choices in a film', await page.locator('#programme').count(), 0);
  await page.keyboard.press('Escape');
  await card(page, recording).focus();
  await page.keyboard.press('Enter');
  is('the first programme', await colour(page, 320), 'red');
  await ready(page, 'Eins');
  is('path', path(page), recording);
  const press = async (key, to) => {
    for (let n = 0; n < 12 && await focused(page) !== to; n += 1) await page.keyboard.press(key);
    is(`the focus after ${key}`, await focused(page), to);
  };
  await press('ArrowDown', 'play');
  await press('ArrowRight', 'settings');
  await page.keyboard.press('Enter');
  await press('ArrowDown', 'programme');
  const options = await page.locator('#programme option').evaluateAll(all => all.map(one => (one.disabled ? `(${one.textContent})` : one.textContent)));
  is('programmes', options.join('; '), "Eins; Südwest; (Drei: can't be played); Radio");
  await page.keyboard.press('S');
  is('the second programme', await colour(page, 192), 'blue');
  await ready(page, 'Südwest');
  is('path', path(page), `${recording}/8`);
  is('focus', await focused(page), 'programme');
  is('the choice', await chosen(page), 'Südwest');
  is('the card', await card(page, recording).getAttribute('aria-current'), 'true');
  is('scripts', scripts.length, 1);
  // The way back is that of the first programme, which is indexed already.
  await page.keyboard.press('E');
  is('the first programme again', await colour(page, 320), 'red');
  is('path', path(page), recording);
  await page.keyboard.press('Escape');
  is('behind the menu', await focused(page), 'settings');
  // All programmes were one step.
  await page.goBack();
  await page.locator('#stage').waitFor({ state: 'hidden' });
  await card(page, film).click();
  await page.waitForFunction(() => !document.getElementById('programme'));
});

await step('a link to a programme', async page => {
  await page.goto(`${base}/#path=${recording}/8`);
  await page.reload();
  is('pictures', await colour(page, 192), 'blue');
  await ready(page, 'Südwest');
  await card(page, recording).waitFor();
  is('the folder', await page.locator('#place').textContent(), 'All titles');
  await page.locator('#details').evaluate(e => { e.open = true; });
  is('the file', await page.locator('#file').textContent(), `${recording}/8`);
  is('the programme', await page.locator('#programme-fact').textContent(), '8, Südwest: H.264, AAC in ADTS');
  is('the address of the page', await page.locator('#outputs tr:last-child a').textContent(), `${base}/#path=${recording}/8`);
  const hls = page.locator('#outputs tr', { has: page.locator('th', { hasText: /^HLS, fMP4$/ }) });
  await hls.locator('button', { hasText: 'QR' }).click();
  await page.locator('#code').waitFor();
  const address = await page.locator('#code-address').textContent();
  if (!address.endsWith(`/${recording}/8/index.m3u8`)) throw new Error(`the QR code has ${address}`);
});

await step('each programme goes on where it was left', async page => {
  await card(page, recording).click();
  await colour(page, 320);
  await page.locator('#settings').click();
  await choose(page, 'Südwest');
  await colour(page, 192);
  await page.locator('#screen').focus();
  await page.keyboard.press('5');
  await page.waitForFunction(() => document.querySelector('video').currentTime > 10 && !document.querySelector('video').seeking);
  await page.locator('#close').click();
  await page.locator('#stage').waitFor({ state: 'hidden' });
  is('the focus', await focused(page), recording);
  const again = page.locator(`#resume-list button[data-path="${recording}/8"]`);
  await again.waitFor();
  is('titles', await page.locator('#resume-list button').count(), 1);
  is('the programme', await again.locator('.below').textContent(), 'Südwest');
  is('the tooltip', await again.getAttribute('title'), recording);
  await again.locator('canvas').waitFor();
  await page.reload();
  await again.click();
  is('pictures', await colour(page, 192), 'blue');
  const at = await page.evaluate(() => document.querySelector('video').currentTime);
  if (at < 10) throw new Error(`it goes on at ${at} s`);
  await page.locator('#settings').click();
  await choose(page, 'Eins');
  await colour(page, 320);
  const first = await page.evaluate(() => document.querySelector('video').currentTime);
  if (first > 8) throw new Error(`the first programme begins at ${first} s`);
});

await step('a programme without pictures has its name', async page => {
  await page.goto(`${base}/#path=${recording}/10`);
  await page.reload();
  await page.waitForFunction(() => document.querySelector('video').currentTime > 0.5);
  await page.waitForFunction(() => / – Radio$/.test(document.getElementById('sign').textContent));
  is('hidden', await page.locator('#sign').isHidden(), false);
});

await step('a programme that fails is tried again', async page => {
  await page.route('**/.millpond/asset?*', async route => {
    const response = await route.fetch();
    const asset = await response.json();
    for (const programme of asset.programmes || []) if (programme.number === 9) programme.path = `${recording}/9`;
    await route.fulfill({ response, json: asset });
  });
  await card(page, recording).click();
  await colour(page, 320);
  await ready(page, 'Eins');
  await page.locator('#settings').click();
  await choose(page, 'Drei');
  const problem = page.locator('#problem', { hasText: 'programme 9' });
  await problem.waitFor();
  const refused = page.waitForResponse(reply => reply.status() === 422);
  await page.locator('#retry').evaluate(button => button.click());
  await refused;
  await problem.waitFor();
  await choose(page, 'Südwest');
  is('another one', await colour(page, 192), 'blue');
});

await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
