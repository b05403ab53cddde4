// Long lists: filters in the address, pages of the server, or an order that needs all items.

import { get, getAll } from './api.js';
import { button, h, later, setText } from './dom.js';
import { count } from './format.js';
import { Table } from './table.js';

// Rows of a page.
const ROWS = 100;
// Items from which a list in an order of its own is read less often.
const MANY = 1000;

// Fields for filters: each has a name, a label, and options where it is not a text. They change the address.
export function filterBar(page, fields, ...more) {
  const typed = later((name, value, was) => page.set({ [name]: value, cursor: null, page: null }, Boolean(was) === Boolean(value)), 250);
  const controls = fields.map(({ name, label, options, hint }) => {
    const id = `filter-${name}`;
    const control = options
      ? h('select', { id, onchange: event => page.set({ [name]: event.target.value, cursor: null, page: null }) },
        options.map(([value, text]) => h('option', { value }, text)))
      : h('input', { id, type: 'search', placeholder: hint, autocomplete: 'off', spellcheck: 'false',
        oninput: event => typed(name, event.target.value.trim(), page.filters[name]) });
    return [name, control, h('label', { for: id, class: options ? null : 'grow' }, h('span', null, label), control)];
  });
  const element = h('form', { class: 'filters', role: 'search', onsubmit: event => event.preventDefault() }, controls.map(([,, label]) => label), more);
  const show = filters => controls.forEach(([name, control]) => {
    const value = filters[name] ?? '';
    if (control.value.trim() !== value) control.value = value;
  });
  show(page.filters);
  return { element, show };
}

// A list of `path`. `fields` are its filters, `table` is as for `Table`; columns with `compare` can give an order. `noun` is [one, many].
export function list(page, { path, fields, table, noun, seconds, shown }) {
  const names = fields.map(({ name }) => name);
  const total = h('p', { class: 'total', role: 'status' });
  const before = new Map();
  const [first, previous, next] = [button('First', () => move(null)), button('Previous', () => back()), button('Next', () => forward())];
  const pages = h('nav', { class: 'pages', 'aria-label': `Pages of ${noun[1]}` }, first, previous, h('span'), next);
  const place = pages.querySelector('span');
  const bar = filterBar(page, fields);
  const view = new Table({ ...table, order: name => page.set({ sort: page.filters.sort === name ? null : name, cursor: null, page: null }) });
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  page.root.append(bar.element, problem, total, view.element, pages);
  let nextCursor = null;

  const order = () => table.columns.find(({ sort, compare }) => compare && sort && sort === page.filters.sort);
  const number = () => Math.max(1, Number.parseInt(page.filters.page, 10) || 1);
  const parameters = () => Object.fromEntries(names.map(name => [name, page.filters[name]]));
  const move = cursor => page.set(order() ? { page: null } : { cursor, page: null });
  function forward() {
    if (order()) page.set({ page: number() + 1 });
    else {
      before.set(nextCursor, page.filters.cursor ?? null);
      page.set({ cursor: nextCursor, page: number() + 1 });
    }
  }
  function back() {
    if (order()) page.set({ page: number() > 2 ? number() - 1 : null });
    else {
      const cursor = before.get(page.filters.cursor) ?? null;
      page.set({ cursor, page: cursor === null ? null : number() - 1 });
    }
  }

  async function load(signal) {
    const by = order();
    if (!by) return get(path, { ...parameters(), limit: ROWS, cursor: page.filters.cursor }, signal);
    const all = await getAll(path, parameters(), signal);
    all.items.sort(by.compare);
    const from = (number() - 1) * ROWS;
    return { items: all.items.slice(from, from + ROWS), total: all.total, 'next-cursor': from + ROWS < all.items.length ? '' : null };
  }

  const isFiltered = () => names.some(name => page.filters[name]);
  function show(reply) {
    const { items, total: all, 'next-cursor': cursor } = reply;
    problem.hidden = true;
    nextCursor = cursor;
    view.ordered(order()?.sort);
    view.update(items, { isFiltered: isFiltered(), reply });
    setText(total, `${count(all)} ${all === 1 ? noun[0] : noun[1]}${isFiltered() ? ' found' : ''}`);
    total.hidden = items.length === 0 && !isFiltered();
    const isFirst = number() === 1 && !page.filters.cursor;
    pages.hidden = isFirst && cursor === null;
    first.disabled = isFirst;
    previous.disabled = isFirst || (!order() && !before.has(page.filters.cursor));
    next.disabled = cursor === null;
    const least = Math.max(1, Math.ceil(all / ROWS));
    setText(place, `Page ${count(number())} of ${count(Math.max(least, number()))}`);
    poll.seconds = order() ? seconds * Math.max(1, all / MANY) : seconds;
    shown?.(reply);
  }

  const poll = page.poll(load, show, seconds, error => {
    problem.hidden = false;
    setText(problem, error.message);
  });
  const changed = filters => {
    bar.show(filters);
    poll.run();
  };
  return { changed, poll };
}
