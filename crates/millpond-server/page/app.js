'use strict';

// The page: a list of assets, one player at a time, and what a test needs to drive it (window.millpond).

const $ = id => document.getElementById(id);
const video = $('video');
const state = { asset: null, engine: 'hls', player: null, startup: null, problem: null };

// What paths begin with where the page was opened with a token: /~TOKEN/.
const prefix = (location.pathname.match(/^\/~[^/]+/) || [''])[0];

async function getJson(url, signal) {
  const reply = await fetch(url, { signal });
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

function clock(seconds) {
  const whole = Math.round(seconds);
  const two = n => String(n).padStart(2, '0');
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

function element(tag, text, attributes = {}) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  Object.assign(e, attributes);
  return e;
}

// ---- what is shown, as the address bar has it: folder, search, asset and player

let view = { folder: '', q: '', path: '', engine: 'hls' };

function parseView() {
  const told = new URLSearchParams(location.hash.slice(1));
  const path = told.get('path') || '';
  // A link to an asset alone shows the folder that it lies in.
  const folder = told.has('folder') ? told.get('folder') : path.split('/').slice(0, -1).map(part => `${part}/`).join('');
  const known = [...$('engine').options].map(option => option.value);
  const engine = known.includes(told.get('engine')) ? told.get('engine') : 'hls';
  return { folder, q: told.get('q') || '', path, engine };
}

function hashOf({ folder, q, path, engine }) {
  const words = new URLSearchParams();
  if (folder) words.set('folder', folder);
  if (q) words.set('q', q);
  if (path) {
    // Else the folder would be taken from the path.
    if (!folder) words.set('folder', '');
    words.set('path', path);
    words.set('engine', engine);
  }
  return `#${words}`;
}

// Shows something else. It is a step of its own for the Back button, unless it replaces the one before.
function go(change, replaces = false) {
  const next = { ...view, ...change };
  const hash = hashOf(next);
  if (hash !== location.hash) history[replaces ? 'replaceState' : 'pushState'](null, '', hash);
  return show(next);
}

async function show(next) {
  const before = view;
  view = next;
  if ($('filter').value !== next.q) $('filter').value = next.q;
  const isOther = next.folder !== before.folder || next.q !== before.q;
  const listed = isOther || !show.begun ? list() : Promise.resolve(mark());
  const isNew = next.path !== before.path || (next.path && next.engine !== before.engine);
  const played = isNew ? select(next.path, next.engine) : Promise.resolve();
  show.begun = true;
  await Promise.all([listed, played.catch(() => {})]);
}

// ---- the list

// Folders that a search looks into, at most, and how many at a time.
const FOLDERS = 300;
const AT_ONCE = 4;
// Matches that are shown, at most.
const MATCHES = 200;

let listing = new AbortController();
const lists = new Map();

function folderList(folder, signal) {
  return getJson(`${prefix}/.millpond/assets?folder=${encodeURIComponent(folder)}`, signal);
}

async function list() {
  listing.abort();
  listing = new AbortController();
  const { signal } = listing;
  crumbs();
  try {
    await (view.q ? search(view.q.toLowerCase(), signal) : folder(signal));
  } catch (error) {
    if (signal.aborted) return;
    rows([]);
    note(`This folder can't be listed: ${error.message}. Assets still play by their URL.`);
  }
}

async function folder(signal) {
  const found = await folderList(view.folder, signal);
  if (signal.aborted) return;
  const only = found.folders.length === 1 && !found.assets.length && !view.folder;
  // An address that was typed meanwhile stays: its event is still to come.
  if (only && hashOf(parseView()) !== hashOf(view)) return undefined;
  if (only) return go({ folder: found.folders[0] }, true);
  isLive = Boolean(found.streams);
  $('open-stream').hidden = !isLive;
  if (isLive) return streams(found.streams);
  rows([...found.folders.map(path => folderRow(path, false, found.live)), ...found.assets.map(asset => assetRow(asset))]);
  const none = found.folders.length || found.assets.length ? [] : ['No media that is served here.'];
  note([...none, ...leftOut(found['left-out'])].join(' '));
}

// Whether the folder that is shown has live streams. Their names are known to their sources only: here are those that were opened.
let isLive = false;

function streams(all) {
  rows(all.map(stream => streamRow(stream)));
  const open = `Open /${view.folder}NAME: its first viewer opens the source.`;
  note(all.some(stream => stream.state === 'running') ? '' : `No stream is running. ${open}`);
}

// Files of other formats, with the command that makes an MP4 file of the first.
function leftOut(files) {
  if (!files.length) return [];
  const names = files.slice(0, 3).map(file => `${nameOf(file.path)} (${file.format})`);
  const more = files.length > 3 ? ` and ${files.length - 3} more` : '';
  const command = files[0].command ? [`For an MP4 file: ${files[0].command}`] : [];
  return [`Left out: ${names.join(', ')}${more}.`, ...command];
}

// Looks for names in all folders, the one that is shown first, breadth first.
async function search(wanted, signal) {
  const queue = [view.folder, ''].filter((path, n, all) => all.indexOf(path) === n);
  const seen = new Set(queue);
  const found = [];
  let looked = 0;
  let failed = 0;
  const has = path => path.replace(/\/$/, '').split('/').pop().toLowerCase().includes(wanted);
  const paint = () => rows(found.slice(0, MATCHES));
  const look = async () => {
    while (queue.length && looked < FOLDERS && found.length < MATCHES && !signal.aborted) {
      const path = queue.shift();
      looked += 1;
      try {
        if (!lists.has(path)) lists.set(path, await folderList(path, signal));
        const { folders, assets, streams: running, live } = lists.get(path);
        for (const inner of folders.filter(inner => !seen.has(inner))) {
          seen.add(inner);
          queue.push(inner);
          if (has(inner)) found.push(folderRow(inner, true, live));
        }
        found.push(...(running || []).filter(stream => has(stream.path)).map(stream => streamRow(stream, true)));
        found.push(...assets.filter(a => has(a.path) && !(a.kind === 'folder' && path === '')).map(a => assetRow(a, true)));
      } catch (error) {
        if (signal.aborted) return;
        failed += 1;
      }
      if (!signal.aborted) paint();
    }
  };
  lists.clear();
  note('Searching …');
  // A worker that finds the queue empty may be early: another one still looks into a folder with folders.
  while (queue.length && looked < FOLDERS && found.length < MATCHES && !signal.aborted) {
    await Promise.all(Array.from({ length: AT_ONCE }, look));
  }
  if (signal.aborted) return;
  paint();
  const folders = `${looked} folder${looked === 1 ? '' : 's'}`;
  const stopped = queue.length ? '; the search stopped there: open a folder or type more' : '';
  const refused = failed ? `; ${failed} can't be listed` : '';
  note(`${found.length ? `${Math.min(found.length, MATCHES)} found` : 'Nothing found'} in ${folders}${refused}${stopped}.`);
}

function note(text) { $('list-note').textContent = text; }

const nameOf = path => path.replace(/\/$/, '').split('/').pop();

function folderRow(path, isMatch = false, live = []) {
  const side = live.includes(path) ? 'live' : 'folder';
  return { path, kind: 'folder', title: `${nameOf(path)}/`, below: isMatch ? path : '', side, act: () => go({ folder: path, q: '' }) };
}

function assetRow(asset, isMatch = false) {
  const isCopied = asset.state === 'copying';
  const several = { folder: 'all in one, ', list: `${asset.files?.length} files in one, ` }[asset.kind] || '';
  return {
    path: asset.path, kind: asset.kind, title: nameOf(asset.kind === 'list' ? asset.files[0] : asset.path),
    below: isMatch ? asset.path : '', side: isCopied ? 'still being copied' : several + bytes(asset.bytes),
    lasts: !isCopied, act: () => go({ path: asset.path }),
  };
}

function streamRow(stream, isMatch = false) {
  const { path, state: name, since } = stream;
  const inside = path.startsWith(view.folder) ? path.slice(view.folder.length) : path;
  const side = name === 'lost' && since ? `lost since ${sinceText(since)}` : name;
  return { path, kind: 'stream', title: isMatch || !inside ? nameOf(path) : inside, below: isMatch ? path : '', side, hint: stateText(stream), stream: name, act: () => go({ path, engine: 'stream' }) };
}

// Shows rows. The focus stays where it was, also when the row is made anew; in another folder it goes to the first row.
function rows(wanted) {
  const active = document.activeElement;
  const had = $('list').contains(active) ? active.dataset.key : null;
  const old = new Map([...$('list').children].map(li => [li.firstChild.dataset.key, li]));
  $('list').replaceChildren(...wanted.map(row => {
    const key = `${row.kind}:${row.path}`;
    const known = old.get(key);
    const li = known && known.dataset.side === row.side ? known : listItem(row, key);
    li.firstChild.onclick = row.act;
    return li;
  }));
  if (had !== null) {
    const buttons = [...$('list').querySelectorAll('button')];
    const next = buttons.find(button => button.dataset.key === had) || buttons[0] || $('filter');
    next.focus({ preventScroll: buttons.some(button => button.dataset.key === had) });
  }
  mark();
}

function listItem({ path, title, below, side, lasts, hint, stream }, key) {
  const button = element('button');
  const name = element('span', title, { className: 'name' });
  if (below) name.append(element('small', below));
  const facts = element('small', side, { className: 'side' });
  button.append(name, facts);
  if (hint) button.title = hint;
  if (stream) facts.dataset.stream = stream;
  button.dataset.path = path;
  button.dataset.key = key;
  const li = element('li');
  li.dataset.side = side;
  li.append(button);
  if (lasts) durations.observe(li);
  return li;
}

function mark() {
  for (const b of document.querySelectorAll('#list button')) {
    b.setAttribute('aria-current', String(b.dataset.path === view.path));
  }
}

function crumbs() {
  const parts = view.folder.split('/').filter(Boolean);
  const links = [['all', '']].concat(parts.map((p, n) => [p, parts.slice(0, n + 1).join('/') + '/']));
  const hadFocus = $('crumbs').contains(document.activeElement) ? document.activeElement.dataset.folder : null;
  $('crumbs').replaceChildren(...links.flatMap(([name, path], n) => {
    const button = element('button', name);
    button.dataset.folder = path;
    button.onclick = () => go({ folder: path, q: '' });
    return n ? [' / ', button] : [button];
  }));
  if (hadFocus !== null) [...$('crumbs').children].find(b => b.dataset.folder === hadFocus)?.focus();
}

// ---- durations of the rows that are seen, one after the other

const durations = {
  known: new Map(),
  queue: [],
  isBusy: false,
  observe(li) { this.observer.observe(li); },
  observer: new IntersectionObserver(entries => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting && target.isConnected) {
        durations.observer.unobserve(target);
        durations.queue.push(target);
      }
    }
    durations.next();
  }),
  async next() {
    if (this.isBusy) return;
    this.isBusy = true;
    while (this.queue.length) {
      const li = this.queue.shift();
      if (!li.isConnected) continue;
      const button = li.firstChild;
      const { path, key } = button.dataset;
      if (!this.known.has(key)) {
        const told = await getJson(`${prefix}/.millpond/duration?path=${encodeURIComponent(path)}`).catch(() => ({}));
        this.known.set(key, told.duration);
      }
      const duration = this.known.get(key);
      if (duration > 0) button.lastChild.textContent = `${clock(duration)}, ${li.dataset.side}`;
    }
    this.isBusy = false;
  },
};

