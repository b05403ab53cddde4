// Uses the page as people do: folders and search in the address, posters with durations, places in titles, the keys and the
// controls of the player, the next title, RTSP addresses, QR codes, HEVC, ten thousand files, a phone. All that time no request
// leaves the server, and axe finds nothing.
// Usage: node page.mjs BASE_URL RTSP_PORT [SCREENSHOT_FOLDER]
// The place has films/one.mp4, films/series/two.mp4, films/many/ with 10,000 files, films/odd/ with files that don't play, a manifest and
// seasons, and, where they could be made, films/hevc.mp4 and films/odd/law.mkv with G.711.

import { mkdtempSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import jsQR from 'jsqr';
import { chromium } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const [base, rtspPort, shots] = process.argv.slice(2);
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'page-')), {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  viewport: { width: 1280, height: 1000 },
  permissions: ['clipboard-read', 'clipboard-write'],
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
});
browser.setDefaultTimeout(60000);

let passed = 0;
let failed = 0;

async function step(name, run) {
  const page = await browser.newPage();
  const faults = [];
  page.on('pageerror', error => faults.push(error.message));
  page.on('console', message => { if (/Content Security Policy/.test(message.text())) faults.push(message.text()); });
  page.on('request', request => {
    const { protocol, origin } = new URL(request.url());
    if (/^(http|ws)/.test(protocol) && origin !== new URL(base).origin) faults.push(`a request to ${origin}`);
  });
  try {
    await page.goto(base);
    // The page then opens the only folder of the place: Chromium gives up a step to another address meanwhile.
    await row(page, 'films/one.mp4').waitFor();
    const note = await run(page);
    if (faults.length) throw new Error(`the page's script failed: ${faults[0]}`);
    passed += 1;
    console.log(`page       ${name.padEnd(34)} ok ${note ?? ''}`);
  } catch (error) {
    failed += 1;
    const seen = await page.evaluate(() => `${location.href}: ${document.body.innerText.slice(0, 400)}`).catch(String);
    console.log(`page       ${name.padEnd(34)} FAILED ${error.message.split('\n')[0]}; the page showed ${JSON.stringify(seen)}`);
  }
  await page.close();
}

