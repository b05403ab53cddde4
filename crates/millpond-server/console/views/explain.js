// Explains a request: the bytes that are made, the ranges that are read, and their present locations.

import { get } from '../api.js';
import { button, empty, fact, h } from '../dom.js';
import { bytes, count, duration, pathOf, percent, plural, rate } from '../format.js';
import { href } from '../route.js';
import { Table, badgeCell } from '../table.js';

const FROM = { memory: 'memory', disk: 'disk', coming: 'on its way', origin: 'origin', file: 'local file' };
const ORDER = ['memory', 'disk', 'file', 'coming', 'origin'];
// Rows that are shown at first.
const ROWS = 100;

export function open(page) {
  const input = h('input', { type: 'text', id: 'url', placeholder: 'films/a.mp4/v1/3.m4s', autocomplete: 'off', spellcheck: 'false' });
  const answer = h('div', { 'aria-live': 'polite' });
  const form = h('form', { class: 'ask card', onsubmit: event => {
    event.preventDefault();
    const url = pathOf(input.value);
    if (url === page.filters.url) ask();
    else page.set({ url });
  } }, h('label', { for: 'url' }, 'Path or address of a request'), h('div', null, input, h('button', { class: 'main' }, 'Explain')),
  h('p', { class: 'note' }, 'A playlist, a segment, a file: what viewers ask for. The answer tells what would be read from where if it were asked for now.'));
  page.root.append(form, answer);
  let turn = 0;

  async function ask() {
    const { url } = page.filters;
    input.value = url ?? '';
    turn += 1;
    const mine = turn;
    if (!url) {
      answer.replaceChildren(empty('Nothing has been asked yet.', 'Type a path such as ', h('code', null, 'sample/index.m3u8'), ', or open ', h('a', { href: href('cache', { list: 'assets' }) }, 'an asset'), ' and choose Explain.'));
      return;
    }
    try {
      const reply = await get('explain', { url });
      if (mine === turn) answer.replaceChildren(...shown(reply));
    } catch (error) {
      if (mine === turn) answer.replaceChildren(h('p', { class: 'problem' }, error.message));
    }
  }

  function shown(reply) {
    const { parts, origin } = reply;
    const from = new Map(ORDER.map(name => [name, 0]));
    parts.forEach(part => from.set(part.from, (from.get(part.from) ?? 0) + part.end - part.first));
    const all = reply['made-bytes'] + [...from.values()].reduce((sum, value) => sum + value, 0);
    const shares = [['made', reply['made-bytes']], ...from].filter(([, value]) => value > 0);
    const name = key => (key === 'made' ? 'made here' : FROM[key] ?? key);
    const split = h('div', { class: 'split tall', role: 'img', 'aria-label': shares.map(([key, value]) => `${percent(value / all)} ${name(key)}`).join(', ') }, shares.map(([key, value]) => {
      const part = h('i', { class: `cell ${key}`, title: `${name(key)}: ${bytes(value)}` });
      part.style.flexGrow = value / all;
      return part;
    }));
    const legend = h('ul', { class: 'cells' }, shares.map(([key, value]) => h('li', null, h('i', { class: `cell ${key}` }), `${name(key)}: ${bytes(value)} (${percent(value / all)})`)));
    const facts = h('dl', { class: 'facts' }, fact('Reply', reply.bytes === undefined || reply.bytes === null ? 'length not known before' : bytes(reply.bytes)), fact('Made here', bytes(reply['made-bytes'])), fact('Samples', reply.rewritten ? 'rewritten' : 'sent as they are stored'),
      fact('Still to fetch', bytes(reply['origin-bytes'])), origin && fact('First byte', duration(origin['first-byte-seconds'])), origin && fact('Last byte', duration(origin['last-byte-seconds'])), origin && fact('Link', rate(origin['bandwidth-bps'])), origin?.['siblings-first'] && fact('Siblings', 'are asked first'));
    const table = new Table({ caption: 'Ranges', key: part => `${part.object} ${part.first}`, columns: [
      { title: 'Object', text: ({ object }) => object },
      { title: 'First byte', number: true, text: ({ first }) => count(first) },
      { title: 'After the last', number: true, text: ({ end }) => count(end) },
      { title: 'Length', number: true, text: ({ first, end }) => bytes(end - first) },
      { title: 'From', fill: (cell, part) => badgeCell(cell, FROM[part.from] ?? part.from, { memory: 'good', disk: 'good', file: 'good', coming: 'warn', origin: 'warn' }[part.from]) },
    ] });
    table.update(parts.slice(0, ROWS));
    const others = parts.length - ROWS;
    const more = others > 0 && button(`Show ${plural(others, 'more range')}`, event => {
      table.update(parts);
      event.target.remove();
    });
    const left = reply['parts-left-out'] ? h('p', { class: 'note' }, `${count(reply['parts-left-out'])} further ranges are left out.`) : null;
    const asset = reply.url.replace(/\/(~[0-9a-f]{16}\/)?((ts\/)?index\.m3u8|index\.mpd|[vat]\d+\/[^/]+)$/, '');
    const head = h('div', { class: 'head' }, h('h2', { class: 'path' }, reply.url), h('div', { class: 'actions' }, h('a', { class: 'button', href: href('cache', { path: asset }) }, 'Cache map'), button('Ask again', ask)));
    const words = parts.length ? [h('h3', null, plural(parts.length, 'range')), table.element, more, left] : [h('p', { class: 'note' }, 'The whole reply is made here, from the index: no range of a file is read.')];
    return [h('section', { class: 'card' }, head, split, legend, facts), ...words].filter(Boolean);
  }
  ask();
  return ask;
}
