'use strict';

// The list of folders, assets and streams: one folder, or the result of a search over all of them.

// Rows that are put into the page at a time.
const ROWS = 100;

// The rows of the list, those that are in the page, and where further ones come from.
const shelf = { rows: [], room: ROWS, total: 0, more: null };

let listing = new AbortController();

// Whether the folder that is shown has live streams. Their names are known to their sources only: here are those that were opened.
let isLive = false;

async function list() {
  listing.abort();
  listing = new AbortController();
  const { signal } = listing;
  crumbs();
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
  const only = found.folders.length === 1 && !found.assets.length && !view.folder;
  // An address that was typed meanwhile stays: its event is still to come.
  if (only && hashOf(parseView()) !== hashOf(view)) return undefined;
  if (only) return go({ folder: found.folders[0] }, true);
  isLive = Boolean(found.streams);
  $('open-stream').hidden = !isLive;
  if (isLive) return streams(found);
  rows([...found.folders.map(path => folderRow(path, false, found.live)), ...found.assets.map(asset => assetRow(asset))]);
  const none = found.folders.length || found.assets.length ? [] : ['No media that is served here.'];
  const many = shelf.total > ROWS ? [`${count(found.assets.length, 'asset')}, ${count(found.folders.length, 'folder')}.`] : [];
  note([...none, ...many, ...leftOut(found['left-out'])].join(' '));
}

