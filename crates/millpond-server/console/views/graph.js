// The modules and pipes of the stream engine, drawn as they change.

import { get } from '../api.js';
import { button, empty, h, keyed, s, setAttribute, setText } from '../dom.js';
import { count, plural } from '../format.js';
import { layout } from '../layout.js';
import { filterBar } from '../list.js';
import { href } from '../route.js';

const EACH = 2;
// Letters of a label that fit.
const LETTERS = 22;
const short = text => (text.length > LETTERS ? `…${text.slice(1 - LETTERS)}` : text);

// Width of the view before the graph is shown for the first time.
const main = () => document.getElementById('main').clientWidth - 40;

export function open(page) {
  const bar = filterBar(page, [{ name: 'q', label: 'Find', hint: 'path, session or kind of module' }]);
  const total = h('p', { class: 'total', role: 'status' });
  const pipes = s('g', { class: 'pipes' });
  const modules = s('g', { class: 'modules' });
  const marker = s('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: '8', refY: '4', markerWidth: '7', markerHeight: '7', orient: 'auto' }, s('path', { d: 'M0 0L8 4L0 8Z' }));
  const svg = s('svg', { class: 'graph', role: 'group', 'aria-label': 'Stream graph' }, s('defs', null, marker), pipes, modules);
  const scroller = h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Stream graph, scrollable' }, svg);
  const nothing = h('div', { hidden: true });
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const detail = h('section', { class: 'card detail', hidden: true, 'aria-live': 'polite' });
  const kindsList = h('dl', { class: 'kinds' });
  page.root.append(bar.element, problem, total, detail, scroller, nothing, h('details', null, h('summary', null, 'Kinds of modules'), kindsList));
  let [known, last, chosen, about] = [null, null, null, new Map()];

  function show(graph) {
    problem.hidden = true;
    last = graph;
    about = new Map(graph.kinds.map(kind => [kind.name, kind.about]));
    const placed = layout(graph.modules, graph.pipes, (scroller.clientWidth || main()) - 32);
    const isEmpty = placed.nodes.length === 0;
    scroller.hidden = isEmpty;
    nothing.hidden = !isEmpty;
    if (isEmpty) {
      nothing.replaceChildren(page.filters.q
        ? empty('No module fits.', 'Clear the filter to see the whole graph.')
        : empty('The graph is empty.', 'Modules appear with the first RTSP session, channel, live stream or recording. Stored titles by HLS and DASH need none.'));
    }
    const left = placed.leftOut + (graph['modules-left-out'] ?? 0);
    setText(total, isEmpty ? '' : `${plural(graph.modules.length, 'module')}, ${plural(graph.pipes.length, 'pipe')}${left ? `; ${count(left)} more are not drawn: find a path or a kind` : ''}`);
    const [width, height] = [placed.width + 4, placed.height + 4];
    setAttribute(svg, 'viewBox', `-2 -2 ${width} ${height}`);
    setAttribute(svg, 'width', width);
    setAttribute(svg, 'height', height);
    keyed(modules, placed.nodes, ({ id }) => id, drawn, (node, place) => {
      setAttribute(node, 'transform', `translate(${place.x} ${place.y})`);
      node.place = place;
      setText(node.querySelector('.label'), short(place.label));
      setAttribute(node, 'aria-pressed', String(place.id === chosen));
    });
    keyed(pipes, placed.edges, ({ from, to }) => `${from}>${to}`, () => s('g', null, s('path', { 'marker-end': 'url(#arrow)' }), s('text', { class: 'lost' })), (node, edge) => {
      const [x1, y1] = [edge.start.x + edge.start.width, edge.start.y + edge.start.height / 2];
      const [x2, y2] = [edge.end.x - 1, edge.end.y + edge.end.height / 2];
      const middle = (x1 + x2) / 2;
      setAttribute(node.firstChild, 'd', `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`);
      setAttribute(node, 'class', edge.lost ? 'losing' : null);
      setText(node.lastChild, edge.lost ? `${count(edge.lost)} lost` : '');
      setAttribute(node.lastChild, 'x', middle);
      setAttribute(node.lastChild, 'y', (y1 + y2) / 2 - 4);
    });
    known = new Set(placed.nodes.map(({ id }) => id));
    keyed(kindsList, graph.kinds, ({ name }) => name, kind => h('div', null, h('dt', null, kind.name), h('dd', null, kind.about)));
    showDetail(placed.nodes.find(({ id }) => id === chosen));
  }

  function drawn(place) {
    const node = s('g', { class: known && !known.has(place.id) ? 'module new' : 'module', tabindex: '0', role: 'button', 'data-kind': place.kind, onclick: () => choose(node.place.id),
      onkeydown: event => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        choose(node.place.id);
      } },
    s('rect', { width: place.width, height: place.height, rx: '6' }), s('rect', { class: 'edge', width: '4', height: place.height, rx: '2' }),
    s('text', { class: 'kind', x: '12', y: '18' }, place.kind), ' ', s('text', { class: 'label', x: '12', y: '34' }), s('title', null, `${place.kind}: ${place.label}`));
    return node;
  }

  function choose(id) {
    chosen = chosen === id ? null : id;
    show(last);
  }

  function showDetail(place) {
    detail.hidden = !place;
    if (!place) return;
    const ids = new Set(place.members.map(({ id }) => id));
    const label = id => last.modules.find(module => module.id === id);
    const ends = (mine, other) => last.pipes.filter(pipe => ids.has(pipe[mine])).slice(0, 12).map(pipe => [label(pipe[other]), pipe]);
    const line = ([module, { depth, lost }]) => h('li', null, `${module?.kind ?? '?'} ${module?.label ?? ''}`, h('small', null, ` depth ${depth}, ${count(lost)} frames lost`));
    const path = place.members.length === 1 ? place.label : null;
    detail.replaceChildren(
      h('div', { class: 'head' }, h('h2', null, place.kind), h('div', { class: 'actions' }, path && h('a', { class: 'button', href: href('sessions', { q: path }) }, 'Its sessions'), button('Close', () => choose(place.id)))),
      h('p', null, about.get(place.kind) ?? ''), h('p', null, place.members.length > 1 ? `${place.label}: ${place.members.slice(0, 20).map(({ label: name }) => name).join(', ')}${place.members.length > 20 ? ' …' : ''}` : `${place.label} (number ${place.id})`),
      h('div', { class: 'columns' }, h('div', null, h('h3', null, 'Takes from'), h('ul', null, ends('to', 'from').map(line))), h('div', null, h('h3', null, 'Gives to'), h('ul', null, ends('from', 'to').map(line)))),
    );
  }

  const poll = page.poll(signal => get('graph', { q: page.filters.q }, signal), show, EACH, error => {
    problem.hidden = false;
    setText(problem, error.message);
  });
  return filters => {
    bar.show(filters);
    poll.run();
  };
}
