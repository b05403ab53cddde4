// Plays a live stream in Chromium with several players at once, and notes when each of them presents pictures.
// Usage: node faults.mjs BASE_URL STREAM_PATH ENGINE,...
// Prints `ready` when all play. At the end of standard input it prints, as JSON by engine, the times of the pictures in milliseconds since
// 1970, the width of the last picture, and the faults that the player told.

import { launch, open } from './live_players.mjs';

const [base, stream, names] = process.argv.slice(2);

// Runs in the page: notes the time of each picture.
function observe() {
  const { video } = window.playing;
  const shown = [];
  const presented = () => {
    shown.push(Math.round(performance.timeOrigin + performance.now()));
    video.requestVideoFrameCallback(presented);
  };
  video.requestVideoFrameCallback(presented);
  window.playing.shown = shown;
}

const browser = await launch();
const results = {};
const pages = await Promise.all(names.split(',').map(async engine => {
  try {
    const { page } = await open(browser, engine, base, stream);
    await page.evaluate(observe);
    return [engine, page];
  } catch (error) {
    results[engine] = { shown: [], size: '', faults: [error.message.split('\n')[0]] };
    return null;
  }
}));
console.log('ready');
for await (const _ of process.stdin);
for (const [engine, page] of pages.filter(Boolean)) {
  results[engine] = await page.evaluate(() => ({
    shown: window.playing.shown, size: `${window.playing.video.videoWidth}`, faults: window.playing.faults,
  }));
}
await browser.close();
console.log(JSON.stringify(results));