// ---- one asset

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
    asset = await getJson(`${prefix}/.millpond/asset?path=${encodeURIComponent(path)}`);
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
  const plays = name => Boolean(outputs[OUTPUTS[name]]);
  // One response has all tracks. Playlists leave out sound that no browser decodes, so that the pictures play.
  const isSilent = live && tracks.some(t => t.kind === 'video') && undecodable(tracks, 'audio', 'sound is');
  if (isSilent && engine === 'stream' && plays('hls')) return 'hls';
  if (plays(engine) || !(live || engine === 'stream')) return engine;
  return ['stream', 'hls'].find(name => plays(name) && (live || name !== 'stream')) || engine;
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
  const now = await getJson(`${prefix}/.millpond/asset?path=${encodeURIComponent(asset.path)}`).catch(() => null);
  if (!now || !now.live || state.asset !== asset) return;
  const isNew = JSON.stringify(now.tracks) !== JSON.stringify(asset.tracks);
  Object.assign(asset, now);
  showLive();
  if (isNew) showOutputs();
}

function showOutputs() {
  const { outputs, tracks, warnings, duration, live } = state.asset;
  showEngines();
  showLive();
  $('duration').parentElement.hidden = Boolean(live);
  $('duration').textContent = live ? '–' : clock(duration);
  const names = { hls: 'HLS, fMP4', 'hls-ts': 'HLS, TS', dash: 'DASH', stream: 'MP4, live', 'hls-live': 'HLS, live', 'dash-live': 'DASH, live', rtsp: 'RTSP', rtsps: 'RTSP, TLS', file: 'File' };
  $('outputs').tBodies[0].replaceChildren(...Object.entries(names).filter(([k]) => outputs[k]).map(([key, name]) => {
    const tr = element('tr');
    tr.append(element('th', name, { scope: 'row' }));
    const cell = element('td');
    const href = address(outputs[key]);
    if (href) {
      cell.append(element('a', href, { href }));
      const copy = element('button', 'copy', { type: 'button' });
      copy.setAttribute('aria-label', `Copy the address of ${name}`);
      copy.onclick = async () => { copy.textContent = await copied(href) ? 'copied' : 'select it by hand'; };
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
  $('tracks').hidden = !tracks.length;
  $('tracks').tBodies[0].replaceChildren(...tracks.map(t => {
    const tr = element('tr');
    const size = t.width ? `${t.width}×${t.height}` : '';
    const cells = [['Kind', t.kind], ['Codec', t.codec], ['Size', size], ['Language', t.language || ''], ['Label', t.label || ''],
      ['Bandwidth', t.bandwidth ? `${Math.round(t.bandwidth / 1000)} kbit/s` : ''], ['Segments', t.segments]];
    tr.append(element('th', t.name, { scope: 'row' }));
    tr.append(...cells.map(([label, text]) => {
      const td = element('td', text);
      td.dataset.label = label;
      return td;
    }));
    return tr;
  }));
  $('warnings').replaceChildren(...warnings.map(w => element('li', w)));
}

// RTSP has a port of its own on the host that the page is from.
function address({ url, scheme, port, path }) {
  if (scheme) return `${scheme}://${location.hostname}:${port}${prefix}${path}`;
  return url ? new URL(prefix + url, location).href : null;
}

// Pages of plain HTTP from other machines have no clipboard but the old way.
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = element('textarea', text);
    const active = document.activeElement;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    active?.focus();
    return done;
  }
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
  return prefix + output.url;
}

async function play(engine) {
  await unload();
  state.engine = engine;
  $('engine').value = engine;
  showLive();
  $('problem').hidden = true;
  state.problem = null;
  const { tracks } = state.asset;
  const hasPictures = tracks.some(t => t.kind === 'video');
  const sound = undecodable(tracks, 'audio', 'sound is');
  try {
    const url = urlFor(engine);
    const missing = hasPictures ? undecodable(tracks, 'video', 'pictures are') : sound;
    if (missing) throw new Error(missing);
    // Pictures may play without their sound: that depends on the player.
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
  const source = window.ManagedMediaSource || window.MediaSource;
  const plays = t => {
    const type = `${t.kind}/mp4; codecs="${t.codec}"`;
    return (source && source.isTypeSupported(type)) || video.canPlayType(type) !== '';
  };
  const all = tracks.filter(t => t.kind === kind);
  if (!all.length || all.some(plays)) return null;
  const { codec } = all[0];
  const name = (CODECS.find(([form]) => form.test(codec)) || [null, codec])[1];
  const hint = /^(hvc1|hev1|dvh1|dvhe)/.test(codec) ? 'Safari can, and Chrome and Edge where the hardware decodes it. ' : '';
  return `This browser can't decode ${name}, which the ${whatIs} coded in (${codec}). `
    + `${hint}The addresses below play in VLC, mpv and other players.`;
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

// ---- the players, each behind the same few functions

const engines = {
  stream: longResponse,
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

async function longResponse(url) {
  const player = new LongResponse(video, url, words => {
    if (words) state.fail(words);
    else {
      $('problem').hidden = true;
      state.problem = null;
    }
  });
  return {
    destroy: async () => player.destroy(),
    delay: () => player.delay(),
    renditions: () => [], rendition: () => null, setRendition: () => {},
    audios: () => [], setAudio: () => {}, texts: () => [], setText: () => {},
  };
}

// Milliseconds until hls.js is told to go on with a stream. It gives up where a server can't be reached, if only for a moment.
const GO_ON_AFTER = 2000;

function goOn(hls, url, type) {
  if (type === Hls.ErrorTypes.MEDIA_ERROR) hls.recoverMediaError();
  else if (hls.levels.length) hls.startLoad();
  else hls.loadSource(url);
}

async function hlsJs(url) {
  const hls = new Hls({ renderTextTracksNatively: true });
  let again;
  hls.on(Hls.Events.ERROR, (_, d) => {
    if (!d.fatal) return;
    state.fail(`hls.js: ${d.type}, ${d.details}: ${d.error ? d.error.message : ''} ${d.url || (d.frag && d.frag.url) || url}`);
    if (state.asset.live) again = setTimeout(() => goOn(hls, url, d.type), GO_ON_AFTER);
  });
  if (state.asset.live) {
    compareClocks();
    hls.on(Hls.Events.FRAG_BUFFERED, () => {
      $('problem').hidden = true;
      state.problem = null;
    });
  }
  hls.loadSource(url);
  hls.attachMedia(video);
  return {
    destroy: async () => {
      clearTimeout(again);
      hls.destroy();
    },
    // By PROGRAM-DATE-TIME: the time at which the picture arrived at the server.
    delay: () => (state.asset.live ? secondsSince(hls.playingDate) : null),
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
  // Turned off no sooner than its first segment is there: dash.js drops the cues of a segment that arrives in that moment.
  let isTextChosen = false;
  const chooseText = n => {
    isTextChosen = true;
    player.setTextTrack(n);
  };
  player.on('fragmentLoadingCompleted', e => {
    if (e.request && e.request.mediaType === 'text') setTimeout(() => isTextChosen || chooseText(-1), 100);
    // It has gone on, perhaps at another server.
    if (e.request && e.request.type === 'MediaSegment' && !e.error) {
      $('problem').hidden = true;
      state.problem = null;
    }
  });
  player.on('error', e => state.fail(`dash.js: ${e.error.code}: ${e.error.message} ${(e.error.data && e.error.data.request && e.error.data.request.url) || url}`));
  player.initialize(video, new URL(url, location).href, false);
  const of = kind => player.getTracksFor(kind) || [];
  return {
    destroy: async () => player.destroy(),
    delay: () => (state.asset.live ? player.getCurrentLiveLatency() : null),
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
    setText: chooseText,
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
  const delay = p.delay ? p.delay() : null;
  $('delay').textContent = Number.isFinite(delay) ? `${delay.toFixed(1)} s` : '–';
  const n = p.rendition();
  $('rendition').textContent = p.renditions()[n] || (video.videoWidth ? `${video.videoWidth}×${video.videoHeight}` : '–');
}, 500);

// ---- begins

let typing;
$('filter').oninput = () => {
  clearTimeout(typing);
  // The letters of one search are one step back.
  typing = setTimeout(() => go({ q: $('filter').value.trim() }, view.q !== '' && $('filter').value.trim() !== ''), 250);
};
$('engine').onchange = () => state.asset && go({ engine: $('engine').value }, true);
addEventListener('popstate', () => show(parseView()));
// Files come and go while the page is in the background.
document.addEventListener('visibilitychange', () => { if (!document.hidden && !view.q) list(); });
setInterval(() => { if (isLive && !document.hidden && !view.q) list(); }, 3000);
setInterval(watchStream, 1000);
$('open-stream').onsubmit = event => {
  event.preventDefault();
  const name = $('stream-name').value.trim().replace(/^\/+|\/+$/g, '');
  if (name) go({ path: view.folder + name, engine: 'stream' });
};

window.millpond = {
  load: async (path, engine) => {
    const asset = await getJson(`${prefix}/.millpond/asset?path=${encodeURIComponent(path)}`);
    view = { ...view, path, engine };
    history.replaceState(null, '', hashOf(view));
    state.asset = asset;
    $('stage').hidden = false;
    $('title').textContent = path;
    showOutputs();
    mark();
    return play(engine);
  },
  refresh: list,
  player: () => state.player,
  engineState: () => ({
    time: video.currentTime, width: video.videoWidth, paused: video.paused, ready: video.readyState,
    rendition: state.player ? state.player.rendition() : null,
    renditions: state.player ? state.player.renditions() : [],
    audios: state.player ? state.player.audios() : [],
    texts: state.player ? state.player.texts() : [],
    problem: state.problem,
    delay: state.player && state.player.delay ? state.player.delay() : null,
  }),
};

show(parseView());
window.millpond.ready = true;