const row = (page, path) => page.locator(`#list button[data-path="${path}"]`);
const is = (what, found, expected) => {
  if (found !== expected) throw new Error(`${what}: ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
};
const shot = (page, name) => shots && page.screenshot({ path: join(shots, `page-${name}.png`), fullPage: true });
const hash = page => new URLSearchParams(new URL(page.url()).hash.slice(1));
// Opens what only technical people read.
const openDetails = page => page.locator('#details').evaluate(e => { e.open = true; });
const video = (page, name) => page.evaluate(of => document.querySelector('video')[of], name);
const isPlaying = page => page.waitForFunction(() => document.querySelector('video').currentTime > 0.5, null, { timeout: 60000 });

await step('folders are in the address', async page => {
  // The only folder of the place opens by itself.
  await row(page, 'films/series/').click();
  await row(page, 'films/series/two.mp4').waitFor();
  is('folder', hash(page).get('folder'), 'films/series/');
  is('the title', await row(page, 'films/series/two.mp4').locator('.name').textContent(), 'two');
  is('the file', await row(page, 'films/series/two.mp4').getAttribute('title'), 'two.mp4');
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

await step('posters have durations', async page => {
  await row(page, 'films/one.mp4').locator('.lasts', { hasText: /^0:\d\d$/ }).waitFor();
  return row(page, 'films/one.mp4').locator('.lasts').textContent();
});

await step('RTSP addresses are copied', async page => {
  await row(page, 'films/one.mp4').click();
  await openDetails(page);
  const tr = page.locator('#outputs tr', { has: page.locator('th', { hasText: /^RTSP$/ }) });
  const expected = `rtsp://${new URL(base).hostname}:${rtspPort}/films/one.mp4`;
  is('address', await tr.locator('a').textContent(), expected);
  await tr.locator('button').first().click();
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
  if (!text.includes(`Open rtsp://${new URL(base).hostname}:${rtspPort}/films/hevc.mp4 in VLC`)) throw new Error(text);
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
  const columns = await page.locator('#list').evaluate(e => getComputedStyle(e).gridTemplateColumns.split(' ').length);
  is('columns', columns, 2);
  const screen = await page.locator('#screen').boundingBox();
  is('the picture', `${screen.x} ${screen.width}`, '0 360');
  await openDetails(page);
  await fits('the details');
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

await step('the keys of the player', async page => {
  await row(page, 'films/one.mp4').click();
  await isPlaying(page);
  is('focus', await page.evaluate(() => document.activeElement.id), 'screen');
  await page.keyboard.press('k');
  is('k pauses', await video(page, 'paused'), true);
  const goesTo = async (key, time) => {
    await page.keyboard.press(key);
    const at = await video(page, 'currentTime');
    if (Math.abs(at - time) > 0.3) throw new Error(`${key}: at ${at} s, expected ${time} s`);
  };
  const lasts = await video(page, 'duration');
  await goesTo('0', 0);
  await goesTo('ArrowRight', 5);
  await goesTo('l', Math.min(15, lasts));
  await goesTo('5', lasts / 2);
  await goesTo('ArrowLeft', lasts / 2 - 5);
  await goesTo('j', Math.max(0, lasts / 2 - 15));
  await page.keyboard.press('-');
  is('volume', (await video(page, 'volume')).toFixed(2), '0.95');
  await page.keyboard.press('m');
  is('m', await video(page, 'muted'), true);
  await page.keyboard.press('>');
  is('speed', await video(page, 'playbackRate'), 1.25);
  await page.keyboard.press('<');
  await page.keyboard.press(' ');
  await page.waitForFunction(() => !document.querySelector('video').paused && document.getElementById('play').ariaLabel === 'Pause');
  // Fields have their letters to themselves.
  await page.locator('#filter').focus();
  await page.keyboard.type('k');
  is('paused by a field', await video(page, 'paused'), false);
});

await step('controls leave the picture', async page => {
  await row(page, 'films/one.mp4').click();
  await isPlaying(page);
  const isIdle = () => page.locator('#screen').evaluate(e => e.classList.contains('idle'));
  await page.waitForFunction(() => document.getElementById('screen').classList.contains('idle'));
  await page.locator('#screen').hover({ position: { x: 200, y: 100 } });
  is('after a move', await isIdle(), false);
  await page.locator('video').click({ position: { x: 300, y: 100 } });
  is('a click pauses', await video(page, 'paused'), true);
  await page.locator('#settings').click();
  await page.locator('#speed').selectOption({ label: '1.5×' });
  is('speed', await video(page, 'playbackRate'), 1.5);
  await page.keyboard.press('Escape');
  is('the menu', await page.locator('#menu').isHidden(), true);
  await page.locator('#full').click();
  await page.waitForFunction(() => document.fullscreenElement?.id === 'screen');
  await page.locator('#full').click();
  await page.waitForFunction(() => !document.fullscreenElement);
});

await step('a title goes on where it was left', async page => {
  await page.evaluate(() => localStorage.clear());
  await page.reload();
  await row(page, 'films/one.mp4').click();
  await isPlaying(page);
  await page.keyboard.press('5');
  const half = await video(page, 'duration') / 2;
  await page.waitForFunction(at => document.querySelector('video').currentTime > at && !document.querySelector('video').seeking, half);
  await page.locator('#close').click();
  await page.locator('#stage').waitFor({ state: 'hidden' });
  const again = page.locator('#resume-list button[data-path="films/one.mp4"]');
  await again.waitFor();
  await row(page, 'films/one.mp4').locator('.share').waitFor({ state: 'attached' });
  await shot(page, 'resume');
  await page.reload();
  await again.click();
  await page.waitForFunction(at => document.querySelector('video').currentTime > at, half);
  await page.keyboard.press('9');
  await page.waitForFunction(() => document.querySelector('video').ended, null, { timeout: 60000 });
  await page.locator('#close').click();
  await row(page, 'films/one.mp4').locator('.seen').waitFor();
  await page.locator('#resume').waitFor({ state: 'hidden' });
});

await step('sound and subtitles are remembered', async page => {
  await row(page, 'films/one.mp4').click();
  await isPlaying(page);
  await page.locator('#settings').click();
  await page.locator('#audio').selectOption({ index: 1 });
  await page.locator('#text').selectOption({ index: 1 });
  await page.goto(base);
  await page.reload();
  await row(page, 'films/one.mp4').click();
  await page.waitForFunction(() => ['audio', 'text'].every(id => document.getElementById(id).selectedIndex === 1));
  is('the button', await page.locator('#subtitles').getAttribute('aria-pressed'), 'true');
  await page.keyboard.press('c');
  is('off', await page.locator('#text').evaluate(e => e.selectedIndex), 0);
  await page.evaluate(() => localStorage.clear());
});

await step('the next title', async page => {
  await row(page, 'films/many/').click();
  await row(page, 'films/many/clip-00001.mp4').click();
  await isPlaying(page);
  is('its button', await page.locator('#next').getAttribute('aria-label'), 'Next: clip-00002');
  await page.keyboard.press('9');
  // It looks like the next episode: it plays by itself.
  await page.locator('#next-when', { hasText: /^Next in \d s:$/ }).waitFor();
  await page.locator('#next-not').click();
  await page.locator('#next-card').waitFor({ state: 'hidden' });
  await page.keyboard.press('n');
  await page.waitForFunction(() => new URLSearchParams(location.hash.slice(1)).get('path') === 'films/many/clip-00002.mp4');
  await isPlaying(page);
});

await step('two touches at a side seek', async page => {
  await row(page, 'films/one.mp4').click();
  await isPlaying(page);
  await page.keyboard.press('k');
  await page.keyboard.press('0');
  const seeks = async (share, time) => {
    await page.evaluate(at => {
      const element = document.querySelector('video');
      const { left, top, width, height } = element.getBoundingClientRect();
      const event = { pointerType: 'touch', clientX: left + at * width, clientY: top + height / 2, bubbles: true };
      for (const _ of [1, 2]) element.dispatchEvent(new PointerEvent('pointerup', event));
    }, share);
    const at = await video(page, 'currentTime');
    if (Math.abs(at - time) > 0.3) throw new Error(`at ${at} s, expected ${time} s`);
  };
  await seeks(0.9, 10);
  await page.waitForTimeout(400);
  await seeks(0.1, 0);
});

await step('the newest titles first', async page => {
  await page.locator('#sort').selectOption('newest');
  await row(page, 'films/one.mp4').waitFor();
  await page.reload();
  await row(page, 'films/one.mp4').waitFor();
  is('the choice', await page.locator('#sort').inputValue(), 'newest');
  await page.locator('#sort').selectOption('name');
});

await step('nothing moves while posters arrive', async page => {
  await page.addInitScript(() => {
    window.shifts = 0;
    new PerformanceObserver(all => { for (const shift of all.getEntries()) window.shifts += shift.value; }).observe({ type: 'layout-shift', buffered: true });
  });
  await page.goto(`${base}/#folder=films/many/`);
  await page.reload();
  await row(page, 'films/many/clip-00001.mp4').locator('canvas').waitFor();
  await row(page, 'films/many/clip-00005.mp4').locator('.lasts').waitFor();
  const shifts = await page.evaluate(() => window.shifts);
  if (shifts > 0.01) throw new Error(`layout shift ${shifts}`);
  return `layout shift ${shifts.toFixed(3)}`;
});

// Findings of axe in what is shown.
async function findings(page) {
  // The policy of the page forbids scripts in it. The debugger's are none of it.
  const session = await browser.newCDPSession(page);
  await session.send('Runtime.evaluate', { expression: axe });
  const run = `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    JSON.stringify(violations.map(v => v.id + ': ' + v.nodes.map(n => n.target.join(' ') + ' ' + n.any.map(a => a.message).join(' ')).slice(0, 3).join(', '))))`;
  const { result } = await session.send('Runtime.evaluate', { expression: run, awaitPromise: true });
  return JSON.parse(result.value);
}

const hasPicture = canvas => canvas.evaluate(c => {
  const { data } = c.getContext('2d').getImageData(0, 0, c.width, c.height);
  return new Set(data.filter((_, n) => n % 4 === 0)).size;
});

await step('posters have pictures', async page => {
  const canvas = row(page, 'films/one.mp4').locator('canvas');
  await canvas.waitFor({ timeout: 60000 });
  const shades = await hasPicture(canvas);
  if (shades < 10) throw new Error(`${shades} shades of red`);
  await shot(page, 'posters');
});

await step('the bar for seeking has pictures', async page => {
  await row(page, 'films/one.mp4').click();
  await isPlaying(page);
  const bar = page.locator('#scrub');
  await page.waitForFunction(() => seeking.times.length > 1, null, { timeout: 60000 });
  const { width, height } = await bar.boundingBox();
  await bar.hover({ position: { x: width * 0.7, y: height / 2 } });
  await page.waitForFunction(() => {
    const c = document.getElementById('preview-picture');
    return !document.getElementById('preview').hidden && new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size > 20;
  }, null, { timeout: 60000 });
  await shot(page, 'preview');
  await bar.focus();
  await page.keyboard.press('End');
  await page.waitForFunction(() => document.querySelector('video').currentTime > 0.9 * document.querySelector('video').duration);
});

await step('chapters are marked on the bar', async page => {
  const chapters = [{ start: 0, title: 'Dawn' }, { start: 6, title: 'Noon' }];
  await page.route('**/.millpond/asset?*', async route => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...await response.json(), chapters } });
  });
  await row(page, 'films/one.mp4').click();
  await isPlaying(page);
  await page.locator('#play').click();
  const bar = page.locator('#scrub');
  const [{ x, width }, ...marks] = await Promise.all([bar.boundingBox(),
    ...(await page.locator('#chapters i').all()).map(mark => mark.boundingBox())]);
  is('marks', marks.length, 1);
  const duration = await video(page, 'duration');
  const off = Math.abs(marks[0].x - x - width * 6 / duration);
  if (off > 4) throw new Error(`the mark is ${off} pixels off`);
  await bar.focus();
  await page.keyboard.press('Home');
  await page.waitForFunction(() => document.getElementById('scrub').getAttribute('aria-valuetext').endsWith(', Dawn'));
  await page.keyboard.press('End');
  await page.waitForFunction(() => document.getElementById('scrub').getAttribute('aria-valuetext').endsWith(', Noon'));
});

