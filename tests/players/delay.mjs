// Reads the clock in a live stream's pictures from Chromium's canvas, with each player; prints delays in milliseconds as JSON.
// Usage: node delay.mjs BASE_URL STREAM_PATH SECONDS [ENGINE,...]

import { engines, installClock, launch, open, watch } from './live_players.mjs';

const [base, stream, seconds, names] = process.argv.slice(2);

// Runs in the page: notes the delay of each picture at the time when it is presented, and the longest time without another picture.
function observe() {
  const { video } = window.playing;
  const DAY = 86_400_000;
  const found = { delays: [], unreadable: 0, standstill: 0 };
  let before = performance.now();
  const presented = (now, { expectedDisplayTime }) => {
    found.standstill = Math.max(found.standstill, Math.round(now - before));
    before = now;
    const time = window.readClock(video);
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
    await page.evaluate(installClock);
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
