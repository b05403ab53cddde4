// Plots of values over sizes or numbers: lines that differ in colour, dashes and markers.

import { h, s } from './dom.js';
import { niceAbove } from './chart.js';
import { bytes } from './format.js';

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [420, 220, 62, 26, 8, 30];
const MARKERS = ['M-3 -3h6v6h-6z', 'M0 -4L4 3H-4z', 'M0 -4L4 0L0 4L-4 0z', 'M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0', 'M-3 -3L3 3M3 -3L-3 3'];
const COLOURS = 6;

// The look of the line with a number.
const look = number => ({ class: `c${(number % COLOURS) + 1} d${Math.floor(number / COLOURS) % 3}`, marker: MARKERS[number % MARKERS.length] });

export function swatch(number) {
  const { class: name, marker } = look(number);
  return s('svg', { class: 'swatch', viewBox: '0 0 28 12', width: 28, height: 12, 'aria-hidden': 'true' }, s('path', { class: `line ${name}`, d: 'M0 6H28' }), s('path', { class: `mark ${name}`, d: marker, transform: 'translate(14 6)' }));
}

// Draws lines as [{ number, points: [[x, y]] }]. Sizes have a logarithmic axis: each doubling is as wide as the next.
export function plot({ title, lines, formatX, formatY, isLogarithmic, most }) {
  const xs = [...new Set(lines.flatMap(({ points }) => points.map(([x]) => x)))].sort((one, other) => one - other);
  const top = Math.max(0, ...lines.flatMap(({ points }) => points.map(([, y]) => y)));
  const unit = formatY === bytes && top > 0 ? 1024 ** Math.floor(Math.log2(top) / 10) : 1;
  const high = most ?? unit * niceAbove(top / unit);
  const scale = value => (isLogarithmic ? Math.log2(Math.max(value, 1e-9)) : value);
  const [from, to] = [scale(xs[0]), scale(xs.at(-1))];
  const x = value => LEFT + (to > from ? (scale(value) - from) / (to - from) : 0.5) * (WIDTH - LEFT - RIGHT);
  const y = value => TOP + (1 - Math.min(1, value / high)) * (HEIGHT - TOP - BOTTOM);
  const levels = [0, 0.25, 0.5, 0.75, 1].map(part => part * high);
  const grid = levels.map(level => s('g', null, s('path', { class: 'grid', d: `M${LEFT} ${y(level)}H${WIDTH - RIGHT}` }), s('text', { x: LEFT - 6, y: y(level) + 4, class: 'end' }, formatY(level))));
  // Labels that would touch each other are left out.
  let free = -Infinity;
  const ticks = xs.filter(value => x(value) >= free && (free = x(value) + 58)).map(value => s('text', { x: x(value), y: HEIGHT - 8, class: 'middle' }, formatX(value)));
  const drawn = lines.map(({ number, name, points }) => {
    const { class: colour, marker } = look(number);
    return s('g', null, s('path', { class: `line ${colour}`, d: points.map(([a, b], index) => `${index ? 'L' : 'M'}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join('') }),
      points.map(([a, b]) => s('path', { class: `mark ${colour}`, d: marker, transform: `translate(${x(a).toFixed(1)} ${y(b).toFixed(1)})` }, s('title', null, `${name}, ${formatX(a)}: ${formatY(b)}`))));
  });
  return h('figure', { class: 'figure' }, h('figcaption', null, title), s('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `${title}, plotted; the table below has the numbers` }, grid, ticks, drawn));
}