await step('players find thumbnails', async page => {
  const found = await page.evaluate(async () => {
    await Promise.all([script('vendor/shaka-player.compiled.js'), script('vendor/dash.all.min.js')]);
    const video = document.createElement('video');
    const player = new shaka.Player();
    await player.attach(video);
    const ofShaka = [];
    for (const manifest of ['index.mpd', 'index.m3u8']) {
      await player.load(`/films/one.mp4/${manifest}`);
      const [track] = player.getImageTracks();
      const { uris, positionX, positionY, width, height } = await player.getThumbnails(track.id, 13);
      ofShaka.push({ uri: uris[0], x: positionX, y: positionY, width, height });
    }
    await player.destroy();
    const dash = dashjs.MediaPlayer().create();
    dash.initialize(video, '/films/one.mp4/index.mpd', false);
    await new Promise(done => { dash.on('streamInitialized', done); });
    const { url, x, y, width, height } = await new Promise(done => { dash.provideThumbnail(13, done); });
    dash.destroy();
    return [...ofShaka, { uri: url, x, y, width, height }];
  });
  for (const { uri, x, y, width, height } of found) {
    is('a place', `${x},${y} ${width}x${height}`, '160,90 160x90');
    const [wide, high, shades] = await page.evaluate(async url => {
      const image = new Image();
      image.src = url;
      await image.decode();
      const canvas = document.createElement('canvas');
      Object.assign(canvas, { width: 160, height: 90 });
      canvas.getContext('2d').drawImage(image, 160, 90, 160, 90, 0, 0, 160, 90);
      return [image.width, image.height, new Set(canvas.getContext('2d').getImageData(0, 0, 160, 90).data).size];
    }, uri);
    is('a sheet', `${wide}x${high}`, '800x450');
    if (shades < 20) throw new Error(`${shades} shades in ${uri}`);
  }
  return found[0].uri;
});

