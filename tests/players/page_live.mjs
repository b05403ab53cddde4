// Uses the page of a server with live streams: an empty place, a stream by its name, its picture, delay and addresses, its loss.
// Usage: node page_live.mjs BASE_URL RTSP_PORT NAME SOURCE_PID PUBLISH_URL PUBLISH_RTSP [SCREENSHOT_FOLDER]
// The place `cams` is the RTSP server of the process SOURCE_PID, which is killed at the end; NAME is a stream of it.
// The server at PUBLISH_URL, which may be empty, has the place `studio` for publishers, by RTSP at PUBLISH_RTSP, and WebRTC.

import { spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [base, rtspPort, name, source, publish, publishRtsp, shots] = process.argv.slice(2);
const path = `cams/${name}`;
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'page-')), {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  viewport: { width: 1280, height: 1000 },
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
});
browser.setDefaultTimeout(60000);

let passed = 0;
let failed = 0;

async function step(what, run) {
  const page = await browser.newPage();
  const faults = [];
  page.on('pageerror', error => faults.push(error.message));
  try {
    await page.goto(base);
    const note = await run(page);
    if (faults.length) throw new Error(`the page's script failed: ${faults[0]}`);
    passed += 1;
    console.log(`live page  ${what.padEnd(34)} ok ${note ?? ''}`);
  } catch (error) {
    failed += 1;
    console.log(`live page  ${what.padEnd(34)} FAILED ${error.message.split('\n')[0]}`);
    await shot(page, 'failed');
  }
  await page.close();
}

const PATIENCE = { timeout: 60000 };
const row = page => page.locator(`#list button[data-path="${path}"]`);
// Opens what only technical people read.
const openDetails = page => page.locator('#details').evaluate(e => { e.open = true; });
const shot = (page, of) => shots && page.screenshot({ path: join(shots, `live-${of}.png`), fullPage: true });
const text = (page, id, form) => page.waitForFunction(([of, source]) => new RegExp(source).test(document.getElementById(of).textContent), [id, form], PATIENCE);
const is = (what, found, expected) => {
  if (found !== expected) throw new Error(`${what}: ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
};
const isPlaying = (page, from = 0) => page.waitForFunction(at => {
  const video = document.querySelector('video');
  return video.videoWidth > 0 && !video.paused && video.currentTime > at;
}, from, PATIENCE);

await step('an empty place says what to open', async page => {
  await text(page, 'list-note', '^No stream is running\\. Open /cams/NAME');
  await shot(page, 'empty');
});

await step('a stream is opened by its name', async page => {
  await page.locator('#stream-name').fill(name);
  await page.locator('#stream-name').press('Enter');
  await isPlaying(page, 2);
  await text(page, 'live-state', '^running since ');
  await page.locator('#live').waitFor(PATIENCE);
  await row(page).locator('.badge', { hasText: /^Live$/ }).waitFor(PATIENCE);
  await openDetails(page);
  await row(page).locator('.side', { hasText: /^running$/ }).waitFor(PATIENCE);
  await page.locator('#tracks td', { hasText: /^avc1/ }).waitFor(PATIENCE);
  const rtsp = `rtsp://${new URL(base).hostname}:${rtspPort}/${path}`;
  for (const url of ['stream.mp4', 'index.m3u8', 'index.mpd'].map(of => `${base}/${path}/${of}`).concat(rtsp)) await page.locator('#outputs a', { hasText: url }).waitFor(PATIENCE);
  // The first second may be late on a busy machine; playing catches up.
  await page.waitForFunction(() => window.millpond.engineState().delay < 1.5, null, PATIENCE);
  await shot(page, 'running');
  return `delay ${await page.locator('#delay').textContent()}`;
});

for (const engine of ['hls', 'dash']) {
  await step(`${engine} with its delay`, async page => {
    await row(page).click(PATIENCE);
    await openDetails(page);
    await page.locator('#engine').selectOption(engine, PATIENCE);
    await isPlaying(page, 2);
    await page.waitForFunction(() => /^\d+\.\d s$/.test(document.getElementById('delay').textContent), null, PATIENCE);
    const { delay } = await page.evaluate(() => window.millpond.engineState());
    if (delay < 0.1 || delay > 20) throw new Error(`delay ${delay} s`);
    await shot(page, engine);
    return `delay ${delay.toFixed(1)} s`;
  });
}

await step('an unknown stream has a sentence', async page => {
  // The page changes its address once: from that of all folders to that of the only one. Chromium may drop another change beside it.
  await row(page).waitFor(PATIENCE);
  await page.goto(`${base}/#path=cams/nothing`);
  await page.reload();
  await text(page, 'problem', '404');
  await shot(page, 'unknown');
});

