'use strict';

// One asset: what plays it, from its choice to its first picture.

async function select(path, engine) {
  $('stage').hidden = !path;
  document.title = path ? `${$('title').textContent} – Millpond` : 'Millpond';
  keepPlace();
  remark();
  cancelNext();
  noProblem();
  dropProgrammes(path);
  if (!path) {
    state.asset = null;
    return unload();
  }
  video.pause();
  let asset;
  try {
    asset = await getJson(`${here}/.millpond/asset?path=${encodeURIComponent(path)}`);
  } catch (error) {
    if (view.path === path) {
      state.asset = null;
      await unload();
      problem(error.message, error);
    }
    return undefined;
  }
  // Another one may have been chosen meanwhile.
  if (view.path !== path) return undefined;
  state.asset = asset;
  state.isChosen = true;
  showOutputs();
  offerProgrammes(asset);
  offerNext();
  return play(usable(engine));
}

// Offers the programmes of a recording. Only titles with several ones load the script for it; without it, the programme plays all the same.
function offerProgrammes(asset) {
  const { programmes = [] } = asset;
  if (programmes.filter(({ path }) => path).length < 2) return;
  script('programmes.js').then(() => state.asset === asset && showProgrammes(asset), () => {});
}

// Takes the choice of programmes away, unless the path is one of the same recording: the choice may have the focus.
function dropProgrammes(path) {
  for (const each of document.querySelectorAll('[data-recording]')) if (each.dataset.recording !== fileOf(path)) each.remove();
}

// The output that each player plays.
const OUTPUTS = { webrtc: 'whep', stream: 'stream', hls: 'hls', 'hls-ts': 'hls-ts', dash: 'dash', shaka: 'dash', 'shaka-hls': 'hls', native: 'file' };

// The players' names in the list of players.
const ENGINE_NAMES = {
  webrtc: 'WebRTC', stream: 'live MP4', hls: 'hls.js, fMP4', 'hls-ts': 'hls.js, TS', dash: 'dash.js', shaka: 'Shaka, DASH', 'shaka-hls': 'Shaka, HLS', native: 'browser, file',
};
$('engine').replaceChildren(...Object.entries(ENGINE_NAMES).map(([engine, name]) => new Option(name, engine)));

// The first player: the chosen one, unless no player has that name, or it plays nothing of this asset.
function usable(wanted) {
  const { outputs, live, tracks } = state.asset;
  const has = name => Boolean(outputs[OUTPUTS[name]]);
  // The least delay, where nothing is lost by it.
  if (wanted === 'live' && has('webrtc') && webRtcPlays(tracks)) return 'webrtc';
  const engine = wanted === 'live' ? 'stream' : Object.hasOwn(OUTPUTS, wanted) ? wanted : 'hls';
  // One response has all tracks. Playlists leave out sound that no browser decodes, so that the pictures play.
  const isSilent = live && tracks.some(t => t.kind === 'video') && undecodable(tracks, 'audio', 'sound is');
  if (isSilent && engine === 'stream' && has('hls')) return 'hls';
  if (has(engine) || !(live || engine === 'stream')) return engine;
  return ['stream', 'hls'].find(name => has(name) && (live || name !== 'stream')) || engine;
}

// Offers the players of this asset. Those of a stored one are all offered, and say what is missing.
function showEngines() {
  const { outputs, live } = state.asset;
  for (const option of $('engine').options) {
    option.hidden = option.disabled = (live || option.value === 'stream') && !outputs[OUTPUTS[option.value]];
  }
}

function showLive() {
  const { live } = state.asset;
  for (const id of ['live-state', 'delay']) $(id).parentElement.hidden = !live && state.engine !== 'stream';
  $('live-state').textContent = live ? stateText(live) : 'channel';
  $('live').hidden = !live && state.engine !== 'stream';
  $('scrub-time').hidden = !$('live').hidden;
}

// What becomes of the stream that is shown.
async function watchStream() {
  const { asset } = state;
  if (!asset || !asset.live || document.hidden) return;
  const now = await getJson(`${here}/.millpond/asset?path=${encodeURIComponent(asset.path)}`).catch(() => null);
  if (!now || !now.live || state.asset !== asset) return;
  const isNew = JSON.stringify(now.tracks) !== JSON.stringify(asset.tracks);
  Object.assign(asset, now);
  showLive();
  if (isNew) showOutputs();
}

