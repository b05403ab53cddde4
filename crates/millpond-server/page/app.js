'use strict';

// The page: a list of assets, one player at a time, and what a test needs to drive it (window.millpond).

const $ = id => document.getElementById(id);
const video = $('video');
const state = { folder: '', asset: null, engine: 'hls', player: null, startup: null };

async function getJson(url) {
  const reply = await fetch(url);
  const body = await reply.json();
  if (!reply.ok) throw new Error(body.detail || `${reply.status} ${reply.statusText}`);
  return body;
}

function bytes(n) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (n >= 1000 && unit < units.length - 1) { n /= 1000; unit += 1; }
  return `${n.toFixed(n < 10 && unit ? 1 : 0)} ${units[unit]}`;
}

function element(tag, text, attributes = {}) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  Object.assign(e, attributes);
  return e;
}

// ---- the list

async function openFolder(folder) {
  state.folder = folder;
  $('list-note').textContent = '';
  let listing;
  try {
    listing = await getJson(`/.millpond/assets?folder=${encodeURIComponent(folder)}`);
  } catch (error) {
    $('list').replaceChildren();
    $('list-note').textContent = `This folder can't be listed: ${error.message}. Assets still play by their URL.`;
    return;
  }
  const rows = [];
  for (const path of listing.folders) rows.push(row(path, 'folder', () => openFolder(path)));
  for (const a of listing.assets) {
    const note = a.kind === 'folder' ? `all in one, ${bytes(a.bytes)}` : bytes(a.bytes);
    rows.push(row(a.path, note, () => select(a.path)));
  }
  $('list').replaceChildren(...rows);
  if (!rows.length) $('list-note').textContent = 'No media here.';
  crumbs();
  filter();
  const top = listing.folders.length === 1 && !listing.assets.length;
  if (top && !folder) openFolder(listing.folders[0]);
}

function row(path, note, go) {
  const name = path.replace(/\/$/, '').split('/').pop() + (path.endsWith('/') ? '/' : '');
  const button = element('button', name);
  button.append(element('small', note));
  button.dataset.path = path;
  button.onclick = go;
  const li = element('li');
  li.append(button);
  return li;
}

function crumbs() {
  const parts = state.folder.split('/').filter(Boolean);
  const links = [['all', '']].concat(parts.map((p, n) => [p, parts.slice(0, n + 1).join('/') + '/']));
  $('crumbs').replaceChildren(...links.flatMap(([name, path], n) => {
    const button = element('button', name);
    button.onclick = () => openFolder(path);
    return n ? [' / ', button] : [button];
  }));
}

function filter() {
  const wanted = $('filter').value.toLowerCase();
  for (const li of $('list').children) li.hidden = !li.textContent.toLowerCase().includes(wanted);
}

// ---- one asset

async function select(path, engine = state.engine) {
  $('stage').hidden = false;
  $('title').textContent = path;
  $('problem').hidden = true;
  for (const b of document.querySelectorAll('#list button')) b.setAttribute('aria-current', b.dataset.path === path);
  try {
    state.asset = await getJson(`/.millpond/asset?path=${encodeURIComponent(path)}`);
  } catch (error) {
    await unload();
    return problem(error.message);
  }
  showOutputs();
  await play(engine);
}

