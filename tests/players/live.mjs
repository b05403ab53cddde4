// Plays a live stream in Chromium with hls.js, dash.js and Shaka for 20 s, with low latency, and tells delay and stalls.
// Usage: node live.mjs BASE_URL STREAM_PATH
// The players are those of the page, with no configuration but low latency.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [base, stream] = process.argv.slice(2);
const SECONDS = 20;
const engines = {
  hls: { script: 'hls.min.js', list: 'index.m3u8' },
  dash: { script: 'dash.all.min.js', list: 'index.mpd' },
  shaka: { script: 'shaka-player.compiled.js', list: 'index.mpd' },
  'shaka-hls': { script: 'shaka-player.compiled.js', list: 'index.m3u8' },
};
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'live-')), {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
});

let passed = 0;
let failed = 0;

// Runs in the page: plays, and returns what happened.
async function play([engine, url, seconds]) {
  const video = document.createElement('video');
  video.muted = true;
  document.body.append(video);
  const faults = [];
  let latency;
  let player;
  if (engine === 'hls') {
    player = new Hls({ lowLatencyMode: true });
    player.on(Hls.Events.ERROR, (_, data) => { if (data.fatal) faults.push(data.details); });
    player.loadSource(url);
    player.attachMedia(video);
    latency = () => player.latency;
  } else if (engine === 'dash') {
    player = dashjs.MediaPlayer().create();
    player.updateSettings({ debug: { logLevel: 0 } });
    player.on('error', event => faults.push(event.error.message));
    player.initialize(video, url, true);
    latency = () => player.getCurrentLiveLatency();
  } else {
    shaka.polyfill.installAll();
    player = new shaka.Player();
    player.configure({ streaming: { lowLatencyMode: true } });
    player.addEventListener('error', event => faults.push(`error ${event.detail.code}`));
    await player.attach(video);
    await player.load(url);
    latency = () => player.getStats().liveLatency;
  }
  const wait = ms => new Promise(resolve => setTimeout(resolve, ms));
  const asked = performance.now();
  // dash.js begins to play by itself, and misses it where somebody else does.
  if (engine !== 'dash') video.play().catch(() => {});
  while (video.currentTime === 0 || video.readyState < 3 || video.paused) {
    await wait(50);
    if (performance.now() - asked > 40000) return { faults: [...faults, 'it does not begin'] };
  }
  // The seek to the live edge is over a moment later.
  await wait(1000);
  const [began, from] = [performance.now(), video.currentTime];
  faults.length = 0;
  let stalls = 0;
  video.addEventListener('waiting', () => { stalls += 1; });
  await wait(seconds * 1000);
  const played = video.currentTime - from;
  const took = (performance.now() - began) / 1000;
  const { totalVideoFrames } = video.getVideoPlaybackQuality();
  const startup = Math.round(began - asked - 1000);
  return { faults, stalls, played, took, startup, latency: latency(), pictures: totalVideoFrames };
}

for (const [engine, { script, list }] of Object.entries(engines)) {
  const page = await browser.newPage();
  let problem;
  let note = '';
  try {
    await page.goto(`${base}/.millpond/time`);
    await page.addScriptTag({ url: `${base}/.millpond/vendor/${script}` });
    const found = await page.evaluate(play, [engine, `${base}/${stream}/${list}`, SECONDS]);
    const { faults, stalls, played, took, startup, latency, pictures } = found;
    note = JSON.stringify({ startup, latency: latency && Number(latency.toFixed(2)), stalls, played, pictures });
    if (faults.length) problem = faults.join(', ');
    // A busy machine can cost a moment; a player that does not keep up with the stream loses more.
    else if (played < took * 0.9) problem = `${played} s in ${took} s`;
    else if (!pictures) problem = 'no picture';
  } catch (error) {
    problem = error.message.split('\n')[0];
  }
  await page.close();
  if (problem) failed += 1; else passed += 1;
  console.log(`${stream} ${engine.padEnd(10)} ${problem ? `FAILED ${problem}` : 'ok'} ${note}`);
}
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
