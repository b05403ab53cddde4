// Runs of the simulator: started on the server, or read from files, plotted side by side.

import { get, post, remove } from '../api.js';
import { button, code, empty, h, keyed, setAttribute, setText } from '../dom.js';
import { duration, plural, time } from '../format.js';
import { plot, swatch } from '../plot.js';
import { linesOf, readRun } from '../runs.js';
import { href } from '../route.js';

const PRESETS = ['sproxy', 'zipf', 'early', 'crowd', 'even', 'segments', 'live', 'files', 'scans', 'loop', 'news', 'mixed'];
const LISTS = ['cache', 'slice', 'mode', 'policy'];
const FIELDS = [
  ['cache', 'Cache sizes', '64MiB, 256MiB, 1GiB'], ['slice', 'Slices', '512KiB'], ['mode', 'Prefetch modes', 'on-demand, active'], ['policy', 'Policies', 'stream, lru'],
  ['bandwidth', 'Link to the origin', '10MB'], ['delay', 'Delay', '50ms'], ['shrink', 'Divide all bytes by', '10'], ['seed', 'Seed', '1'],
];

// Runs from files: kept while the page is open.
const files = [];

export function open(page) {
  const told = h('p', { class: 'told', role: 'status' });
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const preset = h('select', { id: 'run-preset' }, PRESETS.map(name => h('option', { value: name }, name)));
  const inputs = FIELDS.map(([name, label, value]) => [name, h('input', { id: `run-${name}`, type: 'text', value, autocomplete: 'off', spellcheck: 'false' }), label]);
  const form = h('form', { class: 'card', onsubmit: start }, h('h2', null, 'New run'),
    h('div', { class: 'fields' }, h('label', null, h('span', null, 'Workload'), preset), inputs.map(([, input, label]) => h('label', null, h('span', null, label), input))),
    h('p', { class: 'note' }, 'Lists of values make a line for each combination. The run has low priority and at most five minutes.'), h('div', { class: 'actions' }, h('button', { class: 'main' }, 'Run'), h('label', { class: 'button file' }, 'Open a file', h('input', { type: 'file', accept: '.json,application/json', class: 'unseen', onchange: read }))));
  const runs = h('ul', { class: 'rows runs' });
  const result = h('div', { 'aria-live': 'polite' });
  page.root.append(told, problem, form, h('section', { class: 'card' }, h('h2', null, 'Runs'), runs), result);
  let [all, shown] = [[], null];

  async function start(event) {
    event.preventDefault();
    const body = { preset: preset.value };
    for (const [name, { value }] of inputs) {
      const text = value.trim();
      if (!text) continue;
      body[name] = LISTS.includes(name) ? text.split(',').map(part => part.trim()).filter(Boolean) : name === 'seed' || name === 'shrink' ? Number(text) : text;
    }
    try {
      const run = await post('simulations', body);
      setText(told, 'The run has begun.');
      page.set({ run: run.id });
    } catch (error) {
      setText(told, error.message);
    }
    poll.run();
  }

  async function read(event) {
    const [file] = event.target.files;
    event.target.value = '';
    if (!file) return;
    try {
      const outcomes = JSON.parse(await file.text());
      if (!readRun(outcomes)) throw new Error('it has no outcomes of millpond simulate --json');
      const run = { id: `file-${files.length + 1}`, name: file.name, state: 'done', outcomes };
      files.push(run);
      page.set({ run: run.id });
      list();
    } catch (error) {
      setText(told, `${file.name} can't be read: ${error.message}.`);
    }
  }

  function list() {
    const items = [...files.toReversed(), ...all.toReversed()];
    if (!items.length) {
      runs.keyed = undefined;
      runs.replaceChildren(h('li', null, empty('No run yet.', 'Start one above, or open a file that ', code('millpond simulate --json run.json'), ' has written.')));
      return;
    }
    if (!runs.keyed) runs.replaceChildren();
    keyed(runs, items, ({ id }) => id, run => h('li', null, h('a', { href: href('simulator', { run: run.id }) }), h('span', { class: 'badge' }), h('small'), typeof run.id === 'number' ? button('', () => drop(run.id), { class: 'small' }) : null), (node, run) => {
      setText(node.children[0], run.name ?? `${run.id}: ${words(run.options) || 'all defaults'}`);
      setAttribute(node.children[0], 'aria-current', String(run.id) === page.filters.run ? 'true' : null);
      setText(node.children[1], run.state);
      setAttribute(node.children[1], 'data-kind', { running: 'warn', failed: 'bad', done: 'good' }[run.state]);
      setText(node.children[2], run.started ? `${time(run.started)}, ${duration(run.seconds)}${run.error ? `: ${run.error}` : ''}` : 'from a file');
      if (node.children[3]) {
        setText(node.children[3], run.state === 'running' ? 'Cancel' : 'Forget');
        setAttribute(node.children[3], 'aria-label', `${node.children[3].textContent} run ${run.id}`);
      }
    });
  }

  async function drop(id) {
    await remove(`simulations/${id}`).catch(error => setText(told, error.message));
    poll.run();
  }

  async function show() {
    const { run: id } = page.filters;
    const file = files.find(run => run.id === id);
    const known = file ?? all.find(run => String(run.id) === id);
    const key = id && known ? `${id} ${known.state}` : null;
    if (key === shown) return;
    shown = key;
    if (!known || known.state !== 'done') {
      result.replaceChildren(known?.state === 'running' ? h('p', { class: 'note' }, 'The run is under way.') : '');
      return;
    }
    try {
      const { outcomes } = file ?? await get(`simulations/${id}`);
      if (key === shown) result.replaceChildren(...drawn(outcomes));
    } catch (error) {
      result.replaceChildren(h('p', { class: 'problem' }, error.message));
    }
  }

  const poll = page.poll(signal => get('simulations', null, signal), reply => {
    problem.hidden = true;
    all = Array.isArray(reply) ? reply : reply.items;
    list();
    show();
  }, 2, error => {
    problem.hidden = false;
    setText(problem, error.message);
    list();
    show();
  });
  return () => {
    list();
    show();
  };
}

