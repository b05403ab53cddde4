// The cache: its room, the objects in it, the assets that could be, and the map of one of them.

import { get, post, remove } from '../api.js';
import { CacheMap, legend } from '../cachemap.js';
import { confirm, prompt } from '../dialogs.js';
import { button, code, empty, fact, h, keyed, setText } from '../dom.js';
import { bytes, count, percent, plural } from '../format.js';
import { list } from '../list.js';
import { href } from '../route.js';
import { badgeCell, linkCell, meterCell } from '../table.js';
import { places } from './sessions.js';

// Most cells of a map.
const CELLS = 2048;
const full = ({ place, path }) => (place ? `${place}/${path}` : path);

export function open(page) {
  const shape = ({ path, list: name }) => (path ? `map ${path}` : name === 'assets' ? 'assets' : 'objects');
  let [now, changed, start] = [null, null, 0];
  const room = rooms(page);
  const below = h('div');
  page.root.append(room, below);
  // The parts of this view share its name: each is built anew when the address asks for another one.
  function build(filters) {
    if (shape(filters) === now) return changed?.(filters);
    now = shape(filters);
    page.polls.splice(start).forEach(poll => poll.close());
    below.replaceChildren();
    room.hidden = Boolean(filters.path);
    const part = Object.assign(Object.create(page), { root: below });
    changed = filters.path ? map(part, filters.path) : filters.list === 'assets' ? assets(part) : objects(part);
    return undefined;
  }
  start = page.polls.length;
  build(page.filters);
  return build;
}

// Memory and disk: how full, how useful.
function rooms(page) {
  const memory = h('dl', { class: 'facts' });
  const disk = h('dl', { class: 'facts' });
  const kinds = h('dl', { class: 'meters' });
  const element = h('div', { class: 'cards' }, h('section', { class: 'card' }, h('h2', null, 'Memory'), memory), h('section', { class: 'card' }, h('h2', null, 'Disk'), disk), h('section', { class: 'card' }, h('h2', null, 'Memory by kind'), kinds));
  const show = (node, rows) => keyed(node, rows, ([name]) => name, ([name]) => fact(name), (row, [, value, isBad]) => {
    setText(row.lastChild, value);
    row.classList.toggle('bad', Boolean(isBad));
  });
  const ratio = ({ hits, misses }) => (hits + misses ? percent(hits / (hits + misses)) : '–');
  page.poll(signal => get('cache', null, signal), ({ memory: m, disk: d, 'no-disk': reason, prefetch, 'slice-bytes': slice }) => {
    const { slices } = m.kinds;
    show(memory, [
      ['In use', `${bytes(m.bytes)} of ${bytes(m['limit-bytes'])}`], ['Slices', slices && `${count(slices.entries)}, ${bytes(slices.bytes)}`], ['Hits', slices && ratio(slices)],
      ['Evictions', slices && count(slices.evictions)], ['Slice', bytes(slice)], ['Prefetch', prefetch],
    ].filter(([, value]) => value));
    show(disk, d === null ? [['State', `off: ${reason}`]] : [
      ['In use', `${bytes(d.bytes)} of ${bytes(d['limit-bytes'])}`], ['Slices', count(d.slices)], ['Hits', ratio(d)], ['Evictions', count(d.evictions)], ['Pinned', bytes(d['pinned-bytes'])],
      ['Policy', d.policy], ['Writes passed over', count(d['passed-over'])], ['Errors', count(d.errors), d.errors > 0], ['Damaged', count(d.damaged), d.damaged > 0], ...(d.failure ? [['Failure', d.failure, true]] : []),
    ]);
    const used = Object.entries(m.kinds).filter(([, kind]) => kind.bytes > 0).sort(([, one], [, other]) => other.bytes - one.bytes);
    keyed(kinds, used, ([name]) => name, ([name]) => h('div', null, h('dt', null, name), h('dd')), (row, [, kind]) => meterCell(row.lastChild, bytes(kind.bytes), kind.bytes / m['limit-bytes'], `${count(kind.entries)} entries`));
  }, 3);
  return element;
}

function tabs(page) {
  const tab = (name, text) => h('a', { class: 'tab', href: href('cache', { list: name }), 'aria-current': (page.filters.list ?? '') === (name ?? '') ? 'true' : null }, text);
  return h('nav', { class: 'tabs', 'aria-label': 'Lists' }, tab(null, 'Cached objects'), tab('assets', 'All assets'));
}