// The text of the QR code that is shown.
async function shownCode(page) {
  const svg = page.locator('#code svg');
  await svg.waitFor();
  const { side, dark } = await svg.evaluate(e => ({
    side: e.viewBox.baseVal.width, dark: [...e.querySelector('path').getAttribute('d').matchAll(/M(\d+) (\d+)/g)].map(([, x, y]) => [+x, +y]),
  }));
  const scale = 4;
  const pixels = new Uint8ClampedArray(4 * (side * scale) ** 2).fill(255);
  for (const [x, y] of dark) {
    for (let dy = 0; dy < scale; dy += 1) {
      const from = 4 * ((y * scale + dy) * side * scale + x * scale);
      for (let n = 0; n < scale; n += 1) pixels.fill(0, from + 4 * n, from + 4 * n + 3);
    }
  }
  return jsQR(pixels, side * scale, side * scale)?.data;
}

const codeOf = (page, name) => page.locator('#outputs tr', { has: page.locator('th', { hasText: new RegExp(`^${name}$`) }) }).locator('button', { hasText: 'QR' });

const authority = ({ port, hosts: [host] }) => host && `${host}:${port}`;

// The server listens on all addresses by HTTP, and on the loopback by RTSP.
await step('QR codes have the address in the network', async page => {
  const told = await page.evaluate(() => fetch('/.millpond/network').then(reply => reply.json()));
  is('addresses of RTSP', JSON.stringify(told.rtsp.hosts), '[]');
  await row(page, 'films/one.mp4').click();
  await openDetails(page);
  await codeOf(page, 'RTSP').click();
  const note = page.locator('#code .note');
  await note.filter({ hasText: 'Other devices cannot reach this address' }).waitFor();
  is('codes', await page.locator('#code svg').count(), 0);
  is('axe', JSON.stringify(await findings(page)), '[]');
  await page.keyboard.press('Escape');
  await page.locator('#code').waitFor({ state: 'hidden' });
  const network = authority(told.http);
  if (!network) return 'SKIPPED: this machine has no network';
  await codeOf(page, 'DASH').click();
  const expected = `http://${network}/films/one.mp4/index.mpd`;
  is('text', await shownCode(page), expected);
  is('address', await page.locator('#code-address').textContent(), expected);
  await note.filter({ hasText: 'address of this machine in its network' }).waitFor();
  is('axe', JSON.stringify(await findings(page)), '[]');
  await shot(page, 'qr');
  await page.keyboard.press('Escape');
  await page.locator('#code').waitFor({ state: 'hidden' });
  return network;
});

