'use strict';

// One asset: its player, its addresses, its tracks.

async function select(path, engine) {
  $('stage').hidden = !path;
  document.title = path ? `${nameOf(path)} – Millpond` : 'Millpond';
  mark();
  if (!path) {
    state.asset = null;
    return unload();
  }
  $('title').textContent = path;
  $('problem').hidden = true;
  let asset;
  try {
    asset = await getJson(`${here}/.millpond/asset?path=${encodeURIComponent(path)}`);
  } catch (error) {
    if (view.path === path) {
      await unload();
      problem(error.message);
    }
    return undefined;
  }
  // Another one may have been chosen meanwhile.
  if (view.path !== path) return undefined;
  state.asset = asset;
  showOutputs();
  return play(usable(engine));
}

// The output that each player plays.
const OUTPUTS = { stream: 'stream', hls: 'hls', 'hls-ts': 'hls-ts', dash: 'dash', shaka: 'dash', 'shaka-hls': 'hls', native: 'file' };

// The player to begin with: the chosen one, unless it plays nothing of this asset.
function usable(engine) {
  const { outputs, live, tracks } = state.asset;
  const has = name => Boolean(outputs[OUTPUTS[name]]);
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

const NAMES = {
  hls: 'HLS, fMP4', 'hls-ts': 'HLS, TS', dash: 'DASH', stream: 'MP4, live', 'hls-live': 'HLS, live', 'dash-live': 'DASH, live',
  rtsp: 'RTSP', rtsps: 'RTSP, TLS', file: 'File', poster: 'Poster', thumbnails: 'Thumbnails',
};

function showOutputs() {
  const { outputs, tracks, warnings, duration, live } = state.asset;
  showEngines();
  showLive();
  $('duration').parentElement.hidden = Boolean(live);
  $('duration').textContent = live ? '–' : clock(duration);
  const link = encodeURIComponent(state.asset.path).replace(/%2F/g, '/').replace(/%2C/g, ',');
  const page = outputRow('This page', `${here}/#path=${link}`);
  const shown = Object.entries(NAMES).filter(([key]) => outputs[key]);
  $('outputs').tBodies[0].replaceChildren(...shown.map(([key, name]) => outputRow(name, address(outputs[key]), outputs[key].reason)), page);
  $('tracks').hidden = !tracks.length;
  $('tracks').tBodies[0].replaceChildren(...tracks.map(trackRow));
  $('warnings').replaceChildren(...warnings.map(w => element('li', w)));
}

// A row with an address and what can be done with it, or with the reason that there is none.
function outputRow(name, href, reason) {
  const tr = element('tr');
  tr.append(element('th', name, { scope: 'row' }));
  const cell = element('td');
  if (!href) {
    cell.textContent = reason;
    cell.colSpan = 2;
    tr.append(cell);
    return tr;
  }
  cell.append(element('a', href, { href }));
  const copy = element('button', 'copy', { type: 'button', ariaLabel: `Copy the address of ${name}` });
  copy.onclick = async () => { copy.textContent = await copied(href) ? 'copied' : 'select it by hand'; };
  const code = element('button', 'QR', { type: 'button', ariaLabel: `Show the address of ${name} as a QR code` });
  code.onclick = () => showCode(name, href);
  const last = element('td', undefined, { className: 'tight' });
  last.append(copy, ' ', code);
  tr.append(cell, last);
  return tr;
}

// Shows an address for the camera of a phone.
async function showCode(name, address) {
  const { href, note } = await addressForOthers(address);
  const dark = href && qrCode(href);
  const picture = dark ? qrPicture(dark) : element('p', href ? 'The address is too long for a QR code.' : '');
  $('code-name').textContent = name;
  $('code-address').textContent = href || address;
  $('code-picture').replaceChildren(picture, element('p', note, { className: 'note' }));
  $('code').showModal();
}

function trackRow(t) {
  const tr = element('tr');
  const size = t.width ? `${t.width}×${t.height}` : '';
  const rate = t.bandwidth ? `${Math.round(t.bandwidth / 1000)} kbit/s` : '';
  const here = element('td', '');
  const cells = [['Kind', t.kind], ['Codec', t.codec], ['Size', size], ['Language', t.language || ''], ['Label', t.label || ''],
    ['Bandwidth', rate], ['Segments', t.segments]].map(([label, text]) => {
    const td = element('td', text);
    td.dataset.label = label;
    return td;
  });
  here.dataset.label = 'In this browser';
  tr.append(element('th', t.name, { scope: 'row' }), ...cells, here);
  ability(t).then(text => { here.textContent = text; });
  return tr;
}

// How this browser plays a track.
async function ability(t) {
  if (t.kind === 'text') return '';
  if (!decodable(t.kind, t.codec)) return "can't decode it";
  const contentType = `${t.kind}/mp4; codecs="${t.codec}"`;
  const bitrate = t.bandwidth || 1;
  const asked = t.kind === 'video' ? { video: { contentType, width: t.width || 1, height: t.height || 1, bitrate, framerate: 30 } }
    : { audio: { contentType, bitrate } };
  const info = await navigator.mediaCapabilities?.decodingInfo({ type: 'media-source', ...asked }).catch(() => null);
  return info && info.supported && !info.smooth ? 'plays, perhaps not smoothly' : 'plays';
}

// RTSP has a port of its own on the host that the page is from.
function address({ url, scheme, port, path }) {
  if (scheme) return `${scheme}://${location.hostname}:${port}${token}${path}`;
  return url ? here + url : null;
}

function problem(text) {
  $('problem').textContent = text;
  $('problem').hidden = false;
  state.problem = text;
}

async function unload() {
  const player = state.player;
  state.player = null;
  if (player) await player.destroy();
  $('seek').hidden = true;
  for (const id of ['quality', 'audio', 'text']) {
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
  $('problem').hidden = true;
  state.problem = null;
  const { tracks } = asset;
  const hasPictures = tracks.some(t => t.kind === 'video');
  const sound = undecodable(tracks, 'audio', 'sound is');
  try {
    const url = urlFor(engine);
    const missing = hasPictures ? undecodable(tracks, 'video', 'pictures are') : sound;
    if (missing) throw new Error(missing);
    // Pictures may play without their sound: that depends on the player.
    if (SCRIPTS[engine]) {
      $('startup').textContent = 'the player is loading';
      await script(SCRIPTS[engine]).finally(() => { $('startup').textContent = '–'; });
    }
    // Another one may have been chosen meanwhile.
    if (state.engine !== engine || state.asset !== asset) return undefined;
    return await load(url, engine);
  } catch (error) {
    const whole = sound && hasPictures && error.message !== sound ? new Error(`${error.message} ${sound}`) : error;
    problem(whole.message);
    throw whole;
  }
}

const CODECS = [
  [/^(hvc1|hev1)/, 'HEVC (H.265)'], [/^(dvh1|dvhe)/, 'Dolby Vision'], [/^av01/, 'AV1'], [/^vp0?9/, 'VP9'], [/^avc/, 'H.264'],
  [/^mp4v/, 'MPEG-4 Part 2'], [/^ac-3/, 'Dolby Digital (AC-3)'], [/^ec-3/, 'Dolby Digital Plus (E-AC-3)'], [/^ac-4/, 'AC-4'],
  [/^alac/i, 'ALAC'], [/^fLaC/i, 'FLAC'], [/^opus/i, 'Opus'], [/^mp4a\.(69|6B|34)/i, 'MP3'], [/^mp4a/, 'AAC'], [/^[if]pcm|^lpcm|^sowt|^twos/, 'PCM'],
];

// A sentence where this browser can decode no track of a kind; nothing where it can, or there is none.
function undecodable(tracks, kind, whatIs) {
  const all = tracks.filter(t => t.kind === kind);
  if (!all.length || all.some(t => decodable(kind, t.codec))) return null;
  const { codec } = all[0];
  const name = (CODECS.find(([form]) => form.test(codec)) || [null, codec])[1];
  const hint = /^(hvc1|hev1|dvh1|dvhe)/.test(codec) ? 'Safari can, and Chrome and Edge where the hardware decodes it. ' : '';
  const { outputs } = state.asset;
  const key = ['rtsp', 'hls', 'hls-ts', 'dash', 'file'].find(of => outputs[of] && address(outputs[of]));
  const other = key ? `Open ${address(outputs[key])} in VLC or mpv.` : 'The addresses below play in VLC, mpv and other players.';
  return `This browser can't decode ${name}, which the ${whatIs} coded in (${codec}). ${hint}${other}`;
}

// Resolves with the milliseconds from here to the first picture (or the first sound).
async function load(url, engine) {
  const begun = performance.now();
  const first = new Promise(done => {
    if (state.asset.tracks.some(t => t.kind === 'video') && video.requestVideoFrameCallback) {
      video.requestVideoFrameCallback(() => done());
    } else {
      video.addEventListener('playing', () => done(), { once: true });
    }
  });
  const failed = new Promise((_, fail) => { state.fail = text => { problem(text); fail(new Error(text)); }; });
  failed.catch(() => {});
  state.player = await engines[engine](url);
  video.play().catch(() => {});
  await Promise.race([first, failed]);
  state.startup = Math.round(performance.now() - begun);
  $('startup').textContent = `${state.startup} ms`;
  choices();
  return state.startup;
}

// ---- selectors and figures

function options(select, names, none, chosen, choose) {
  const all = none === null ? [] : [[none, -1]];
  const entries = all.concat(names.map((n, i) => [n, i]));
  select.replaceChildren(...entries.map(([text, value]) => element('option', text, { value })));
  select.disabled = names.length < (none === null ? 2 : 1);
  select.value = chosen;
  select.onchange = () => choose(Number(select.value));
}

function choices() {
  const p = state.player;
  if (!p) return;
  options($('quality'), p.renditions(), 'automatic', -1, n => p.setRendition(n));
  options($('audio'), p.audios(), null, p.audio ? p.audio() : 0, n => p.setAudio(n));
  options($('text'), p.texts(), 'off', -1, n => p.setText(n));
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