function showOutputs() {
  const { outputs, tracks, warnings } = state.asset;
  const names = { hls: 'HLS, fMP4', hls_ts: 'HLS, TS', dash: 'DASH', file: 'File' };
  $('outputs').tBodies[0].replaceChildren(...Object.entries(names).filter(([k]) => outputs[k]).map(([key, name]) => {
    const tr = element('tr');
    tr.append(element('td', name, { className: 'tight' }));
    const cell = element('td');
    if (outputs[key].url) {
      const href = new URL(outputs[key].url, location).href;
      cell.append(element('a', href, { href }));
      const copy = element('button', 'copy');
      copy.onclick = () => navigator.clipboard?.writeText(href);
      const last = element('td', undefined, { className: 'tight' });
      last.append(copy);
      tr.append(cell, last);
    } else {
      cell.textContent = outputs[key].reason;
      cell.colSpan = 2;
      tr.append(cell);
    }
    return tr;
  }));
  $('tracks').tBodies[0].replaceChildren(...tracks.map(t => {
    const tr = element('tr');
    const size = t.width ? `${t.width}×${t.height}` : t.language || '';
    const cells = [t.name, t.kind, t.codec, size, t.label || '', `${Math.round(t.bandwidth / 1000)} kbit/s`, `${t.segments} segments`];
    tr.append(...cells.map(c => element('td', c)));
    return tr;
  }));
  $('warnings').replaceChildren(...warnings.map(w => element('li', w)));
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
  video.removeAttribute('src');
  video.replaceChildren();
  video.load();
}

function urlFor(engine) {
  const key = { hls: 'hls', 'hls-ts': 'hls_ts', dash: 'dash', shaka: 'dash', 'shaka-hls': 'hls', native: 'file' }[engine];
  const output = state.asset.outputs[key];
  if (!output || !output.url) throw new Error(`${key}: ${output ? output.reason : 'this asset is not one file'}`);
  return output.url;
}

async function play(engine) {
  await unload();
  state.engine = engine;
  $('engine').value = engine;
  $('problem').hidden = true;
  state.problem = null;
  history.replaceState(null, '', `#path=${encodeURIComponent(state.asset.path)}&engine=${engine}`);
  try {
    return await load(urlFor(engine), engine);
  } catch (error) {
    problem(error.message);
    throw error;
  }
}