function streams({ streams: all, 'is-published': isPublished }) {
  rows(all.map(stream => streamRow(stream)));
  const open = isPublished ? `It begins when somebody pushes /${view.folder}NAME by RTSP, RTMP or HTTP.`
    : `Open /${view.folder}NAME: its first viewer opens the source.`;
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

// Milliseconds after which a search is repeated while the server is still reading its folders.
const SEARCH_AGAIN = 2000;

// Asks the server, which knows the names of all folders that this viewer may see.
async function search(wanted, signal) {
  $('open-stream').hidden = true;
  isLive = false;
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
  return { path, kind: 'directory', title: `${nameOf(path)}/`, below: isMatch ? path : '', side, act: () => go({ folder: path, q: '' }) };
}

function assetRow(asset, isMatch = false) {
  const isCopied = asset.state === 'copying';
  const number = asset.number || asset.files?.length;
  const several = { folder: 'all in one, ', list: `${number} files in one, ` }[asset.kind] || '';
  return {
    path: asset.path, kind: asset.kind, title: asset.title || nameOf(asset.path),
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

// Shows rows: `total` of them, of which `more()` returns a function that fetches further ones, or null.
function rows(all, total = all.length, more = () => null) {
  const place = `${view.folder}?${view.q}`;
  if (place !== shelf.place) {
    Object.assign(shelf, { place, room: ROWS });
    $('rows').scrollTop = 0;
  }
  Object.assign(shelf, { rows: all, total, more });
  put();
}

// Puts the first rows into the page. The focus stays where it was, also when the row is made anew; in another folder it goes to the
// first row.
function put() {
  const active = document.activeElement;
  const had = $('list').contains(active) ? active.dataset.key : null;
  const old = new Map([...$('list').children].map(li => [li.firstChild.dataset.key, li]));
  const shown = shelf.rows.slice(0, shelf.room);
  $('list').replaceChildren(...shown.map(row => {
    const key = `${row.kind}:${row.path}`;
    const known = old.get(key);
    const li = known && known.dataset.side === row.side && known.dataset.below === row.below ? known : listItem(row, key);
    li.firstChild.onclick = row.act;
    return li;
  }));
  for (const li of old.values()) if (!li.isConnected) details.forget(li);
  if (had !== null) {
    const buttons = [...$('list').querySelectorAll('button')];
    const next = buttons.find(button => button.dataset.key === had) || buttons[0] || $('filter');
    next.focus({ preventScroll: buttons.some(button => button.dataset.key === had) });
  }
  const hidden = shelf.rows.length > shelf.room || shelf.more();
  $('more').hidden = !hidden;
  $('more').textContent = `Show more (${shown.length.toLocaleString('en')} of ${shelf.total.toLocaleString('en')})`;
  mark();
}

// Puts further rows into the page.
async function showMore() {
  if ($('more').hidden || $('more').disabled) return;
  const { signal } = listing;
  const fetchMore = shelf.rows.length < shelf.room + ROWS ? shelf.more() : null;
  const last = $('list').lastElementChild;
  const hadFocus = document.activeElement === $('more');
  if (fetchMore) {
    $('more').disabled = true;
    try {
      const further = await fetchMore();
      if (signal.aborted) return;
      shelf.rows.push(...further);
    } catch (error) {
      if (!signal.aborted) note(`No more rows: ${error.message}`);
      return;
    } finally {
      $('more').disabled = false;
    }
  }
  shelf.room += ROWS;
  put();
  if (hadFocus) last?.nextElementSibling?.firstChild.focus();
}

// Further rows are shown when the end of the list is reached.
const end = new IntersectionObserver(entries => { if (entries.some(entry => entry.isIntersecting)) showMore(); }, { rootMargin: '200px' });

function listItem({ path, kind, title, below, side, lasts, hint, stream }, key) {
  const button = element('button', undefined, { type: 'button' });
  const look = element('span', undefined, { className: 'look', ariaHidden: 'true' });
  look.dataset.kind = kind;
  const name = element('span', title, { className: 'name' });
  if (below) name.append(element('small', below));
  const facts = element('small', side, { className: 'side' });
  button.append(look, name, facts);
  if (hint) button.title = hint;
  if (stream) facts.dataset.stream = stream;
  button.dataset.path = path;
  button.dataset.key = key;
  const li = element('li');
  Object.assign(li.dataset, { side, below });
  li.append(button);
  if (lasts) details.observer.observe(li);
  return li;
}

function mark() {
  for (const b of document.querySelectorAll('#list button')) {
    if (b.dataset.path === view.path) b.setAttribute('aria-current', 'true');
    else b.removeAttribute('aria-current');
  }
}

function crumbs() {
  const parts = view.folder.split('/').filter(Boolean);
  const links = [['all', '']].concat(parts.map((p, n) => [p, parts.slice(0, n + 1).join('/') + '/']));
  const hadFocus = $('crumbs').contains(document.activeElement) ? document.activeElement.dataset.folder : null;
  $('crumbs').replaceChildren(...links.flatMap(([name, path], n) => {
    const button = element('button', name, { type: 'button' });
    button.dataset.folder = path;
    button.onclick = () => go({ folder: path, q: '' });
    return n ? [' / ', button] : [button];
  }));
  if (hadFocus !== null) [...$('crumbs').children].find(b => b.dataset.folder === hadFocus)?.focus();
}

// The keys that move in the list.
function moveFocus(event) {
  const all = [...$('rows').querySelectorAll('#list button, #more:not([hidden])')];
  const now = all.indexOf(document.activeElement);
  const page = 8;
  const to = { ArrowDown: now + 1, ArrowUp: now - 1, PageDown: now + page, PageUp: now - page, Home: 0, End: all.length - 1 }[event.key];
  if (now < 0 || to === undefined) return;
  event.preventDefault();
  if (to < 0 && event.key === 'ArrowUp') $('filter').focus();
  else all[Math.min(all.length - 1, Math.max(0, to))].focus();
}

// ---- durations and posters of the rows that are seen

// Rows that are asked about at the same time.
const DETAILS = 3;

const details = {
  // What is known of rows, by key.
  known: new Recent(2000),
  // Rows in view without their details.
  wanted: new Set(),
  busy: 0,
  observer: new IntersectionObserver(entries => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting && target.isConnected) details.wanted.add(target);
      else details.wanted.delete(target);
    }
    details.next();
  }, { rootMargin: '100px' }),
  forget(li) {
    this.observer.unobserve(li);
    this.wanted.delete(li);
  },
  next() {
    while (this.busy < DETAILS && this.wanted.size) {
      const [li] = this.wanted;
      this.wanted.delete(li);
      this.observer.unobserve(li);
      this.busy += 1;
      this.show(li).catch(() => {}).finally(() => {
        this.busy -= 1;
        this.next();
      });
    }
  },
  async show(li) {
    const { path, key } = li.firstChild.dataset;
    if (!this.known.has(key)) {
      this.known.set(key, await getJson(`${here}/.millpond/brief?path=${encodeURIComponent(path)}`).catch(() => ({})));
    }
    const { duration, poster } = this.known.get(key);
    const [look, , facts] = li.firstChild.children;
    if (duration > 0) facts.textContent = `${clock(duration)}, ${li.dataset.side}`;
    if (!poster || !li.isConnected || !decodable('video', poster.codec)) return;
    await playerReady();
    const made = await picture(poster.url);
    const canvas = element('canvas');
    paint(canvas, made);
    look.replaceChildren(canvas);
  },
};

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
