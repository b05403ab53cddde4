// A map of the slices of an object: one cell for a slice, or for some where there are many.

import { h, s, setAttribute, setText } from './dom.js';
import { bytes, count, plural } from './format.js';

// Classes of cells, in the order of the legend.
const CELLS = {
  m: ['memory', 'in memory'], d: ['disk', 'on the disk'], p: ['part', 'a part of it'], c: ['coming', 'on its way'], '.': ['absent', 'not cached'], f: ['file', 'local file'],
};
const [CELL, GAP, TALL] = [12, 2, 14];

export function legend() {
  return h('ul', { class: 'cells' }, Object.values(CELLS).map(([name, words]) => h('li', null, h('i', { class: `cell ${name}` }), words)));
}

// A map that arrow keys walk through. The line below it tells about the cell under the pointer or the cursor.
export class CacheMap {
  constructor(name) {
    this.grid = s('g');
    this.cursor = s('rect', { class: 'cursor', width: CELL, height: TALL, rx: '2', visibility: 'hidden' });
    this.svg = s('svg', {
      class: 'cachemap', tabindex: '0', role: 'img', 'aria-label': `Slices of ${name}`, onpointermove: event => this.point(event), onpointerleave: () => this.choose(null), onkeydown: event => this.key(event), onblur: () => this.choose(null),
    }, this.grid, this.cursor);
    this.words = h('p', { class: 'note readout', 'aria-live': 'polite' });
    this.element = h('div', null, this.svg, this.words);
    this.object = null;
    this.at = null;
    this.watcher = new ResizeObserver(() => this.object && this.update(this.object, this.slice));
    this.watcher.observe(this.element);
  }

  // Shows an object of the API's map.
  update(object, slice) {
    Object.assign(this, { object, slice });
    const { cells } = object;
    this.columns = Math.max(8, Math.floor((this.element.clientWidth || 640) / CELL));
    const rows = Math.ceil(cells.length / this.columns);
    setAttribute(this.svg, 'width', this.columns * CELL);
    setAttribute(this.svg, 'height', Math.max(1, rows) * TALL);
    const drawing = `${this.columns} ${cells}`;
    if (drawing !== this.drawing) this.draw(cells);
    this.drawing = drawing;
    this.tell();
  }

  // Cells of one class that lie side by side are one shape.
  draw(cells) {
    const paths = new Map();
    for (let at = 0; at < cells.length; at += 1) {
      const [x, y] = [(at % this.columns) * CELL, Math.floor(at / this.columns) * TALL];
      paths.set(cells[at], `${paths.get(cells[at]) ?? ''}M${x} ${y}h${CELL - GAP}v${TALL - GAP}h${GAP - CELL}z`);
    }
    this.grid.replaceChildren(...[...paths].map(([cell, d]) => s('path', { class: `cell ${CELLS[cell]?.[0] ?? 'absent'}`, d })));
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    const [column, row] = [Math.floor((event.clientX - box.left) / CELL), Math.floor((event.clientY - box.top) / TALL)];
    const at = row * this.columns + column;
    this.choose(column < this.columns && at < this.object.cells.length ? at : null);
  }

  key(event) {
    const last = this.object.cells.length - 1;
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns, Home: -Infinity, End: Infinity };
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.choose(this.at === null ? 0 : Math.max(0, Math.min(last, this.at + steps[event.key])));
  }

  choose(at) {
    this.at = at;
    setAttribute(this.cursor, 'visibility', at === null ? 'hidden' : 'visible');
    if (at !== null) {
      setAttribute(this.cursor, 'x', (at % this.columns) * CELL - GAP / 2);
      setAttribute(this.cursor, 'y', Math.floor(at / this.columns) * TALL - GAP / 2);
    }
    this.tell();
  }

  tell() {
    const { object, slice, at } = this;
    if (at === null || at >= object.cells.length) {
      setText(this.words, object['slices-per-cell'] > 1 ? `Each cell is ${plural(object['slices-per-cell'], 'slice')}.` : 'Each cell is one slice.');
      return;
    }
    const from = at * object['slices-per-cell'];
    const to = Math.min(object.slices, from + object['slices-per-cell']);
    const number = to - from > 1 ? `Slices ${count(from)} to ${count(to - 1)}` : `Slice ${count(from)}`;
    setText(this.words, `${number}: ${CELLS[object.cells[at]]?.[1] ?? 'unknown'}, ${bytes(from * slice)} to ${bytes(Math.min(object.bytes, to * slice))}`);
  }
}
