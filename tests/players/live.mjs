// Plays a live stream in Chromium with hls.js, dash.js and Shaka, with low latency, and tells delay and stalls.
// Usage: node live.mjs BASE_URL STREAM_PATH [SECONDS] [ENGINE,...]
// Two play side by side. With `together` behind the engines, all of them play at once, and a stall is a failure.

import { launch, open, watch } from './live_players.mjs';

const [base, stream, seconds = '20', names = 'hls,hls-ts,dash,shaka,shaka-hls', mode] = process.argv.slice(2);
const isStrict = mode === 'together';
const browser = await launch();
let passed = 0;
let failed = 0;

async function attempt(engine) {
  let problem;
  let note = '';
  try {
    const { page, startup } = await open(browser, engine, base, stream);
    const { faults, stalls, played, took, latency, pictures } = await page.evaluate(watch, Number(seconds));
    note = JSON.stringify({ startup, latency: latency && Number(latency.toFixed(2)), stalls: stalls.length, played, pictures });
    if (faults.length) problem = faults.join(', ');
    // A busy machine can cost a moment; a player that does not keep up with the stream loses more.
    else if (played < took * 0.9) problem = `${played} s in ${took} s`;
    else if (!pictures) problem = 'no picture';
    else if (isStrict && stalls.length) problem = `stalls at ${stalls.join(', ')} ms`;
    await page.close();
  } catch (error) {
    problem = error.message.split('\n')[0];
  }
  return { problem, note };
}

// A machine that compiles beside decodes too slowly for some seconds: where only the pace was missed, it is tried again.
async function play(engine) {
  let { problem, note } = await attempt(engine);
  if (!isStrict && / s in /.test(problem)) ({ problem, note } = await attempt(engine));
  if (problem) failed += 1; else passed += 1;
  console.log(`${stream} ${engine.padEnd(10)} ${problem ? `FAILED ${problem}` : 'ok'} ${note}`);
}

// Shaka comes late: it asks for a segment without an address where a playlist by HLS has one or two.
const rest = names.split(',');
while (rest.length) await Promise.all(rest.splice(0, isStrict ? rest.length : 2).map(play));
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
