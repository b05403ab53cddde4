// What players in Chromium know of captions within pictures: hls.js shows their text, with the name that the playlist gives them, and
// Shaka lists them.
// Usage: node captions.mjs BASE_URL ASSET TEXT
// ASSET has captions in CC1, without a language.

import { launch } from './live_players.mjs';

const [base, asset, text] = process.argv.slice(2);
const browser = await launch();
let passed = 0;
let failed = 0;

// Runs in the page, before the others.
function begin() {
  window.video = document.createElement('video');
  window.video.muted = true;
  document.body.append(window.video);
}

// Each runs in the page, and resolves with the captions: their name, and their text if the player has it.
async function hlsCaptions(url) {
  const player = new Hls();
  player.loadSource(url);
  player.attachMedia(window.video);
  for (;;) {
    const track = [...window.video.textTracks].find(({ kind }) => kind === 'captions');
    if (track) track.mode = 'hidden';
    if (track?.cues?.length) return [track.label, [...track.cues].map(cue => cue.text).join(' ')];
    await new Promise(done => { setTimeout(done, 50); });
  }
}

async function shakaCaptions(url) {
  const player = new shaka.Player();
  await player.attach(window.video);
  await player.load(url);
  return [player.getTextTracks().filter(({ kind }) => kind === 'caption').map(track => track.originalTextId).join(' ')];
}

const engines = [
  ['hls', 'hls.min.js', hlsCaptions, 'index.m3u8'],
  ['hls-ts', 'hls.min.js', hlsCaptions, 'ts/index.m3u8'],
  ['shaka', 'shaka-player.compiled.js', shakaCaptions, 'index.mpd'],
  ['shaka-hls', 'shaka-player.compiled.js', shakaCaptions, 'index.m3u8'],
];

for (const [name, script, captions, list] of engines) {
  const page = await browser.newPage();
  let problem = '';
  try {
    // A page without media of the same origin.
    await page.goto(`${base}/.millpond/time`);
    await page.addScriptTag({ url: `${base}/.millpond/vendor/${script}` });
    await page.evaluate(begin);
    const late = new Promise((_, fail) => { setTimeout(() => fail(new Error('no captions after 30 s')), 30000).unref(); });
    const [label, shown = text] = await Promise.race([page.evaluate(captions, `${base}/${asset}/${list}`), late]);
    if (label !== 'CC1' || !shown.includes(text)) problem = `name ${label}, text ${shown}`;
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
