'use strict';

// The page: what it shows, as the address bar has it, and what a test needs to drive it (window.millpond).

const video = $('video');
const state = {
  asset: null, engine: 'hls', player: null, startup: null, problem: null, isChosen: false,
  // Whether the viewer wants subtitles of a title that still loads; null before a key is pressed.
  subtitles: null,
  // Whether the tracks of the title are known.
  hasChoices: false,
};

// Folder, search, asset and player.
let view = { folder: '', q: '', path: '', engine: 'hls' };

const folderOf = path => fileOf(path).split('/').slice(0, -1).map(part => `${part}/`).join('');

function parseView() {
  // The address of a folder or stream was opened, not that of the page.
  if (site.folder || site.stream) return opened();
  const told = new URLSearchParams(location.hash.slice(1));
  const path = told.get('path') || '';
  // A link to an asset alone shows the folder that it lies in.
  const folder = told.has('folder') ? told.get('folder') : folderOf(path);
  return { folder, q: told.get('q') || '', path, engine: told.get('engine') || 'hls' };
}

// The view of a folder or stream whose address was opened. The page's own address takes its place.
function opened() {
  const { folder, stream } = site;
  const first = stream ? { folder: folderOf(stream), q: '', path: stream, engine: 'live' } : { folder, q: '', path: '', engine: 'hls' };
  Object.assign(site, { folder: '', stream: '' });
  history.replaceState(null, '', `${site.root}${hashOf(first)}`);
  return first;
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
  const listed = isOther || !show.begun ? list() : Promise.resolve(remark());
  const isNew = next.path !== before.path || (next.path && next.engine !== before.engine);
  if (next.path !== before.path) {
    state.subtitles = null;
    turnTo(next.path, before.path);
  }
  const played = isNew ? choose(next) : Promise.resolve();
  show.begun = true;
  await Promise.all([listed, played.catch(() => {})]);
}

// Marks in the gallery the titles that were seen, and the one that plays.
function remark() {
  resume();
  mark();
}

// Turns the reader to the player of a title, and back to the card in the gallery.
function turnTo(path, before) {
  $('stage').hidden = !path;
  if (path) {
    if (!before) turnTo.from = scrollY;
    scrollTo(0, 0);
    $('screen').focus({ preventScroll: true });
    return;
  }
  scrollTo(0, turnTo.from || 0);
  [...$('list').querySelectorAll('button'), ...$('resume-list').querySelectorAll('button')].find(({ dataset: { path: of } }) => of === before || of === fileOf(before))?.focus({ preventScroll: true });
}

function titleOf(path) {
  const { title, year } = cleanTitle(nameOf(path));
  return year ? `${title} (${year})` : title;
}

// Shows the place for an asset at once, and plays it when all that plays is there.
async function choose(next) {
  $('title').textContent = next.path && (['live', 'stream'].includes(next.engine) ? nameOf(next.path) : titleOf(next.path));
  try {
    await playerReady();
  } catch (error) {
    note(error.message);
    return;
  }
  if (view === next) await select(next.path, next.engine);
}

// Notes the wish for subtitles, or against them, until the tracks of a title are there.
function wantSubtitles() {
  state.subtitles = !(state.subtitles ?? Boolean(memory.wishes.text));
}

let typing;
$('filter').oninput = () => {
  clearTimeout(typing);
  // The letters of one search are one step back.
  typing = setTimeout(() => go({ q: $('filter').value.trim() }, view.q !== '' && $('filter').value.trim() !== ''), 150);
};
$('more').onclick = showMore;
end.observe($('more'));
$('sort').value = memory.wishes.sort === 'newest' ? 'newest' : 'name';
$('sort').onchange = () => {
  wish({ sort: $('sort').value });
  list();
};
$('forget').onclick = () => {
  const paths = begun(view.folder);
  remember(({ places }) => paths.forEach(path => places.delete(path)));
  remark();
  $('filter').focus();
};
$('close').onclick = () => go({ path: '' });
addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input, select, textarea')) return;
  // Until the keys of the player are loaded, this one is noted here.
  if (event.key === 'c' && !$('stage').hidden && typeof pressed === 'undefined') wantSubtitles();
  if (event.key !== '/') return;
  event.preventDefault();
  $('filter').focus();
});
// Added before the keys of the player, which are loaded later.
addEventListener('keydown', steer);
addEventListener('popstate', () => show(parseView()));
// Files come and go while the page is in the background.
document.addEventListener('visibilitychange', () => { if (!document.hidden) list(); });
setInterval(() => { if (isLive && !document.hidden && !view.q) list(); }, 3000);
$('open-stream').onsubmit = event => {
  event.preventDefault();
  const name = $('stream-name').value.trim().replace(/^\/+|\/+$/g, '');
  if (name) go({ path: view.folder + name, engine: 'live' });
};

window.millpond = {
  load: async (path, engine) => {
    await playerReady();
    const asset = await getJson(`${here}/.millpond/asset?path=${encodeURIComponent(path)}`);
    view = { ...view, path, engine };
    history.replaceState(null, '', hashOf(view));
    state.asset = asset;
    $('stage').hidden = false;
    state.isChosen = false;
    $('title').textContent = titleOf(path);
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