await step('QR codes of a page from the network', async page => {
  const network = authority(await page.evaluate(() => fetch('/.millpond/network').then(reply => reply.json())).then(told => told.http));
  if (!network) return 'SKIPPED: this machine has no network';
  const own = await browser.newPage();
  await own.goto(`http://${network}/`);
  is('told', await own.evaluate(() => fetch('/.millpond/network').then(reply => reply.status)), 404);
  await row(own, 'films/one.mp4').click();
  await openDetails(own);
  await codeOf(own, 'DASH').click();
  is('text', await shownCode(own), `http://${network}/films/one.mp4/index.mpd`);
  is('note', await own.locator('#code .note').textContent(), '');
  await own.close();
  return undefined;
});

await step('a folder of 10,000 files', async page => {
  await row(page, 'films/many/').click();
  await row(page, 'films/many/clip-00001.mp4').waitFor({ timeout: 60000 });
  const many = () => page.locator('#list li').count();
  const first = await many();
  if (first > 300) throw new Error(`${first} rows at once`);
  await page.waitForFunction(() => /of 10,000/.test(document.getElementById('more').textContent));
  // Far from it, all further ones wait.
  is('without scrolling', await many(), first);
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  await page.waitForFunction(n => document.querySelectorAll('#list li').length > n, first);
  await page.locator('#filter').fill('clip-0777');
  await row(page, 'films/many/clip-07777.mp4').waitFor({ timeout: 60000 });
  is('titles', await many(), 10);
  await page.locator('#filter').fill('clip');
  await page.waitForFunction(() => /^10,000 found in \d+ folders\.$/.test(document.querySelector('#list-note').textContent), null, { timeout: 60000 });
  await page.locator('#more').focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelectorAll('#list li').length >= 200);
  await shot(page, 'many');
});

await step('keys move in the gallery', async page => {
  await row(page, 'films/one.mp4').waitFor();
  const focused = () => page.evaluate(() => document.activeElement.dataset.path ?? document.activeElement.id);
  const paths = await page.locator('#list button').evaluateAll(all => all.map(button => button.dataset.path));
  const folders = paths.filter(path => path.endsWith('/'));
  const titles = paths.filter(path => !path.endsWith('/'));
  await row(page, folders[0]).focus();
  await page.keyboard.press('ArrowRight');
  is('to the right', await focused(), folders[1]);
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('ArrowDown');
  is('the line below', await focused(), titles[0]);
  await page.keyboard.press('ArrowUp');
  is('the line above', await focused(), folders[0]);
  await page.keyboard.press('/');
  is('focus', await page.evaluate(() => document.activeElement.id), 'filter');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('End');
  const last = await page.evaluate(() => document.activeElement.dataset.path);
  is('last', last, await page.locator('#list li:last-child button').getAttribute('data-path'));
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowUp');
  is('the way above', await page.evaluate(() => document.activeElement.textContent), 'All');
});