for (const engine of ['stream', 'hls', 'dash']) {
  await step(`a refused stream, by ${engine}`, async page => {
    await row(page).waitFor(PATIENCE);
    await page.goto(`${base}/#path=cams/nothing&engine=${engine}`);
    await page.reload();
    // What the server says, and what to do; none of the player's own words.
    await text(page, 'problem', 'Check that the camera is on');
    const said = await page.locator('#problem').textContent();
    if (!said.includes('404') || /hls\.js|dash\.js|manifest/.test(said)) throw new Error(said);
    await shot(page, `refused-${engine}`);
    return said;
  });
}

if (publish) {
  await step('a stream that nobody publishes', async page => {
    await page.goto(`${publish}/#path=studio/show&engine=hls`);
    await page.waitForFunction(() => document.getElementById('problem').textContent, null, PATIENCE);
    const said = await page.locator('#problem').textContent();
    if (!/Push the stream to rtsp:\/\/127\.0\.0\.1:\d+\/studio\/show, with OBS or ffmpeg\./.test(said) || /hls\.js/.test(said)) throw new Error(said);
    is('startup', await page.locator('#startup').textContent(), '–');
    await text(page, 'list-note', '^No stream is running\\. It begins when somebody pushes /studio/NAME');
    await shot(page, 'unpublished');
    return said;
  });
}

// Pushes a test picture and a tone as cameras code them, until it is killed.
function camera(stream, coding) {
  const input = '-re -f lavfi -i testsrc2=size=640x360:rate=25 -f lavfi -i sine=frequency=440:sample_rate=8000 -pix_fmt yuv420p';
  const words = `-v error -nostdin ${input} ${coding} -f rtsp -rtsp_transport tcp rtsp://127.0.0.1:${publishRtsp}/studio/${stream}`;
  return spawn('ffmpeg', words.split(' '), { stdio: 'ignore' });
}
const G711 = '-c:v libx264 -preset ultrafast -g 50 -bf 0 -c:a pcm_alaw -ac 1';
const H265 = '-c:v libx265 -preset ultrafast -x265-params log-level=none:keyint=50:bframes=0 -c:a aac';

if (publish) {
  await step('G.711, waited for', async page => {
    await page.goto(`${publish}/#path=studio/door&engine=live`);
    await page.reload();
    // By WebRTC the server waits for a publisher, and then says that there is none. The next player knows no tracks.
    await page.waitForFunction(() => document.getElementById('engine').value === 'stream', null, PATIENCE);
    const source = camera('door', G711);
    try {
      await isPlaying(page, 2);
      await page.waitForFunction(() => !document.getElementById('problem').textContent, null, PATIENCE);
      // Once the tracks are known, WebRTC has the least delay.
      await page.reload();
      await isPlaying(page, 2);
      const { engine, sounds } = await page.evaluate(() => ({
        engine: document.getElementById('engine').value, sounds: document.querySelector('video').srcObject?.getAudioTracks().length,
      }));
      is('the player', engine, 'webrtc');
      is('tracks of sound', sounds, 1);
      await shot(page, 'g711');
    } finally {
      source.kill();
    }
  });
  await step('H.265, without a decoder', async page => {
    const source = camera('yard', H265);
    try {
      // Its own pages may load playlists.
      await page.goto(publish);
      await page.waitForFunction(url => fetch(url).then(reply => reply.ok), `${publish}/studio/yard/index.m3u8`, PATIENCE);
      await page.goto(`${publish}/#path=studio/yard&engine=live`);
      await page.reload();
      const has = await page.evaluate(() => MediaSource.isTypeSupported('video/mp4; codecs="hvc1.1.6.L63.90"'));
      if (has) await isPlaying(page, 2);
      else await text(page, 'problem', "^This browser can't decode HEVC .*Open rtsp://127\\.0\\.0\\.1:\\d+/studio/yard in VLC or mpv\\.$");
      await shot(page, 'h265');
      return has ? 'it has one, and plays' : '';
    } finally {
      source.kill();
    }
  });
}

await step('a phone of 360 px', async page => {
  await page.setViewportSize({ width: 360, height: 740 });
  await row(page).click(PATIENCE);
  await isPlaying(page);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  if (width > 360) throw new Error(`${width} px wide`);
  await shot(page, 'phone');
});

await step('a lost source is told', async page => {
  await row(page).click(PATIENCE);
  await isPlaying(page);
  process.kill(Number(source), 'SIGKILL');
  await text(page, 'live-state', '^lost since ');
  await row(page).locator('.side', { hasText: /^lost since / }).waitFor(PATIENCE);
  await shot(page, 'lost');
  return page.locator('#live-state').textContent();
});

await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
