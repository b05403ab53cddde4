// Plays a ladder of live streams in Chromium with hls.js and dash.js, and switches between its renditions every 4 s.
// Usage: node ladder.mjs BASE_URL LADDER_PATH
// No switch may stall, and each must show pictures of the other size.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { Doubt, withoutDoubt } from './doubt.mjs';

const [base, ladder] = process.argv.slice(2);
const SWITCHES = 6;
const engines = {
  hls: { script: 'hls.min.js', list: 'index.m3u8' },
  dash: { script: 'dash.all.min.js', list: 'index.mpd' },
};
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'ladder-')), {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
});

// Runs in the page: plays, switches, and returns what happened.
async function play([engine, url, switches]) {
  const video = document.createElement('video');
  video.muted = true;
  document.body.append(video);
  const faults = [];
  let levels;
  let choose;
  if (engine === 'hls') {
    const player = new Hls({ lowLatencyMode: false });
    player.on(Hls.Events.ERROR, (_, data) => { if (data.fatal) faults.push(data.details); });
    player.loadSource(url);
    player.attachMedia(video);
    levels = () => player.levels.length;
    choose = level => { player.nextLevel = level; };
  } else {
    const player = dashjs.MediaPlayer().create();
    player.updateSettings({
      debug: { logLevel: 0 },
      streaming: { abr: { autoSwitchBitrate: { video: false } }, buffer: { fastSwitchEnabled: true } },
    });
    player.on('error', event => faults.push(event.error.message));
    player.initialize(video, url, true);
    levels = () => player.getRepresentationsByType('video').length;
    choose = level => player.setRepresentationForTypeByIndex('video', level);
  }
  const wait = ms => new Promise(resolve => setTimeout(resolve, ms));
  const asked = performance.now();
  if (engine !== 'dash') video.play().catch(() => {});
  while (video.currentTime === 0 || video.readyState < 3 || video.paused) {
    await wait(50);
    if (performance.now() - asked > 40000) return { faults: [...faults, 'it does not begin'], sizes: [] };
  }
  if (levels() !== 2) return { faults: [`${levels()} renditions`], sizes: [] };
  await wait(3000);
  const [began, from] = [performance.now(), video.currentTime];
  let stalls = 0;
  video.addEventListener('waiting', () => { stalls += 1; });
  const sizes = [];
  for (let count = 0; count < switches; count += 1) {
    choose(count % 2);
    await wait(4000);
    sizes.push(video.videoWidth);
  }
  const played = video.currentTime - from;
  const took = (performance.now() - began) / 1000;
  return { faults, stalls, sizes, played, took };
}

async function attempt(engine, { script, list }) {
  const page = await browser.newPage();
  try {
    await page.goto(`${base}/.millpond/time`);
    await page.addScriptTag({ url: `${base}/.millpond/vendor/${script}` });
    const found = await page.evaluate(play, [engine, `${base}/${ladder}/${list}`, SWITCHES]);
    const note = JSON.stringify(found);
    const { faults, sizes, played, took } = found;
    if (faults.length) throw new Error(`${faults.join(', ')} ${note}`);
    if (new Set(sizes).size < 2) throw new Doubt(`sizes ${sizes} ${note}`);
    // A busy machine can cost a moment; a switch that stalls loses seconds.
    if (played < took * 0.95) throw new Doubt(`${played} s in ${took} s ${note}`);
    return note;
  } finally {
    await page.close();
  }
}

let [passed, failed] = [0, 0];
for (const [engine, files] of Object.entries(engines)) {
  const said = await withoutDoubt(() => attempt(engine, files))
    .then(note => { passed += 1; return `ok ${note}`; }, error => { failed += 1; return `FAILED ${error.message.split('\n')[0]}`; });
  console.log(`${ladder} ${engine.padEnd(10)} ${said}`);
}
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