// A purge by tag, of all nodes where the server is a node of a cluster.
function tagPurge() {
  const told = h('p', { class: 'told', role: 'status' });
  const ask = async () => {
    const tag = await prompt('Purge a tag', 'All objects for which their origin states this tag (Surrogate-Key or Cache-Tag) lose their cached slices, on all nodes of a cluster.', 'Tag', 'Purge', 'film-7');
    if (!tag) return;
    try {
      const { node } = await get('cluster');
      const { confirmed, missing, 'purged-slices': slices } = await post(node ? 'cluster/purge' : 'cache/purge', { tag });
      setText(told, !confirmed ? `${plural(slices, 'slice')} removed.`
        : `${plural(confirmed.length, 'node')} purged it.${missing.length ? ` Not confirmed by ${missing.join(', ')}.` : ''}`);
    } catch (error) {
      setText(told, error.message);
    }
  };
  return [h('div', { class: 'actions' }, button('Purge a tag', ask, { class: 'danger' })), told];
}

function objects(page) {
  page.root.append(tabs(page), ...tagPurge());
  const { changed } = list(page, {
    path: 'cache/objects',
    noun: ['cached object', 'cached objects'],
    seconds: 5,
    fields: [{ name: 'q', label: 'Find', hint: 'part of the path' }, { name: 'place', label: 'Place', options: [['', 'All places']] }, { name: 'pinned', label: 'Show', options: [['', 'All'], ['true', 'Pinned']] }],
    table: {
      caption: 'Cached objects',
      key: ({ place, path, version }) => `${place}/${path} ${version}`,
      columns: [
        { title: 'Object', fill: (cell, object) => linkCell(cell, href('cache', { path: full(object) }), full(object), object.version) },
        { title: 'Size', number: true, sort: 'size', compare: (one, other) => other.bytes - one.bytes, text: object => bytes(object.bytes) },
        { title: 'Memory', number: true, text: object => count(object['in-memory']) },
        { title: 'Disk', number: true, text: object => count(object['on-disk']) },
        { title: 'Cached', sort: 'cached', compare: (one, other) => share(other) - share(one), fill: (cell, object) => meterCell(cell, percent(share(object)), share(object), `of ${plural(object.slices, 'slice')}`) },
        { title: 'Hits', number: true, sort: 'hits', compare: (one, other) => other['hit-bytes'] - one['hit-bytes'], hint: 'Bytes that viewers read from the cache', text: object => bytes(object['hit-bytes']) },
        { title: 'Misses', number: true, hint: 'Bytes that were fetched for viewers', text: object => bytes(object['miss-bytes']) },
        { title: 'Pinned', fill: (cell, { pinned }) => badgeCell(cell, pinned ? 'pinned' : '', pinned ? 'good' : null) },
      ],
      empty: ({ isFiltered }) => (isFiltered
        ? empty('No cached object fits these filters.', 'Only objects of which something is cached are listed. All others are under ', h('a', { href: href('cache', { list: 'assets' }) }, 'All assets'), '.')
        : empty('Nothing is cached yet.', 'Slices appear when viewers read from a web server or an object store. Files of local folders are read from the system\'s page cache and are not listed.')),
    },
  });
  places(page);
  return changed;
}

const share = object => Math.min(1, Math.max(object['in-memory'], object['on-disk']) / Math.max(1, object.slices));

function assets(page) {
  page.root.append(tabs(page));
  const note = h('p', { class: 'note' });
  const { changed } = list(page, {
    path: 'assets',
    noun: ['asset', 'assets'],
    seconds: 30,
    fields: [{ name: 'q', label: 'Find', hint: 'part of the path' }, { name: 'place', label: 'Place', options: [['', 'All places']] }, { name: 'folder', label: 'Folder', hint: 'films/show' }],
    table: {
      caption: 'Assets',
      key: ({ path }) => path,
      columns: [
        { title: 'Asset', fill: (cell, { path }) => linkCell(cell, href('cache', { path }), path) },
        { title: 'Kind', text: ({ kind }) => ({ file: 'file', list: 'several files', folder: 'folder', manifest: 'manifest' })[kind] ?? kind },
        { title: 'Size', number: true, text: asset => bytes(asset.bytes) },
        { title: 'Explain', isAction: true, fill: (cell, { path }) => linkCell(cell, href('explain', { url: `${path}/index.m3u8` }), 'Explain', `Explain ${path}`) },
      ],
      empty: ({ isFiltered, reply }) => (!reply['is-complete'] && !isFiltered
        ? empty('The folders are being read.', 'The list appears as soon as the places have answered.')
        : isFiltered ? empty('No asset fits these filters.', 'Change or clear them to see the others.') : empty('No place has a playable file.', 'Put MP4 files into a place; ', code('millpond probe'), ' tells what is wrong with one.')),
    },
    shown: ({ 'is-complete': isComplete }) => setText(note, isComplete ? '' : 'The list is not complete: folders are still being read, too many (search-folders), or can\'t be listed.'),
  });
  page.root.append(note);
  places(page);
  return changed;
}

