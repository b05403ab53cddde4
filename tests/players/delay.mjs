// Reads the clock in a live stream's pictures from Chromium's canvas, with each player; prints delays in milliseconds as JSON.
// Usage: node delay.mjs BASE_URL STREAM_PATH SECONDS [ENGINE,...]
// Pictures are those of bench/live_clock.py: 8 by 4 cells, white for 1, the highest bit first. 27 bits are the milliseconds of
// the day in UTC, 5 bits their remainder by 31.

import { engines, launch, open, watch } from './live_players.mjs';

const [base, stream, seconds, names] = process.argv.slice(2);

// Runs in the page: notes the delay of each picture at the time when it is presented.
function observe() {
  const { video } = window.playing;
  const canvas = document.createElement('canvas');
  const size = { width: 8 * 16, height: 4 * 16 };
  Object.assign(canvas, size);
  const context = canvas.getContext('2d', { willReadFrequently: true });
  const DAY = 86_400_000;
  const found = { delays: [], unreadable: 0 };
  const read = () => {
    context.drawImage(video, 0, 0, size.width, size.height);
    const { data } = context.getImageData(0, 0, size.width, size.height);
    let [time, check] = [0, 0];
    for (let cell = 0; cell < 32; cell += 1) {
      const at = 4 * ((16 * Math.floor(cell / 8) + 8) * size.width + 16 * (cell % 8) + 8);
      const bit = data[at] > 127 ? 1 : 0;
      if (cell < 27) time = 2 * time + bit; else check = 2 * check + bit;
    }
    return time % 31 === check ? time : null;
  };
  const presented = (_, { expectedDisplayTime }) => {
    const time = read();
    if (time === null) found.unreadable += 1;
    else {
      const shown = performance.timeOrigin + Math.max(performance.now(), expectedDisplayTime);
      found.delays.push(Math.round(((shown % DAY) - time + DAY) % DAY));
    }
    video.requestVideoFrameCallback(presented);
  };
  video.requestVideoFrameCallback(presented);
  window.playing.observed = found;
}

const browser = await launch();
const results = {};
for (const engine of names ? names.split(',') : Object.keys(engines)) {
  try {
    const { page, startup } = await open(browser, engine, base, stream);
    // Players steer to the live edge for some seconds.
    await page.evaluate(watch, 5);
    await page.evaluate(observe);
    const { faults, stalls, played, took, latency } = await page.evaluate(watch, Number(seconds));
    const observed = await page.evaluate(() => window.playing.observed);
    results[engine] = { ...observed, startup, faults, stalls, played, took, latency };
    await page.close();
  } catch (error) {
    results[engine] = { problem: error.message.split('\n')[0] };
  }
}
await browser.close();
console.log(JSON.stringify(results));
