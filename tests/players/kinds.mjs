// What players in Chromium know of tracks with `kind` boxes: one sound is the main one and plays, the other describes the pictures.
// Usage: node kinds.mjs BASE_URL ASSET
// ASSET has two sounds, in this order.

import { launch } from './live_players.mjs';

const [base, asset] = process.argv.slice(2);
const browser = await launch();
let passed = 0;
let failed = 0;

// Runs in the page, before the others.
function begin() {
  window.video = document.createElement('video');
  window.video.muted = true;
  window.video.autoplay = true;
  document.body.append(window.video);
  window.plays = new Promise(ready => { window.video.addEventListener('playing', ready, { once: true }); });
}

// Each runs in the page, and resolves with [whether it describes, whether it plays] of each sound.
async function hlsSounds(url) {
  const player = new Hls();
  player.loadSource(url);
  player.attachMedia(window.video);
  await window.plays;
  return player.audioTracks.map((track, index) => [/describes-video/.test(track.attrs.CHARACTERISTICS), index === player.audioTrack]);
}

async function dashSounds(url) {
  const player = dashjs.MediaPlayer().create();
  player.updateSettings({ debug: { logLevel: 0 } });
  player.initialize(window.video, url, true);
  await window.plays;
  const { index } = player.getCurrentTrackFor('audio');
  return player.getTracksFor('audio').map(track => [track.accessibility.some(({ value }) => value === 'description'), track.index === index]);
}

async function shakaSounds(url) {
  const player = new shaka.Player();
  await player.attach(window.video);
  await player.load(url);
  await window.plays;
  return player.getAudioTracks().map(track => [/description|describes-video/.test(track.roles), track.active]);
}

const engines = [
  ['hls', 'hls.min.js', hlsSounds, 'index.m3u8'],
  ['dash', 'dash.all.min.js', dashSounds, 'index.mpd'],
  ['shaka', 'shaka-player.compiled.js', shakaSounds, 'index.mpd'],
  ['shaka-hls', 'shaka-player.compiled.js', shakaSounds, 'index.m3u8'],
];

for (const [name, script, sounds, list] of engines) {
  const page = await browser.newPage();
  let problem = '';
  try {
    // A page without media of the same origin.
    await page.goto(`${base}/.millpond/time`);
    await page.addScriptTag({ url: `${base}/.millpond/vendor/${script}` });
    await page.evaluate(begin);
    const late = new Promise((_, fail) => { setTimeout(() => fail(new Error('nothing plays after 30 s')), 30000).unref(); });
    const found = await Promise.race([page.evaluate(sounds, `${base}/${asset}/${list}`), late]);
    if (JSON.stringify(found) !== '[[false,true],[true,false]]') problem = `[describes, plays] of each sound: ${JSON.stringify(found)}`;
  } catch (error) {
    problem = error.message.split('\n')[0];
  }
  if (problem) failed += 1; else passed += 1;
  console.log(`${asset} ${name.padEnd(10)} ${problem ? `FAILED ${problem}` : 'ok'}`);
  await page.close();
}
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
