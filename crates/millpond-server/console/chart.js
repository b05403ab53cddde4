// Small live charts: the last five minutes of a few values.

import { h, s, setAttribute, setText } from './dom.js';
import { ago, time } from './format.js';

const [WIDTH, HEIGHT] = [300, 64];
// Seconds that a chart shows, and the pause between two points over which no line goes.
export const WINDOW = 300;
const GAP = 6;

// The least round number that is not below a value.
export function niceAbove(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find(step => step * power >= value * 0.9999);
}

// A chart of series over time. `format` shows a value, `most` is a fixed upper end of the axis, `href` leads to the view with more.
export class LiveChart {
  constructor({ title, format, series, most, least = 0, href, sum }) {
    Object.assign(this, { format, series, most, least, sum, points: [], at: null });
    this.lines = series.map((_, index) => [
      s('path', { class: `area c${index + 1}` }), s('path', { class: `line c${index + 1}`, 'vector-effect': 'non-scaling-stroke' }),
    ]);
    this.cursor = s('path', { class: 'cursor', 'vector-effect': 'non-scaling-stroke' });
    // The uppermost area is drawn first.
    const shapes = this.lines.toReversed();
    const grid = s('path', { class: 'grid', d: `M0 .5H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 0.5}H${WIDTH}`, 'vector-effect': 'non-scaling-stroke' });
    this.svg = s('svg', {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': title, onpointermove: event => this.point(event), onpointerleave: () => this.point(null),
    }, grid, shapes, this.cursor);
    this.value = h('strong');
    this.top = h('span', { class: 'top' });
    this.when = h('span', { class: 'when' });
    this.legend = h('span', { class: 'legend' }, series.length > 1 ? series.map(({ name }, index) => h('span', null, h('i', { class: `c${index + 1}` }), name, ' ', h('b'))) : null);
    this.title = title;
    const name = href ? h('a', { href }, title) : title;
    this.element = h('figure', { class: 'chart' },
      h('figcaption', null, h('span', { class: 'name' }, name), this.value),
      h('div', { class: 'plot' }, this.svg, this.top), h('div', { class: 'foot' }, this.legend, this.when));
  }

  // Shows points: times in seconds with a value for each series, oldest first. Absent values are null.
  update(points) {
    this.points = points;
    const end = points.at(-1)?.time ?? 0;
    this.start = end - WINDOW;
    // The lines of a sum lie on each other, so that the uppermost one is the sum.
    const stacked = this.sum ? points.map(point => point.values.map((_, index) => point.values.slice(0, index + 1).reduce((sum, value) => sum + (value ?? 0), 0))) : points.map(point => point.values);
    const values = stacked.flat().filter(value => value !== null);
    const high = this.most ?? Math.max(this.least, niceAbove(Math.max(0, ...values)));
    this.x = at => (WIDTH * (at - this.start)) / WINDOW;
    this.y = value => HEIGHT - 1 - (HEIGHT - 2) * Math.min(1, value / high);
    this.lines.forEach(([area, line], index) => {
      const runs = this.runs(stacked, index);
      const path = run => run.map(([x, y], step) => `${step ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`).join('');
      setAttribute(line, 'd', runs.map(run => path(run.length > 1 ? run : [run[0], [run[0][0] + 1, run[0][1]]])).join('') || 'M0 0');
      const below = index && this.sum ? this.runs(stacked, index - 1) : runs.map(run => [[run[0][0], HEIGHT], [run.at(-1)[0], HEIGHT]]);
      setAttribute(area, 'd', runs.map((run, part) => `${path(run)}L${path(below[part].toReversed()).slice(1)}Z`).join('') || 'M0 0');
    });
    setText(this.top, values.length ? this.format(high) : '');
    this.read();
  }

  // Stretches of points without a gap, as coordinates.
  runs(stacked, index) {
    const runs = [];
    let before = null;
    for (const [step, { time: at }] of this.points.entries()) {
      const value = stacked[step][index];
      if (at < this.start) continue;
      if (value === null) {
        before = null;
        continue;
      }
      if (before === null || at - before > GAP) runs.push([]);
      runs.at(-1).push([this.x(at), this.y(value)]);
      before = at;
    }
    return runs;
  }

  // Shows the values below the pointer, else the last ones.
  point(event) {
    const box = this.svg.getBoundingClientRect();
    this.at = event ? (event.clientX - box.left) / box.width : null;
    this.read();
  }

  read() {
    const { points } = this;
    let point = points.at(-1);
    if (this.at !== null && point) {
      const wanted = this.start + this.at * WINDOW;
      point = points.reduce((best, other) => (Math.abs(other.time - wanted) < Math.abs(best.time - wanted) ? other : best), point);
    }
    const isPast = this.at !== null && point;
    setAttribute(this.cursor, 'd', isPast ? `M${this.x(point.time).toFixed(1)} 0V${HEIGHT}` : 'M0 0');
    const values = point?.values ?? this.series.map(() => null);
    const shown = this.sum ? values.reduce((all, value) => all + (value ?? 0), 0) : values[0];
    setText(this.value, this.format(point ? shown : null));
    this.legend.querySelectorAll('b').forEach((node, index) => setText(node, this.format(values[index])));
    setText(this.when, isPast ? time(point.time) : points.length > 1 ? `last ${ago(Math.max(this.start, points[0].time))}` : '');
    setAttribute(this.svg, 'aria-label', `${this.title}: ${this.format(point ? shown : null)}`);
  }
}
