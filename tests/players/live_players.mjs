// Players of live streams in Chromium, with no configuration but low latency.

import { chromium } from 'playwright-core';

// Script and address of each player. `mse` is the page's own player of one long response.
export const engines = {
  webrtc: { script: 'player.js', list: 'whep' },
  mse: { script: 'player.js', list: 'stream.mp4' },
  hls: { script: 'vendor/hls.min.js', list: 'index.m3u8' },
  'hls-ts': { script: 'vendor/hls.min.js', list: 'ts/index.m3u8' },
  dash: { script: 'vendor/dash.all.min.js', list: 'index.mpd' },
  'hls-dvr': { script: 'vendor/hls.min.js', list: 'index.m3u8?dvr' },
  'dash-dvr': { script: 'vendor/dash.all.min.js', list: 'index.mpd?dvr' },
  shaka: { script: 'vendor/shaka-player.compiled.js', list: 'index.mpd' },
  'shaka-hls': { script: 'vendor/shaka-player.compiled.js', list: 'index.m3u8' },
};

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
  });
}

// Opens a page where the engine plays the stream. Resolves with the page and the milliseconds until it played.
export async function open(browser, engine, base, stream) {
  const { script, list } = engines[engine];
  // Connections of its own: players that share the six of a browser wait for each other's held requests.
  const page = await browser.newPage();
  // A page without media of the same origin.
  await page.goto(`${base}/.millpond/time`);
  await page.addScriptTag({ url: `${base}/.millpond/${script}` });
  const startup = await page.evaluate(start, [engine, `${base}/${stream}/${list}`]);
  return { page, startup };
}

// Runs in the page: starts to play, and leaves the video, its faults and its latency in `window.playing`.
async function start([engine, url]) {
  const video = document.createElement('video');
  video.muted = true;
  document.body.append(video);
  const faults = [];
  let [player, latency] = [];
  if (engine === 'mse') {
    player = new LongResponse(video, url, words => { if (words) faults.push(words); });
    latency = () => player.delay();
  } else if (engine === 'webrtc') {
    player = new WebRtcPlayer(video, url, words => { if (words) faults.push(words); });
    latency = () => null;
  } else if (engine.startsWith('hls')) {
    player = new Hls({ lowLatencyMode: true });
    player.on(Hls.Events.ERROR, (_, data) => {
      if (!data.fatal) return;
      faults.push(data.details);
      // hls.js leaves it to pages to go on: it gives up at once where a connection is refused.
      setTimeout(() => {
        if (data.type === Hls.ErrorTypes.MEDIA_ERROR) player.recoverMediaError();
        else if (player.levels.length) player.startLoad();
        else player.loadSource(url);
      }, 2000);
    });
    player.loadSource(url);
    player.attachMedia(video);
    latency = () => player.latency;
  } else if (engine.startsWith('dash')) {
    player = dashjs.MediaPlayer().create();
    player.updateSettings({ debug: { logLevel: 0 } });
    player.on('error', event => faults.push(event.error.message));
    player.initialize(video, url, true);
    latency = () => player.getCurrentLiveLatency();
  } else {
    shaka.polyfill.installAll();
    player = new shaka.Player();
    player.configure({ streaming: { lowLatencyMode: true } });
    player.addEventListener('error', event => faults.push(`error ${event.detail.code}`));
    await player.attach(video);
    await player.load(url);
    latency = () => player.getStats().liveLatency;
  }
  const wait = ms => new Promise(resolve => { setTimeout(resolve, ms); });
  const asked = performance.now();
  // dash.js begins to play by itself, and misses it where somebody else does.
  if (!engine.startsWith('dash')) video.play().catch(() => {});
  while (video.currentTime === 0 || video.readyState < 3 || video.paused) {
    await wait(50);
    if (performance.now() - asked > 40000) throw new Error([...faults, 'it does not begin'].join(', '));
  }
  const startup = Math.round(performance.now() - asked);
  // The seek to the live edge is over a moment later.
  await wait(1000);
  faults.length = 0;
  window.playing = { video, player, faults, latency };
  return startup;
}

// Runs in the page: watches what plays for some seconds.
export async function watch(seconds) {
  const { video, faults, latency } = window.playing;
  const [began, from] = [performance.now(), video.currentTime];
  const stalls = [];
  video.addEventListener('waiting', () => stalls.push(Math.round(performance.now() - began)));
  await new Promise(resolve => { setTimeout(resolve, seconds * 1000); });
  const played = video.currentTime - from;
  const took = (performance.now() - began) / 1000;
  const { totalVideoFrames: pictures } = video.getVideoPlaybackQuality();
  return { faults, stalls, played, took, latency: latency(), pictures };
}

// Runs in the page: gives it `readClock`, which returns the time in the picture of a video, or null. Pictures are those of
// bench/live_clock.py: 8 by 4 cells, white for 1, the highest bit first. 27 bits are the milliseconds of the day in UTC, 5 bits their
// remainder by 31.
export function installClock() {
  const canvas = document.createElement('canvas');
  const size = { width: 8 * 16, height: 4 * 16 };
  Object.assign(canvas, size);
  const context = canvas.getContext('2d', { willReadFrequently: true });
  window.readClock = video => {
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
}