// Resolves with the milliseconds from here to the first picture (or the first sound).
async function load(url, engine) {
  const begun = performance.now();
  const first = new Promise(done => {
    if (state.asset && state.asset.tracks.some(t => t.kind === 'video') && video.requestVideoFrameCallback) {
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

// ---- the players, each behind the same few functions

const engines = {
  hls: hlsJs,
  'hls-ts': hlsJs,
  dash: dashJs,
  shaka: shakaPlayer,
  'shaka-hls': shakaPlayer,
  native: async url => {
    video.src = url;
    video.onerror = () => state.fail && state.fail(`browser: ${video.error.message || `code ${video.error.code}`}: ${url}`);
    return {
      destroy: async () => { video.onerror = null; },
      renditions: () => [], rendition: () => null, setRendition: () => {},
      audios: () => [], setAudio: () => {}, texts: () => [], setText: () => {},
    };
  },
};

const size = r => `${r.height || '?'}p, ${Math.round((r.bitrate || r.bandwidth || r.bitsPerSecond || 0) / 1000)} kbit/s`;

async function hlsJs(url) {
  const hls = new Hls({ renderTextTracksNatively: true });
  hls.on(Hls.Events.ERROR, (_, d) => {
    if (d.fatal) state.fail(`hls.js: ${d.type}, ${d.details}: ${d.error ? d.error.message : ''} ${d.url || (d.frag && d.frag.url) || url}`);
  });
  hls.loadSource(url);
  hls.attachMedia(video);
  return {
    destroy: async () => hls.destroy(),
    renditions: () => hls.levels.map(size),
    rendition: () => hls.currentLevel,
    setRendition: n => { hls.currentLevel = n; },
    audios: () => hls.audioTracks.map(t => t.name),
    audio: () => hls.audioTrack,
    setAudio: n => { hls.audioTrack = n; },
    texts: () => hls.subtitleTracks.map(t => t.name),
    setText: n => { hls.subtitleDisplay = n >= 0; hls.subtitleTrack = n; },
  };
}

async function dashJs(url) {
  const player = dashjs.MediaPlayer().create();
  // Enabled from the start: text that is enabled later stays without cues. Off is a choice of no track.
  player.updateSettings({ streaming: { text: { defaultEnabled: true } } });
  player.on('streamInitialized', () => player.setTextTrack(-1));
  player.on('error', e => state.fail(`dash.js: ${e.error.code}: ${e.error.message} ${(e.error.data && e.error.data.request && e.error.data.request.url) || url}`));
  player.initialize(video, new URL(url, location).href, false);
  const of = kind => player.getTracksFor(kind) || [];
  return {
    destroy: async () => player.destroy(),
    renditions: () => (player.getRepresentationsByType('video') || []).map(size),
    rendition: () => {
      const now = player.getCurrentRepresentationForType('video');
      return now ? (player.getRepresentationsByType('video') || []).findIndex(r => r.id === now.id) : -1;
    },
    setRendition: n => {
      player.updateSettings({ streaming: { abr: { autoSwitchBitrate: { video: n < 0 } } } });
      if (n >= 0) player.setRepresentationForTypeByIndex('video', n, true);
    },
    audios: () => of('audio').map(t => t.lang || 'und'),
    audio: () => of('audio').indexOf(player.getCurrentTrackFor('audio')),
    setAudio: n => player.setCurrentTrack(of('audio')[n]),
    texts: () => of('text').map(t => t.lang || 'und'),
    setText: n => player.setTextTrack(n),
  };
}

async function shakaPlayer(url) {
  shaka.polyfill.installAll();
  const player = new shaka.Player();
  await player.attach(video);
  const report = e => state.fail(`Shaka: ${e.code} (category ${e.category}): ${(e.data || []).filter(d => typeof d === 'string' || typeof d === 'number').join(' ')} ${url}`);
  player.addEventListener('error', e => report(e.detail));
  try {
    await player.load(url);
  } catch (e) {
    report(e);
    throw e;
  }
  const videos = () => player.getVideoTracks();
  const audios = () => player.getAudioTracks();
  return {
    destroy: () => player.destroy(),
    renditions: () => videos().map(size),
    rendition: () => videos().findIndex(t => t.active),
    setRendition: n => {
      player.configure({ abr: { enabled: n < 0 } });
      if (n >= 0) player.selectVideoTrack(videos()[n], true);
    },
    audios: () => audios().map(t => t.language),
    audio: () => audios().findIndex(t => t.active),
    setAudio: n => player.selectAudioTrack(audios()[n]),
    texts: () => player.getTextTracks().map(t => t.language),
    setText: n => {
      if (n >= 0) player.selectTextTrack(player.getTextTracks()[n]);
      else player.selectTextTrack(null);
    },
  };
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
  const n = p.rendition();
  $('rendition').textContent = p.renditions()[n] || (video.videoWidth ? `${video.videoWidth}×${video.videoHeight}` : '–');
}, 500);

$('filter').oninput = filter;
$('engine').onchange = () => state.asset && play($('engine').value).catch(() => {});

window.millpond = {
  load: async (path, engine) => {
    const asset = await getJson(`/.millpond/asset?path=${encodeURIComponent(path)}`);
    state.asset = asset;
    $('stage').hidden = false;
    $('title').textContent = path;
    showOutputs();
    return play(engine);
  },
  player: () => state.player,
  engineState: () => ({
    time: video.currentTime, width: video.videoWidth, paused: video.paused, ready: video.readyState,
    rendition: state.player ? state.player.rendition() : null,
    renditions: state.player ? state.player.renditions() : [],
    audios: state.player ? state.player.audios() : [],
    texts: state.player ? state.player.texts() : [],
    problem: state.problem,
  }),
};

const deep = new URLSearchParams(location.hash.slice(1));
openFolder((deep.get('path') || '').split('/').slice(0, -1).map(p => p + '/').join(''));
if (deep.get('path')) select(deep.get('path'), deep.get('engine') || 'hls').catch(() => {});
window.millpond.ready = true;
