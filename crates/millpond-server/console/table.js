// Tables whose rows stay in place while their values change. On a phone each row becomes a card.

import { button, h, keyed, setAttribute, setText } from './dom.js';

const classes = flags => Object.keys(flags).filter(name => flags[name]).join(' ') || null;

// Columns have a title and `text(item)`, or `fill(cell, item)` for what is more than text; `number` aligns to the right, `sort` is the name of
// the order that a click on the title asks for, `long` breaks long words, `isAction` has buttons. `empty(…)` makes what stands in the place of no rows.
export class Table {
  constructor({ caption, columns, key, empty, order, rowClass }) {
    Object.assign(this, { columns, key, empty, order, rowClass });
    this.heads = columns.map(column => this.head(column));
    this.body = h('tbody');
    this.table = h('table', null, h('caption', { class: 'unseen' }, caption), h('thead', null, h('tr', null, this.heads)), this.body);
    this.nothing = h('div', { hidden: true });
    this.element = h('div', { class: 'table' }, this.table, this.nothing);
  }

  head({ title, number, sort, hint, minor, isAction }) {
    const label = isAction ? h('span', { class: 'unseen' }, title) : sort && this.order ? button(title, () => this.order(sort), { class: 'sort' }) : title;
    return h('th', { scope: 'col', class: classes({ number, minor }), title: hint }, label);
  }

  // Shows which column the rows are ordered by.
  ordered(name) {
    this.columns.forEach(({ sort, ascending }, index) => {
      setAttribute(this.heads[index], 'aria-sort', sort && sort === name && (ascending ? 'ascending' : 'descending'));
    });
  }

  // Shows items. `extra` goes to `empty` where there are none.
  update(items, extra) {
    keyed(this.body, items, this.key, () => this.row(), (row, item) => this.refill(row, item));
    this.table.hidden = items.length === 0;
    this.nothing.hidden = items.length > 0;
    if (items.length) this.nothing.replaceChildren();
    else if (this.empty) this.nothing.replaceChildren(this.empty(extra));
  }

  row() {
    return h('tr', null, this.columns.map(({ title, number, minor, long, isAction }, index) =>
      h(index ? 'td' : 'th', { scope: index ? null : 'row', class: classes({ number, minor, long, action: isAction }), 'data-label': isAction ? '' : title })));
  }

  refill(row, item) {
    if (this.rowClass) setAttribute(row, 'class', this.rowClass(item));
    this.columns.forEach(({ text, fill }, index) => {
      const cell = row.children[index];
      if (fill) fill(cell, item);
      else setText(cell, text(item));
    });
  }
}

// A cell with one link.
export function linkCell(cell, address, text, title) {
  const link = cell.firstElementChild ?? cell.appendChild(h('a'));
  setAttribute(link, 'href', address);
  setAttribute(link, 'title', title);
  setText(link, text);
}

// A cell with a word in a colour: good, warn, bad, or none.
export function badgeCell(cell, text, kind, title) {
  const badge = cell.firstElementChild ?? cell.appendChild(h('span', { class: 'badge' }));
  setText(badge, text);
  setAttribute(badge, 'data-kind', kind);
  setAttribute(badge, 'title', title);
}

// A cell with a value and its share of a whole as a bar.
export function meterCell(cell, text, share, title, more) {
  if (!cell.firstChild) cell.append(h('span', { class: 'bar' }, h('i')), h('span'), h('small'));
  const [bar, words, second] = cell.children;
  setText(second, more ?? '');
  bar.firstChild.style.width = `${Math.max(0, Math.min(100, 100 * (share || 0)))}%`;
  setText(words, text);
  setAttribute(cell, 'title', title);
}