async function unload() {
  const player = state.player;
  state.player = null;
  state.hasChoices = false;
  if (player) await player.destroy();
  $('seek').hidden = $('subtitles').hidden = $('waiting').hidden = true;
  for (const id of ['quality', 'audio', 'text', 'speed']) {
    $(id).replaceChildren();
    $(id).disabled = true;
  }
  for (const id of ['startup', 'rendition', 'buffer', 'delay', 'dropped']) $(id).textContent = '–';
  video.removeAttribute('src');
  video.replaceChildren();
  video.load();
}

function urlFor(engine) {
  const key = OUTPUTS[engine];
  const output = state.asset.outputs[key];
  if (!output || !output.url) throw new Error(`${key}: ${output ? output.reason : 'this asset is not one file'}`);
  return here + output.url;
}

async function play(engine) {
  const { asset } = state;
  await unload();
  offerSeeking(video, asset);
  state.engine = engine;
  $('engine').value = engine;
  showLive();
  showWarnings();
  noProblem();
  const { tracks } = asset;
  const hasPictures = tracks.some(t => t.kind === 'video');
  const sound = undecodable(tracks, 'audio', 'sound is');
  showSign(asset, hasPictures);
  $('waiting').hidden = false;
  try {
    const url = urlFor(engine);
    const missing = hasPictures ? undecodable(tracks, 'video', 'pictures are') : sound;
    if (missing) throw Object.assign(new Error(missing), { code: UNDECODABLE });
    // Pictures may play without their sound: that depends on the player.
    if (SCRIPTS[engine]) {
      $('startup').textContent = 'the player is loading';
      await script(SCRIPTS[engine]).finally(() => { $('startup').textContent = '–'; });
    }
    // Another one may have been chosen meanwhile.
    if (state.engine !== engine || state.asset !== asset) return undefined;
    return await load(url, engine);
  } catch (error) {
    const { code } = error;
    const whole = sound && hasPictures && error.message !== sound ? Object.assign(new Error(`${error.message} ${sound}`), { code }) : error;
    problem(whole.message, { code });
    throw whole;
  }
}

// Resolves with the milliseconds from here to the first picture (or the first sound).
async function load(url, engine) {
  const { asset } = state;
  const begun = performance.now();
  const first = new Promise(done => {
    if (asset.tracks.some(t => t.kind === 'video') && video.requestVideoFrameCallback) {
      video.requestVideoFrameCallback(() => done());
    } else {
      video.addEventListener('playing', () => done(), { once: true });
    }
  });
  const failed = new Promise((_, fail) => {
    state.fail = (text, fault = {}) => {
      problem(text, fault);
      fail(Object.assign(new Error(text), { code: fault.code }));
    };
  });
  failed.catch(() => {});
  if (state.isChosen) prepare();
  state.player = await engines[engine](url);
  begin();
  await Promise.race([first, failed]);
  state.startup = Math.round(performance.now() - begun);
  $('startup').textContent = `${state.startup} ms`;
  if (state.isChosen) settle(asset);
  const missing = missingSound(asset, engine);
  if (missing) hint(missing, 8000);
  choices();
  return state.startup;
}

setInterval(() => {
  const p = state.player;
  if (!p) return;
  const ahead = [...Array(video.buffered.length).keys()]
    .map(n => [video.buffered.start(n), video.buffered.end(n)])
    .find(([a, b]) => a <= video.currentTime + 0.1 && video.currentTime <= b);
  $('buffer').textContent = ahead ? `${(ahead[1] - video.currentTime).toFixed(1)} s` : '–';
  $('dropped').textContent = video.getVideoPlaybackQuality ? video.getVideoPlaybackQuality().droppedVideoFrames : '–';
  const delay = p.delay ? p.delay() : null;
  $('delay').textContent = Number.isFinite(delay) ? `${delay.toFixed(1)} s` : '–';
  const n = p.rendition();
  $('rendition').textContent = p.renditions()[n] || (video.videoWidth ? `${video.videoWidth}×${video.videoHeight}` : '–');
}, 500);

setInterval(watchStream, 1000);
watchSeeking(video);
watchControls();
watchTouches();
watchPlaces();
addEventListener('keydown', pressed);
$('engine').onchange = () => state.asset && go({ engine: $('engine').value }, true);