await step('arrows reach everything', async page => {
  const focused = () => page.evaluate(() => {
    const { dataset, id, localName, textContent } = document.activeElement;
    return dataset.path ?? (id || (localName === 'summary' ? localName : textContent));
  });
  const goes = async (key, to) => {
    await page.keyboard.press(key);
    is(key, await focused(), to);
  };
  await row(page, 'films/one.mp4').waitFor();
  // Nothing has the focus yet.
  await goes('ArrowDown', await page.locator('#list button').first().getAttribute('data-path'));
  await goes('ArrowUp', 'All');
  await goes('ArrowRight', 'films');
  await goes('ArrowRight', 'filter');
  await goes('ArrowLeft', 'films');
  await row(page, 'films/one.mp4').focus();
  await page.keyboard.press('Enter');
  await isPlaying(page);
  await goes('ArrowDown', 'play');
  const passed = new Set();
  for (let n = 0; n < 10; n += 1) {
    await page.keyboard.press('ArrowRight');
    passed.add(await focused());
  }
  is('the buttons', ['mute', 'subtitles', 'settings', 'full'].filter(id => !passed.has(id)).join(), '');
  is('the last one', [...passed].at(-1), 'full');
  await goes('ArrowUp', 'scrub');
  await goes('ArrowUp', 'screen');
  await goes('ArrowUp', 'All');
  await goes('ArrowDown', 'screen');
  await goes('ArrowDown', 'play');
  await goes('ArrowDown', 'summary');
  await goes('ArrowUp', 'play');
  // The settings keep the focus until the key that goes back.
  await page.locator('#settings').focus();
  await page.keyboard.press('Enter');
  is('in the menu', await page.locator('#menu').evaluate(e => e.contains(document.activeElement)), true);
  for (let n = 0; n < 8; n += 1) await page.keyboard.press('ArrowDown');
  is('the last setting', await focused(), 'autoplay');
  await goes('Escape', 'settings');
  // In full screen the keys are those of the player.
  await page.locator('#screen').focus();
  await page.keyboard.press('0');
  await page.keyboard.press('f');
  await page.waitForFunction(() => document.fullscreenElement?.id === 'screen');
  await page.evaluate(() => { document.querySelector('video').volume = 1; });
  await goes('ArrowDown', 'screen');
  is('volume', (await video(page, 'volume')).toFixed(2), '0.95');
  await goes('Enter', 'screen');
  is('Enter pauses', await video(page, 'paused'), true);
  await goes('ArrowDown', 'play');
  // Remote controls send this key.
  await page.evaluate(() => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'GoBack', bubbles: true, cancelable: true })));
  await page.waitForFunction(() => !document.fullscreenElement);
  await page.keyboard.press('Escape');
  await page.locator('#stage').waitFor({ state: 'hidden' });
  is('the card', await focused(), 'films/one.mp4');
});

await step('Back leaves a folder', async page => {
  await row(page, 'films/series/').focus();
  await page.keyboard.press('Enter');
  await row(page, 'films/series/two.mp4').waitFor();
  await page.keyboard.press('Backspace');
  await row(page, 'films/series/').waitFor();
  await page.waitForFunction(() => document.activeElement.dataset.path === 'films/series/');
  // This is the highest folder: a television leaves the page.
  await page.keyboard.press('Escape');
  is('folder', hash(page).get('folder'), 'films/');
  await page.locator('#filter').fill('two');
  await row(page, 'films/series/two.mp4').waitFor();
  await page.keyboard.press('Backspace');
  is('a letter less', await page.locator('#filter').inputValue(), 'tw');
  await page.keyboard.press('Escape');
  await row(page, 'films/one.mp4').waitFor();
});

