// The frame of the console: views, header, shortcuts, theme, and the state of the connection.

import { get, getHere, showNode, shownNode } from './api.js';
import { askToken, help } from './dialogs.js';
import { h, keyed, setAttribute, setText } from './dom.js';
import { duration } from './format.js';
import { Poll, isPaused, onState, pause, refresh, withToken } from './live.js';
import { go, here, href } from './route.js';

// Views: name, title, letter of the shortcut after g.
const VIEWS = [
  ['overview', 'Overview', 'o'],
  ['sessions', 'Sessions', 's'],
  ['streams', 'Live streams', 'l'],
  ['graph', 'Stream graph', 'g'],
  ['cache', 'Cache', 'c'],
  ['origins', 'Origins', 'r'],
  ['cluster', 'Cluster', 'u'],
  ['explain', 'Explain', 'e'],
  ['settings', 'Settings', 't'],
  ['logs', 'Logs', 'i'],
  ['simulator', 'Simulator', 'm'],
];
const THEMES = ['auto', 'light', 'dark'];
const SHORTCUTS = 'millpond-shortcuts';
// Milliseconds in which the second key of a shortcut counts.
const SECOND_KEY = 1500;

const element = id => document.getElementById(id);
const [main, views, trouble, state, server] = ['main', 'views', 'trouble', 'state', 'server'].map(element);

// The open view: its name, what it does when its filters change, and its polls.
let open = null;

// What a view may use.
class Page {
  constructor(name, filters, root) {
    Object.assign(this, { name, filters, root, polls: [], isClosed: false });
  }

  // Changes filters in the address. Empty ones are left out.
  set(filters, replaces) {
    go(href(this.name, { ...this.filters, ...filters }), replaces);
  }

  // Requests and shows until the view is left.
  poll(load, show, seconds, fail) {
    const poll = new Poll(load, show, seconds, fail);
    this.polls.push(poll);
    return poll;
  }

  close() {
    this.isClosed = true;
    this.polls.forEach(poll => poll.close());
    this.closed?.();
  }
}

// Shows the view of the address. `isAnew` tells that it is opened again although it is shown.
async function show(isAnew) {
  const { view, filters } = here();
  const known = VIEWS.find(([name]) => name === view);
  if (open?.name === view && !isAnew) {
    open.filters = filters;
    open.changed?.(filters);
    return;
  }
  const isFirst = open === null;
  open?.close();
  const title = known?.[1] ?? 'No such view';
  const heading = h('h1', { tabindex: '-1' }, title);
  const root = h('div', { class: 'view', id: `view-${view}` });
  const page = new Page(view, filters, root);
  open = page;
  main.replaceChildren(heading, root);
  document.title = `${title} – Millpond`;
  for (const link of views.querySelectorAll('a')) setAttribute(link, 'aria-current', link.dataset.view === view && 'page');
  closeMenu();
  scrollTo(0, 0);
  if (!isFirst) heading.focus({ preventScroll: true });
  if (!known) {
    root.append(h('p', null, `There is no view "${view}". `, h('a', { href: href('overview') }, 'Go to the overview')));
    return;
  }
  try {
    const module = await import(`./views/${view}.js`);
    if (!page.isClosed) page.changed = module.open(page) ?? null;
  } catch (error) {
    if (page.isClosed) return;
    console.error(error);
    root.append(h('p', { class: 'problem' }, 'This view could not be loaded. Reload the page.'));
  }
}

function closeMenu() {
  document.body.classList.remove('menu');
  element('menu').setAttribute('aria-expanded', 'false');
}

function theme(next) {
  let now = 'auto';
  try {
    now = localStorage.getItem('millpond-theme') ?? 'auto';
    if (next) {
      now = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
      localStorage.setItem('millpond-theme', now);
    }
  } catch {
    if (next) now = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme ?? 'auto') + 1) % THEMES.length];
  }
  if (now === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = now;
  setText(element('theme').lastElementChild, now);
}

function togglePause() {
  pause(!isPaused());
}

// Shortcuts without modifiers can be switched off: programs for speech input press single keys.
function hasShortcuts(on) {
  try {
    if (on !== undefined) localStorage.setItem(SHORTCUTS, on ? 'on' : 'off');
    return localStorage.getItem(SHORTCUTS) !== 'off';
  } catch { return true; }
}