const words = options => Object.entries(options ?? {}).filter(([, value]) => value !== null).map(([name, value]) => (name === 'preset' ? value : `${name} ${Array.isArray(value) ? value.join(', ') : value}`)).join('; ');

// The plots and the table of a run.
function drawn(outcomes) {
  const run = readRun(outcomes);
  if (!run) return [h('p', { class: 'problem' }, 'These outcomes have no form that can be plotted.')];
  const { form, names, rows } = run;
  const plots = form.plots.map(([title,, formatY], index) => [title, formatY, linesOf(run, index)]).filter(([,, lines]) => lines.some(({ points }) => points.some(([, y]) => y > 0)));
  const legend = h('ul', { class: 'legend' }, names.map((name, number) => h('li', null, swatch(number), name)));
  const figures = plots.map(([title, formatY, lines]) => plot({ title: `${title}, by ${form.name[0].toLowerCase()}${form.name.slice(1)}`, lines, formatX: form.formatX, formatY, isLogarithmic: form.isLogarithmic }));
  const head = h('tr', null, h('th', { scope: 'col' }, 'Line'), h('th', { scope: 'col', class: 'number' }, form.name), form.plots.map(([title]) => h('th', { scope: 'col', class: 'number' }, title)));
  const body = rows.map(row => h('tr', null, h('th', { scope: 'row', 'data-label': 'Line' }, row.name), h('td', { class: 'number', 'data-label': form.name }, form.formatX(row.x)), row.values.map((value, index) => h('td', { class: 'number', 'data-label': form.plots[index][0] }, form.plots[index][2](value)))));
  return [h('section', { class: 'card' }, h('h2', null, plural(names.length, 'line')), legend, h('div', { class: 'figures' }, figures)), h('div', { class: 'table' }, h('table', null, h('caption', { class: 'unseen' }, 'All figures'), h('thead', null, head), h('tbody', null, body)))];
}
