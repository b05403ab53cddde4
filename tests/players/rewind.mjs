// Rewinds a live stream in Chromium with hls.js and dash.js: pauses and goes on, starts over, jumps by wall clock, returns to the live edge.
// Usage: node rewind.mjs BASE_URL STREAM_PATH PAUSE_SECONDS BEGAN [ENGINE,...]
// Pictures of the stream are those of bench/live_clock.py: each tells when it was made. BEGAN is the time of the first one, in
// milliseconds since 1970; the stream has run for at least 10 s.

import { Doubt, withoutDoubt } from './doubt.mjs';
import { installClock, launch, open } from './live_players.mjs';

const [base, stream, pause, began, names = 'hls-dvr,dash-dvr'] = process.argv.slice(2);
const browser = await launch();
let passed = 0;
let failed = 0;

// Milliseconds by which a picture may be off: it is made before it arrives, and read up to a picture later.
const NEAR = 1000;

// Runs in the page: resolves with the time of a picture that plays, in milliseconds since 1970, and what the player takes for its wall time.
async function shown(engine) {
  const DAY = 86_400_000;
  const { video, player } = window.playing;
  for (;;) {
    await new Promise(done => { video.requestVideoFrameCallback(done); });
    const time = window.readClock(video);
    if (time !== null) {
      const now = Date.now();
      const made = now - ((now - time) % DAY + DAY) % DAY;
      // Periods of the MPD begin at their wall times.
      return { made, wall: engine === 'hls-dvr' ? player.playingDate.getTime() : 1000 * video.currentTime };
    }
  }
}

// Runs in the page: seeks by seconds, or to the oldest picture, and resolves once it plays from there.
async function seek(seconds) {
  const { video, player } = window.playing;
  const oldest = () => (player.latestLevelDetails ? player.latestLevelDetails.fragmentStart : player.getDvrWindow().start);
  const asked = performance.now();
  const to = seconds === null ? oldest() : video.currentTime + seconds;
  video.currentTime = to;
  while (video.seeking || video.readyState < 3) {
    await new Promise(done => { setTimeout(done, 20); });
    if (performance.now() - asked < 20000) continue;
    const held = Array.from({ length: video.buffered.length }, (_, n) => `${video.buffered.start(n).toFixed(2)} to ${video.buffered.end(n).toFixed(2)} s`);
    throw new Error(`no picture at ${to} s, now ${video.currentTime}: the oldest is at ${oldest()} s, and the buffer has ${held.join(', ')}`);
  }
}

function near(found, expected, what, most = NEAR) {
  if (Math.abs(found - expected) > most) throw new Doubt(`${what}: ${((found - expected) / 1000).toFixed(1)} s off`);
}

const steps = {
  'pauses and goes on': async (page, now) => {
    const before = await now();
    await page.evaluate(() => { window.playing.video.pause(); });
    await page.waitForTimeout(1000 * pause);
    await page.evaluate(() => window.playing.video.play());
    near((await now()).made, before.made, 'first picture');
    await page.waitForTimeout(3000);
    near((await now()).made, before.made + 3000, 'picture after 3 s');
  },
  'starts over': async (page, now) => {
    await page.evaluate(seek, null);
    // HLS lists pictures from the second segment on where sound begins later than they do.
    near((await now()).made, Number(began) + 1000, 'picture', 1000 + NEAR);
  },
  'jumps by wall clock': async (page, now) => {
    const wanted = Math.round((Number(began) + Date.now()) / 2);
    const { wall } = await now();
    await page.evaluate(seek, (wanted - wall) / 1000);
    near((await now()).made, wanted, 'picture');
    await page.waitForTimeout(3000);
    near((await now()).made, wanted + 3000, 'picture after 3 s');
  },
  'returns to the live edge': async (page, now) => {
    const { wall } = await now();
    await page.evaluate(seek, (Date.now() - 3000 - wall) / 1000);
    near((await now()).made, Date.now() - 3000, 'picture');
  },
};

await Promise.all(names.split(',').map(async engine => {
  let page;
  for (const [what, run] of Object.entries(steps)) {
    const problem = await withoutDoubt(async () => {
      if (!page) {
        ({ page } = await open(browser, engine, base, stream));
        await page.evaluate(installClock);
      }
      await run(page, () => page.evaluate(shown, engine));
      const faults = await page.evaluate(() => window.playing.faults.splice(0));
      if (faults.length) throw new Error(faults.join(', '));
    }).then(() => '', error => error.message.split('\n')[0]);
    if (problem) failed += 1; else passed += 1;
    console.log(`${stream} ${engine.padEnd(10)} ${what.padEnd(26)} ${problem ? `FAILED ${problem}` : 'ok'}`);
  }
}));
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