let waitsForView = 0;
function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  const isTyping = event.target.matches('input:not([type=checkbox]), select, textarea');
  if (event.key === 'Escape' && document.body.classList.contains('menu')) {
    closeMenu();
    element('menu').focus();
    return;
  }
  if (isTyping || !hasShortcuts() && event.key !== '?') return;
  if (Date.now() - waitsForView < SECOND_KEY) {
    waitsForView = 0;
    const view = VIEWS.find(([,, letter]) => letter === event.key);
    if (view) {
      event.preventDefault();
      go(href(view[0]));
      return;
    }
  }
  const actions = {
    g: () => { waitsForView = Date.now(); },
    '?': () => showHelp(),
    '/': () => main.querySelector('input[type=search], input[type=text]')?.focus(),
    p: togglePause,
    r: refresh,
    t: () => theme(true),
  };
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

const showHelp = () => help(VIEWS.map(([, title, letter]) => [`g ${letter}`, title]), hasShortcuts(), hasShortcuts);

// Whether the token is being asked for, and whether the operator would not give it.
let [asking, declined] = [false, false];
async function giveToken() {
  asking = true;
  declined = !await askToken();
  asking = false;
  if (declined) showTrouble(null);
  else withToken();
}

function showState({ paused, away, wantsToken }) {
  setText(element('pause'), paused ? 'Resume' : 'Pause');
  element('pause').setAttribute('aria-pressed', String(paused));
  const [word, kind] = away ? ['no answer', 'bad'] : wantsToken ? ['token needed', 'warn'] : paused ? ['paused', 'warn'] : ['live', 'good'];
  setText(state, word);
  setAttribute(state, 'data-kind', kind);
  showTrouble(away);
  if (wantsToken && !asking && !declined) giveToken();
}

function showTrouble(away) {
  document.body.classList.toggle('away', Boolean(away));
  const kind = away ? 'away' : declined ? 'token' : '';
  if (trouble.dataset.kind !== kind) trouble.replaceChildren();
  trouble.dataset.kind = kind;
  if (kind === 'token' && !trouble.firstChild) {
    trouble.append(h('p', null, 'The server shows nothing without its admin token.'), h('button', { type: 'button', onclick: giveToken }, 'Give the token'));
  }
  if (!away) return;
  if (!trouble.firstChild) {
    trouble.append(
      h('p', null, h('strong', null, 'The server does not answer'), h('span', { class: 'why' }), h('span', { class: 'note', 'aria-live': 'off' })),
      h('button', { type: 'button', onclick: () => { last.away.next = 0; refresh(); } }, 'Try now'),
    );
  }
  setText(trouble.querySelector('.why'), `: ${away.error.message}. Figures below are old.`);
  const seconds = Math.max(0, Math.ceil((away.next - Date.now()) / 1000));
  setText(trouble.querySelector('.note'), ` For ${duration(Math.round((Date.now() - away.since) / 1000))}; next try ${seconds ? `in ${seconds} s` : 'now'}.`);
}

keyed(views, VIEWS, ([name]) => name, ([name, title, letter]) =>
  h('a', { href: href(name), 'data-view': name, title: `g ${letter}` }, title));
element('menu').addEventListener('click', () => {
  const isOpen = document.body.classList.toggle('menu');
  element('menu').setAttribute('aria-expanded', String(isOpen));
});
element('skip').addEventListener('click', event => {
  event.preventDefault();
  main.focus();
});
element('theme').addEventListener('click', () => theme(true));
element('pause').addEventListener('click', togglePause);
element('keys').addEventListener('click', showHelp);
document.addEventListener('keydown', key);
addEventListener('popstate', () => show());
addEventListener('route', () => show());
onState(showState);
setInterval(() => onTick(), 1000);

let last = null;
onState(current => { last = current; });
function onTick() {
  if (last?.away) showTrouble(last.away);
}

// The name and version of the server: it may be upgraded while the page is open.
const named = new Poll(signal => get('version', null, signal), ({ version, node }) => {
  setText(server, `${node ?? location.host} · ${version}`);
}, 60, error => setText(server, `${shownNode() ?? location.host}: ${error.message}`));

// The switch between nodes, where the server is one of several.
const choice = element('node');
choice.addEventListener('change', () => {
  showNode(choice.value || null);
  named.run();
  show(true);
});
new Poll(signal => getHere('cluster', null, signal), cluster => {
  const others = (cluster?.nodes ?? []).filter(node => !node.self).map(({ name }) => name);
  const own = cluster?.node ?? 'this server';
  // A node that has left stays chosen: its views tell why they are empty.
  const names = shownNode() === null || others.includes(shownNode()) ? others : [...others, shownNode()];
  keyed(choice, [['', own], ...names.map(name => [name, name])], ([value]) => value, ([value, text]) => h('option', { value }, text), (option, [, text]) => setText(option, text));
  choice.value = shownNode() ?? '';
  element('nodes').hidden = names.length === 0;
}, 10);

theme(false);
show();
