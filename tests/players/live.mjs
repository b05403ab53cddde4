// Plays a live stream in Chromium with hls.js, dash.js and Shaka, with low latency, and tells delay and stalls.
// Usage: node live.mjs BASE_URL STREAM_PATH [SECONDS] [ENGINE,...]
// Two play side by side. With `together` behind the engines, all of them play at once, and a stall is a failure.

import { Doubt, withoutDoubt } from './doubt.mjs';
import { launch, open, watch } from './live_players.mjs';

const [base, stream, seconds = '20', names = 'hls,hls-ts,dash,shaka,shaka-hls', mode] = process.argv.slice(2);
const isStrict = mode === 'together';
const browser = await launch();
let passed = 0;
let failed = 0;

async function attempt(engine) {
  const { page, startup } = await open(browser, engine, base, stream);
  try {
    const { faults, stalls, played, took, latency, pictures } = await page.evaluate(watch, Number(seconds));
    const note = JSON.stringify({ startup, latency: latency && Number(latency.toFixed(2)), stalls: stalls.length, played, pictures });
    if (faults.length) throw new Error(`${faults.join(', ')} ${note}`);
    if (!pictures) throw new Error(`no picture ${note}`);
    if (isStrict && stalls.length) throw new Error(`stalls at ${stalls.join(', ')} ms ${note}`);
    // A busy machine can cost a moment; a player that does not keep up with the stream loses more.
    if (played < took * 0.9) throw new (isStrict ? Error : Doubt)(`${played} s in ${took} s ${note}`);
    return note;
  } finally {
    await page.close();
  }
}

async function play(engine) {
  const said = await withoutDoubt(() => attempt(engine))
    .then(note => { passed += 1; return `ok ${note}`; }, error => { failed += 1; return `FAILED ${error.message.split('\n')[0]}`; });
  console.log(`${stream} ${engine.padEnd(10)} ${said}`);
}

// Shaka comes late: it asks for a segment without an address where a playlist by HLS has one or two.
const rest = names.split(',');
while (rest.length) await Promise.all(rest.splice(0, isStrict ? rest.length : 2).map(play));
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
