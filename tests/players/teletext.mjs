// Whether players in Chromium show teletext subtitles, and show them when the picture is lit.
// Usage: node teletext.mjs BASE_URL TEXT TITLE...
// The picture of each title is white while it has the text, and black otherwise.

import { launch } from './live_players.mjs';

const [base, text, ...titles] = process.argv.slice(2);
const browser = await launch();
let passed = 0;
let failed = 0;

// Each runs in the page, and chooses the first subtitles.
const engines = {
  hls: ['hls.min.js', 'index.m3u8', async url => {
    const player = new Hls();
    player.loadSource(url);
    player.attachMedia(window.video);
    // hls.js follows the menu of the browser.
    window.video.textTracks.addEventListener('addtrack', ({ track }) => { track.mode = 'showing'; });
  }],
  'hls-ts': ['hls.min.js', 'ts/index.m3u8'],
  dash: ['dash.all.min.js', 'index.mpd', async url => {
    const player = dashjs.MediaPlayer().create();
    player.initialize(window.video, url, true);
    player.on(dashjs.MediaPlayer.events.TEXT_TRACKS_ADDED, () => {
      player.enableText(true);
      player.setTextTrack(0);
    });
  }],
  shaka: ['shaka-player.compiled.js', 'index.mpd', async url => {
    const player = new shaka.Player();
    await player.attach(window.video);
    await player.load(url);
    player.selectTextTrack(player.getTextTracks()[0]);
  }],
  'shaka-hls': ['shaka-player.compiled.js', 'index.m3u8'],
};
engines['hls-ts'].push(engines.hls[2]);
engines['shaka-hls'].push(engines.shaka[2]);

// Run in the page, before and after the player begins.
function begin() {
  window.video = document.createElement('video');
  window.video.muted = true;
  document.body.append(window.video);
}

// Looks every 50 ms while the video plays, until it has looked 200 times since the text was first there.
async function watch(text) {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const seen = { both: 0, neither: 0, text: 0, light: 0 };
  for (let count = 0; count < 200;) {
    await new Promise(done => { setTimeout(done, 50); });
    // dash.js renews no manifest if the element plays before it is told to.
    if (window.video.paused && window.video.readyState > 2) window.video.play();
    const tracks = [...window.video.textTracks].filter(track => track.mode !== 'disabled');
    const cues = tracks.flatMap(track => [...(track.activeCues ?? [])]);
    const isShown = cues.some(cue => cue.getCueAsHTML().textContent.includes(text));
    const known = tracks.some(track => track.cues?.length);
    if (window.video.ended) window.video.currentTime = 0;
    if (window.video.readyState < 3 || window.video.paused || (!known && !count)) continue;
    canvas.drawImage(window.video, 0, 0, 1, 1);
    const isLit = canvas.getImageData(0, 0, 1, 1).data[0] > 127;
    seen[isShown ? (isLit ? 'both' : 'text') : (isLit ? 'light' : 'neither')] += 1;
    count += 1;
  }
  return seen;
}

const LATE = 'no subtitles after 60 s';
for (const title of titles) {
  for (const [name, [script, list, play]] of Object.entries(engines)) {
    let [problem, apart] = await shown(title, script, list, play);
    // On a busy machine dash.js sometimes loads no subtitles at all.
    if (problem === LATE) [problem, apart] = await shown(title, script, list, play);
    if (problem) failed += 1; else passed += 1;
    console.log(`${title} ${name.padEnd(10)} ${problem ? `FAILED ${problem}` : `ok, ${apart} of 200 apart`}`);
  }
}
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);

// Plays a title, and returns the problem and how often only one of text and light was there.
async function shown(title, script, list, play) {
  const page = await browser.newPage();
  let problem = '';
  let apart = 0;
  try {
    // A page without media of the same origin.
    await page.goto(`${base}/.millpond/time`);
    await page.addScriptTag({ url: `${base}/.millpond/vendor/${script}` });
    await page.evaluate(begin);
    const late = new Promise((_, fail) => { setTimeout(() => fail(new Error(LATE)), 60000).unref(); });
    await Promise.race([page.evaluate(play, `${base}/${title}/${list}`), late]);
    const seen = await Promise.race([page.evaluate(watch, text), late]);
    // Players tell of cues up to a quarter of a second late.
    apart = seen.text + seen.light;
    if (seen.both < 20 || seen.neither < 20 || apart > 30) problem = JSON.stringify(seen);
  } catch (error) {
    problem = error.message.split('\n')[0];
  }
  await page.close();
  return [problem, apart];
}