await step('c while a title loads', async page => {
  await page.evaluate(() => localStorage.clear());
  await page.reload();
  await page.route('**/.millpond/asset?*', async route => {
    await new Promise(done => { setTimeout(done, 1500); });
    await route.continue();
  });
  await row(page, 'films/one.mp4').click();
  await page.locator('#stage').waitFor();
  await page.keyboard.press('c');
  await isPlaying(page);
  await page.waitForFunction(() => document.getElementById('subtitles').getAttribute('aria-pressed') === 'true');
  await page.evaluate(() => localStorage.clear());
});

await step('what does not play says so', async page => {
  await page.goto(`${base}/#folder=films/odd/`);
  await page.reload();
  const side = path => row(page, path).locator('.side');
  await side('films/odd/old.wmv').filter({ hasText: "can't be played: Windows Media (ASF)" }).waitFor();
  await side('films/odd/broken.mp4').filter({ hasText: "can't be played" }).waitFor();
  is('the tooltip', /text file/.test(await row(page, 'films/odd/broken.mp4').getAttribute('title')), true);
  is('the size of a manifest', await side('films/odd/episode.smil').textContent(), '');
  const cards = await page.evaluate(() => {
    const li = document.createElement('li');
    li.innerHTML = '<button data-path="films/old.mkv"><span></span><span class="side"></span></button>';
    tellUnplayable(li, refusedBrief({ status: 422, message: 'why', media: ['MPEG-2 video'] }));
    return [li.dataset.unplayable, li.querySelector('.side').textContent];
  });
  is('a codec', cards.join(), "can't be played: MPEG-2 video,can't be played: MPEG-2 video");
  is('axe', JSON.stringify(await findings(page)), '[]');
  await shot(page, 'odd');
  await row(page, 'films/odd/old.wmv').click();
  const problem = page.locator('#problem');
  await problem.waitFor();
  const text = await problem.textContent();
  if (!text.startsWith('old.wmv is Windows Media (ASF), which is not played here. This makes a file that plays:\nffmpeg -i old.wmv ')) throw new Error(text);
  is('another attempt', await page.locator('#retry').isHidden(), true);
});

await step('seasons in order, specials last', async page => {
  await page.goto(`${base}/#folder=films/odd/`);
  await page.reload();
  await row(page, 'films/odd/Season 1/').waitFor();
  const names = await page.locator('#list li.folder .name').allTextContents();
  is('folders', names.join(), 'Season 1,Season 2,Season 10,Specials');
});

await step('sound that is left out is told', async page => {
  const path = 'films/odd/law.mkv';
  const told = await page.evaluate(of => fetch(`/.millpond/asset?path=${of}`).then(reply => reply.ok && reply.json()), path);
  if (told) {
    await page.goto(`${base}/#path=${path}`);
    await page.reload();
    await isPlaying(page);
    const isTold = /^No sound: G\.711 can't be played by browsers/.test(await page.locator('#warnings').textContent());
    is('G.711', isTold, told.tracks.some(track => track.kind === 'audio' && !track.listed));
  }
  await page.route('**/.millpond/asset?*', async route => {
    const response = await route.fetch();
    const asset = await response.json();
    for (const track of asset.tracks) if (track.kind === 'audio') Object.assign(track, { listed: false, 'codec-name': 'G.711 A-law', codec: 'alaw' });
    await route.fulfill({ response, json: asset });
  });
  await page.goto(`${base}/#path=films/one.mp4`);
  await page.reload();
  await page.locator('#hint', { hasText: "No sound: G.711 can't be played by browsers" }).waitFor();
  await openDetails(page);
  is('the details', await page.locator('#details summary').textContent(), 'Details: no sound');
  const cure = await page.locator('#warnings li').first().textContent();
  if (!cure.includes(`VLC and mpv play it: ${base}/films/one.mp4`)) throw new Error(cure);
});

for (const [what, look, width] of [['light', 'light', 1280], ['dark', 'dark', 1280], ['a phone', 'light', 360]]) {
  await step(`axe finds nothing: ${what}`, async page => {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme: look });
    await row(page, 'films/one.mp4').waitFor();
    is('axe on the list', JSON.stringify(await findings(page)), '[]');
    await row(page, 'films/one.mp4').click();
    await isPlaying(page);
    is('axe on an asset', JSON.stringify(await findings(page)), '[]');
    await openDetails(page);
    await page.locator('#settings').click();
    is('axe on its details', JSON.stringify(await findings(page)), '[]');
  });
}

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
