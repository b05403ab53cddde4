// The places, the links to their origins, and what was read over them.

import { get } from '../api.js';
import { empty, fact, h, keyed, setAttribute, setText } from '../dom.js';
import { bytes, count, duration, percent, rate } from '../format.js';
import { href } from '../route.js';

const sum = counts => Object.values(counts ?? {}).reduce((all, value) => all + value, 0);

export function open(page) {
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const nothing = h('div', { hidden: true });
  const origins = h('div', { class: 'stack' });
  const rows = h('tbody');
  const others = h('section', null, h('h2', null, 'Places'), h('div', { class: 'table' }, h('table', null, h('caption', { class: 'unseen' }, 'Places'),
    h('thead', null, h('tr', null, ['Place', 'Kind', 'Location', 'State', 'From'].map(title => h('th', { scope: 'col' }, title)))), rows)));
  page.root.append(problem, nothing, origins, others);
  const fail = error => {
    problem.hidden = false;
    setText(problem, error.message);
  };

  page.poll(signal => get('origins', null, signal), ({ items }) => {
    problem.hidden = true;
    nothing.hidden = items.length > 0;
    if (!items.length) nothing.replaceChildren(empty('No place has stored media.', 'Live places are below; places with media are folders, web servers and object stores.'));
    keyed(origins, items, ({ place }) => place, made, refill);
  }, 2, fail);
  page.poll(signal => get('places', null, signal), ({ items }) => {
    keyed(rows, items, ({ name }) => name, ({ name }) => h('tr', null, h('th', { scope: 'row', 'data-label': 'Place' }, name || 'the only place'), ['Kind', 'Location', 'State', 'From'].map(title => h('td', { 'data-label': title }))), (row, place) => {
      const options = Object.entries(place.settings ?? {}).map(([name, value]) => `${name} = ${value}`).join(', ');
      [place.kind, options ? `${place.location} (${options})` : place.location].forEach((text, index) => setText(row.children[index + 1], text));
      const state = row.children[3];
      if (!state.firstChild) state.append(h('span', { class: 'badge' }));
      setText(state.firstChild, place['is-ready'] ? 'ready' : 'no answer yet');
      setAttribute(state.firstChild, 'data-kind', place['is-ready'] ? 'good' : 'warn');
      setText(row.children[4], place.source);
    });
  }, 10, fail);
  return null;
}

function made({ place }) {
  const bar = h('div', { class: 'split', role: 'img', 'aria-label': 'No reads yet' }, ['memory', 'disk', 'file', 'origin'].map(name => h('i', { class: `cell ${name}` })));
  return h('section', { class: 'card origin' }, h('div', { class: 'head' }, h('h2', null, place || 'The only place'), h('code')), h('p', { class: 'problem', hidden: true }), bar, h('p', { class: 'note' }), h('dl', { class: 'facts' }));
}

function refill(node, origin) {
  const [head, problem, bar, words, list] = node.children;
  setText(head.lastChild, origin.location);
  const failed = sum(origin.errors);
  problem.hidden = !failed && !origin.doubts?.length;
  setText(problem, [failed ? `Failed since the start: ${Object.entries(origin.errors).filter(([, number]) => number).map(([kind, number]) => `${kind} (${count(number)})`).join(', ')}.` : '', ...(origin.doubts ?? [])].filter(Boolean).join(' '));
  const read = [origin['memory-hit-bytes'], origin['disk-hit-bytes'], origin['file-bytes'], origin['miss-bytes']];
  const all = read.reduce((whole, part) => whole + part, 0);
  const names = ['memory', 'disk', 'local files', 'origin'];
  read.forEach((part, index) => { bar.children[index].style.flexGrow = all ? part / all : 0; });
  const sentence = all ? names.map((name, index) => [name, read[index]]).filter(([, part]) => part).map(([name, part]) => `${percent(part / all)} from ${name}`).join(', ') : 'Nothing has been read yet';
  setAttribute(bar, 'aria-label', sentence);
  setText(words, all ? `Read for viewers: ${bytes(all)}; ${sentence}` : sentence);
  const { link, 'first-byte-waits': waits, neighbours, stripes } = origin;
  const bandwidth = link?.['bandwidth-bps'] ?? origin['bandwidth-bps'];
  const delay = link ? `, ${duration(link['delay-seconds'])} to the first byte` : '';
  const facts = [
    ['Now', origin['received-bps'] === undefined ? null : rate(origin['received-bps'])], ['In flight', count(origin['in-flight'])], ['Requests', count(origin.requests)], ['Received', bytes(origin['received-bytes'])],
    ['Hit ratio', percent(origin['hit-ratio'])], ['Link', bandwidth ? rate(bandwidth) + delay : 'not measured yet'],
    ['Mean wait', waits?.count ? `${duration(waits.seconds / waits.count)} to the first byte` : null], ['Retries', count(origin.retries)], ['Collapsed', count(origin.collapsed), 'Reads that joined a request under way'],
    ['Asked in vain', origin['not-found'] ? count(origin['not-found']) : null, 'Requests for names that the place does not have'], ['Replaced', origin.changed ? `${count(origin.changed)} objects while they were read` : null],
    ['Changed', origin.stale ? `${count(origin.stale)} times opened while the origin was away` : null], ['Prefetched', `${bytes(origin['prefetched-bytes'])}, ${bytes(origin['prefetched-unused-bytes'])} not yet used`], ['Watched tracks', count(origin['watched-tracks'])],
    ...stripes.map(stripe => [`Store ${stripe.store}`, `${bytes(stripe.bytes)} in ${count(stripe.requests)} requests, ${count(stripe.failures)} failed${stripe['damaged-reads'] ? `, ${count(stripe['damaged-reads'])} damaged, ${count(stripe['repaired-units'])} units repaired` : ''}${stripe['is-resting'] ? ', resting' : ''}`]),
    ['Siblings', neighbours && `${count(neighbours.hits)} hits, ${count(neighbours.misses)} misses, ${count(neighbours.failures)} failed`],
  ].filter(([, value]) => value !== null && value !== undefined);
  keyed(list, facts, ([name]) => name, ([name,, title]) => fact(name, null, title), (row, [, value]) => setText(row.lastChild, value));
  if (!head.querySelector('.actions')) head.append(h('div', { class: 'actions' }, h('a', { class: 'button', href: href('cache', { place: origin.place }) }, 'Cached objects'), h('a', { class: 'button', href: href('sessions', { place: origin.place }) }, 'Sessions')));
}
