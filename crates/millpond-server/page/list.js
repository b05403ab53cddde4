'use strict';

// Content of the gallery: one folder, or the result of a search over all of them.

let listing = new AbortController();

// Whether the folder that is shown has live streams. Their names are known to their sources only: here are those that were opened.
let isLive = false;

async function list() {
  listing.abort();
  listing = new AbortController();
  const { signal } = listing;
  crumbs();
  resume();
  try {
    await (view.q ? search(view.q, signal) : folder(signal));
  } catch (error) {
    if (signal.aborted) return;
    rows([]);
    note(view.q ? `The search failed: ${error.message}` : `This folder can't be listed: ${error.message}. Assets still play by their URL.`);
  }
}

async function folder(signal) {
  const found = await getJson(`${here}/.millpond/assets?folder=${encodeURIComponent(view.folder)}`, signal);
  if (signal.aborted) return;
  const only = found.folders.length === 1 && !found.assets.length && !found['left-out'].length && !view.folder;
  // An address that was typed meanwhile stays: its event is still to come.
  if (only && hashOf(parseView()) !== hashOf(view)) return undefined;
  if (only) {
    shelf.top = found.folders[0];
    return go({ folder: shelf.top }, true);
  }
  isLive = Boolean(found.streams);
  $('open-stream').hidden = !isLive;
  backdrop(found.backdrop);
  if (isLive) return streams(found);
  const { assets } = found;
  $('order').hidden = assets.length < 2 || !assets.some(asset => asset.modified);
  const isNewest = memory.wishes.sort === 'newest' && !$('order').hidden;
  const titles = [...toldApart(assets.map(asset => assetRow(asset))), ...found['left-out'].map(leftOutRow)];
  rows([...sorted(found.folders.map(path => folderRow(path, false, found.live))), ...sorted(titles, isNewest)]);
  const none = shelf.total ? [] : ['No media that is served here. Put films or music into this folder, and they appear.'];
  const folders = found.folders.length ? `, ${count(found.folders.length, 'folder')}` : '';
  const many = shelf.total > ROWS ? [`${count(found.assets.length, 'title')}${folders}.`] : [];
  note([...none, ...many, ...leftOut(found['left-out'])].join(' '));
}

function streams({ streams: all, 'is-published': isPublished }) {
  $('order').hidden = true;
  rows(all.map(stream => streamRow(stream)));
  const open = isPublished ? `It begins when somebody pushes /${view.folder}NAME by RTSP, RTMP, WebRTC, SRT or HTTP.`
    : `Open /${view.folder}NAME: its first viewer opens the source.`;
  note(all.some(stream => stream.state === 'running') ? '' : `No stream is running. ${open}`);
}

// The number of files of formats that can't be played. Their cards say why.
const leftOut = ({ length }) => (length ? [`${count(length, 'file')} in formats that can't be played.`] : []);

// Milliseconds after which a search is repeated while the server is still reading its folders.
const SEARCH_AGAIN = 2000;

// Asks the server, which knows the names of all folders that this viewer may see.
async function search(wanted, signal) {
  $('open-stream').hidden = true;
  $('order').hidden = true;
  isLive = false;
  backdrop();
  note('Searching …');
  const page = offset => getJson(`${here}/.millpond/search?q=${encodeURIComponent(wanted)}&offset=${offset}`, signal);
  const rowOf = asset => (asset.kind === 'directory' ? folderRow(asset.path, true) : assetRow(asset, true));
  const first = await page(0);
  if (signal.aborted) return;
  const all = [...first.streams.map(stream => streamRow(stream, true)), ...first.assets.map(rowOf)];
  const found = first.streams.length + first.total;
  let next = first.assets.length;
  const more = async () => {
    const { assets } = await page(next);
    next += assets.length;
    if (!assets.length) next = Infinity;
    return assets.map(rowOf);
  };
  rows(all, found, () => (next < Math.min(first.total, first.reach) ? more : null));
  note(searchNote(found, first.of));
  if (first.of?.['is-reading']) setTimeout(() => signal.aborted || document.hidden || list(), SEARCH_AGAIN);
}