function map(page, path) {
  const told = h('p', { class: 'told', role: 'status' });
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const maps = h('div');
  const attempt = async (call, words) => {
    setText(told, '');
    try {
      setText(told, words(await call()));
    } catch (error) {
      setText(told, error.message);
    }
    poll.run();
  };
  // Shown where the server is a node of a cluster.
  const fleet = button('Purge all nodes', async () => {
    if (await confirm('Purge this path on all nodes?', `All nodes of the cluster remove their cached slices of ${path}.`, 'Purge all nodes')) {
      attempt(() => post('cluster/purge', { path }), ({ confirmed, missing }) => missing.length
        ? `${plural(confirmed.length, 'node')} purged it. Not confirmed by ${missing.join(', ')}.`
        : `${plural(confirmed.length, 'node')} purged it.`);
    }
  }, { class: 'danger', hidden: true });
  get('cluster').then(({ node }) => { fleet.hidden = !node; }, () => {});
  page.root.append(
    h('p', null, h('a', { href: href('cache') }, '← All cached objects')),
    h('div', { class: 'head' }, h('h2', { class: 'path' }, path), h('div', { class: 'actions' },
      button('Fetch', () => attempt(() => post('cache/warm', { path }), ({ objects, bytes: all }) => `${plural(objects, 'object')} of ${bytes(all)} are being fetched.`), { title: 'Fetches it in the background' }),
      button('Pin', () => attempt(() => post('cache/pins', { path }), reply => `Pinned: ${bytes(reply['pinned-bytes'])} of the whole cache.`), { title: 'Keeps it until the server stops' }),
      button('Pin the beginning', async () => {
        const first = await prompt('Pin the beginning', 'The index and the first media stay in the cache until the server stops, and are fetched now.', 'Duration, 1s to 1h', 'Pin', '30s');
        if (first) attempt(() => post('cache/pins', { path, first }), reply => `${bytes(reply.bytes)} are pinned.`);
      }),
      button('Unpin', () => attempt(() => remove('cache/pins', { path }), reply => `Still pinned: ${bytes(reply['pinned-bytes'])} of the whole cache.`)),
      button('Purge', async () => {
        if (await confirm('Purge this path?', `All cached slices of ${path} are removed. They are fetched again when a viewer needs them.`, 'Purge')) {
          attempt(() => post('cache/purge', { path }), reply => `${plural(reply['purged-slices'], 'slice')} removed.`);
        }
      }, { class: 'danger' }),
      fleet,
      h('a', { class: 'button', href: href('explain', { url: `${path}/index.m3u8` }) }, 'Explain'))),
    told, problem, legend(), maps);
  const poll = page.poll(signal => get('cache/map', { path, cells: CELLS }, signal), ({ objects: all, 'slice-bytes': slice }) => {
    problem.hidden = true;
    keyed(maps, all, object => object.path, object => {
      const view = new CacheMap(object.path);
      const node = h('section', { class: 'card object' }, h('h3'), h('p', { class: 'note' }), view.element);
      node.view = view;
      return node;
    }, (node, object) => {
      setText(node.firstChild, object.path);
      setText(node.children[1], `${bytes(object.bytes)} in ${plural(object.slices, 'slice')} of ${bytes(slice)}; ${bytes(object['memory-bytes'])} in memory, ${bytes(object['disk-bytes'])} on the disk${object['pinned-bytes'] ? `, ${bytes(object['pinned-bytes'])} pinned` : ''}`);
      node.view.update(object, slice);
    });
  }, 2, error => {
    problem.hidden = false;
    setText(problem, error.message);
    maps.replaceChildren();
    maps.keyed = undefined;
  });
  return null;
}