function searchNote(found, of) {
  if (!of) return '';
  const parts = [`${found ? `${found.toLocaleString('en')} found` : 'Nothing found'} in ${count(of.folders, 'folder')}`];
  if (of['is-reading']) parts.push('more are being read');
  else if (of['is-cut']) parts.push('there are more folders than a search reads');
  if (of.failed) parts.push(`${of.failed} can't be listed`);
  if (of.refused) parts.push(`${count(of.refused, 'place')} ${of.refused === 1 ? 'needs' : 'need'} a password or token`);
  return `${parts.join('; ')}.`;
}

function note(text) { if ($('list-note').textContent !== text) $('list-note').textContent = text; }

function folderRow(path, isMatch = false, live = []) {
  const side = live.includes(path) ? 'live' : 'folder';
  return { path, kind: 'directory', title: nameOf(path), year: '', below: isMatch ? path : '', side, act: () => go({ folder: path, q: '' }) };
}

// The row of something that plays, as far as its path tells.
function titleRow({ path, kind, title: given, artwork, backdrop: behind }) {
  const isFile = !given && kind !== 'folder';
  const name = given || nameOf(path);
  return { path, kind, artwork: artwork || behind, name: isFile ? name.replace(EXTENSION, '') : name, ...cleanTitle(name, isFile), act: () => go({ path }) };
}

function assetRow(asset, isMatch = false) {
  const isCopied = asset.state === 'copying';
  const number = asset.number || asset.files?.length;
  // The size of a manifest or playlist is not that of its title.
  const size = asset.kind === 'manifest' ? '' : bytes(asset.bytes);
  const several = { folder: 'all in one, ', list: `${number} files in one, ` }[asset.kind] || '';
  return {
    ...titleRow(asset), below: isMatch ? asset.path : '', modified: asset.modified,
    side: isCopied ? 'still being copied' : several + size, lasts: !isCopied,
  };
}

function streamRow(stream, isMatch = false) {
  const { path, state: name, since } = stream;
  const inside = path.startsWith(view.folder) ? path.slice(view.folder.length) : path;
  const side = name === 'lost' && since ? `lost since ${sinceText(since)}` : name;
  return { path, kind: 'stream', title: isMatch || !inside ? nameOf(path) : inside, year: '', below: isMatch ? path : '', side, hint: stateText(stream), stream: name, act: () => go({ path, engine: 'live' }) };
}

function crumbs() {
  const parts = view.folder.split('/').filter(Boolean);
  const links = [['All', '']].concat(parts.map((p, n) => [p, parts.slice(0, n + 1).join('/') + '/']));
  const hadFocus = $('crumbs').contains(document.activeElement) ? document.activeElement.dataset.folder : null;
  $('crumbs').replaceChildren(...links.flatMap(([name, path], n) => {
    const button = element('button', name, { type: 'button' });
    button.dataset.folder = path;
    button.onclick = () => go({ folder: path, q: '', path: '' });
    return n ? [element('span', '/', { ariaHidden: 'true' }), button] : [button];
  }));
  $('place').textContent = view.q ? 'Found' : parts.at(-1) || 'All titles';
  if (hadFocus !== null) [...$('crumbs').children].find(b => b.dataset.folder === hadFocus)?.focus();
}

// ---- states of streams

// Since when, in the clock of the reader.
function sinceText(unix) {
  const then = new Date(unix * 1000);
  const isToday = then.toDateString() === new Date().toDateString();
  return isToday ? then.toLocaleTimeString() : then.toLocaleString();
}

function stateText({ state: name, since, why }) {
  const time = since ? ` since ${sinceText(since)}` : '';
  const words = why ? `: ${why}` : '';
  return `${name}${time}${words}`;
}
