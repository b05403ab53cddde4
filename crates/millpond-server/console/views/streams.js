// Live streams, and the modules, recordings and insertions of clips that belong to them.

import { component, get, post, remove } from '../api.js';
import { confirm, prompt } from '../dialogs.js';
import { button, empty, fact, h, keyed, setAttribute, setText } from '../dom.js';
import { ago, bytes, count, duration, rate, time } from '../format.js';
import { list } from '../list.js';
import { href } from '../route.js';
import { badgeCell, Table } from '../table.js';
import { twoLines } from './sessions.js';

const STATES = [['', 'All states'], ['running', 'Running'], ['waiting', 'Waiting'], ['lost', 'Lost'], ['failed', 'Failed']];
const KINDS = { running: 'good', waiting: null, lost: 'warn', failed: 'bad' };
const sum = counts => Object.values(counts ?? {}).reduce((all, value) => all + value, 0);

export function open(page) {
  const told = h('p', { class: 'told', role: 'status' });
  const attempt = async (what, change) => {
    try {
      await change();
      setText(told, what);
    } catch (error) {
      setText(told, `${error.message}`);
    }
    refresh();
  };
  const detail = h('section', { class: 'card detail', hidden: true, 'aria-label': 'Stream' });
  const { changed, poll } = list(page, {
    path: 'streams',
    noun: ['live stream', 'live streams'],
    seconds: 2,
    fields: [{ name: 'q', label: 'Find', hint: 'path or source' }, { name: 'state', label: 'State', options: STATES }],
    table: {
      caption: 'Live streams',
      key: ({ path }) => path,
      columns: [
        { title: 'Stream', fill: (cell, { path, source, server }) => {
          if (!cell.firstChild) cell.append(h('a'), h('small'));
          setAttribute(cell.firstChild, 'href', href('streams', { ...page.filters, stream: path }));
          setText(cell.firstChild, path);
          setText(cell.lastChild, server ? `${source} (${server})` : source);
        } },
        { title: 'State', fill: (cell, { state, why }) => badgeCell(cell, state, KINDS[state], why) },
        { title: 'For', number: true, text: ({ since }) => ago(since) },
        { title: 'Viewers', number: true, text: ({ viewers }) => count(sum(viewers)) },
        { title: 'Bit rate', number: true, text: stream => rate(stream['bit-rate']) },
        { title: 'Lost packets', number: true, text: stream => count(stream['lost-packets']) },
        { title: 'Last frame', number: true, hint: 'Age of the newest frame', text: stream => duration(stream['silent-seconds']) },
        { title: 'Stop', isAction: true, fill: (cell, stream) => {
          cell.stream = stream;
          const control = cell.firstChild ?? cell.appendChild(button('Stop', () => stop(cell.stream), { class: 'small' }));
          setAttribute(control, 'aria-label', `Stop ${stream.path}`);
        } },
      ],
      empty: ({ isFiltered }) => (isFiltered
        ? empty('No stream fits these filters.', 'Change or clear them to see the others.')
        : empty('No live stream runs.', 'A stream starts with its first viewer or publisher. Places such as ', h('code', null, 'cams=rtsp://camera/'), ' and ', h('code', null, 'live=publish:'), ' have streams.')),
    },
    shown: ({ items }) => showDetail(items.find(({ path }) => path === page.filters.stream)),
  });
  page.root.prepend(told, detail);

  async function stop({ path, viewers }) {
    if (await confirm('Stop this stream?', `${path} has ${count(sum(viewers))} receivers. Its source is closed; the next viewer or publisher starts it again.`, 'Stop')) {
      attempt(`${path} has been stopped.`, () => remove(`streams/${component(path)}`));
    }
  }

  const facts = h('dl', { class: 'facts' });
  const title = h('h2');
  detail.append(h('div', { class: 'head' }, title, h('div', { class: 'actions' },
    button('Record', () => attempt('The recording has begun.', () => post('recordings', { path: page.filters.stream }))),
    button('Insert a clip', async () => {
      const clip = await prompt('Insert a clip', 'The clip replaces the stream for its duration, from the next key frame on.', 'Path of a stored asset', 'Insert', 'films/ad.mp4');
      if (clip) attempt('The clip has been asked for.', () => post('insertions', { path: page.filters.stream, clip }));
    }),
    h('a', { class: 'button' }, 'Show in the graph'),
    button('Close', () => page.set({ stream: null })))), facts);

  function showDetail(stream) {
    detail.hidden = !stream;
    if (!stream) return;
    setText(title, stream.path);
    detail.querySelector('a.button').href = href('graph', { q: stream.path });
    const { epoch, 'time-shift': shift } = stream;
    const rows = [
      ['Why', stream.why], ['Codecs', epoch?.codecs.join(', ')], ['Epoch', epoch && `${epoch.number}, by ${epoch.reason}, since ${time(epoch.wall)}`],
      ['Viewers', Object.entries(stream.viewers ?? {}).map(([kind, number]) => `${number} ${kind}`).join(', ')], ['Run', stream.run],
      ['Received', `${bytes(stream.bytes)}, ${count(stream.frames)} frames`], ['Memory', `${bytes(stream['memory-bytes'])} of ${bytes(stream['memory-limit-bytes'])}`],
      ['Dropped frames', count(stream['dropped-frames'])], ['Broken frames', count(stream['broken-frames'])], ['Cues', count(stream.cues)],
      ['Packets', `${count(stream.packets)}: ${count(stream['lost-packets'])} lost, ${count(stream['repaired-packets'])} repaired, ${count(stream['too-late-packets'])} too late, ${count(stream['reordered-packets'])} reordered`],
      ['Time shift', shift && (shift.why ? `off: ${shift.why}` : shift.from ? `from ${time(shift.from)} to ${time(shift.to)}, ${bytes(shift.bytes)}` : 'nothing kept yet')],
    ].filter(([, value]) => value);
    keyed(facts, rows, ([name]) => name, ([name]) => fact(name), (node, [, value]) => setText(node.lastChild, value));
  }

  const recordings = section('Recordings', isOn => (isOn ? 'Nothing is recorded. Open a stream to record it.' : 'Recording is off: the setting record-folder names the folder of recordings.'), [
    { title: 'Recording', fill: (cell, { path, file }) => twoLines(cell, path, file) },
    { title: 'State', fill: (cell, { ended, error }) => badgeCell(cell, ended ?? 'running', ended === 'failed' ? 'bad' : ended ? null : 'good', error) },
    { title: 'Duration', number: true, text: ({ seconds }) => duration(seconds) },
    { title: 'Size', number: true, text: recording => bytes(recording.bytes) },
    { title: 'Lost frames', number: true, text: recording => count(recording['lost-frames']) },
    { title: 'Stop', isAction: true, fill: (cell, { id, ended, path }) => control(cell, ended === null, 'Stop', `Stop the recording of ${path}`, () => attempt('The recording has been stopped.', () => remove(`recordings/${id}`))) },
  ]);
  const insertions = section('Clips', () => 'No clip waits or plays in a stream. Open a stream to insert one.', [
    { title: 'Clip', fill: (cell, { clip, path }) => twoLines(cell, clip, path) },
    { title: 'State', fill: (cell, { state, error }) => badgeCell(cell, state, state === 'failed' ? 'bad' : state === 'playing' ? 'good' : null, error) },
    { title: 'At', number: true, text: ({ at }) => (at === null ? 'at once' : time(at)) },
    { title: 'Duration', number: true, text: ({ seconds }) => duration(seconds) },
    { title: 'Cancel', isAction: true, fill: (cell, { id, state, clip }) => control(cell, state === 'waiting' || state === 'playing', 'Cancel', `Cancel ${clip}`, () => attempt('The clip has been cancelled.', () => remove(`insertions/${id}`))) },
  ]);
  const modules = section('Modules', () => 'No module is attached. The command millpond module add and the setting modules attach some.', [
    { title: 'Module', fill: (cell, { stream, kind, options }) => twoLines(cell, [kind, ...Object.entries(options).map(([name, value]) => `${name}=${value}`)].join(' '), stream) },
    { title: 'State', fill: (cell, { state, error }) => badgeCell(cell, state, state === 'failed' ? 'bad' : state === 'waiting' ? 'warn' : state === 'running' ? 'good' : null, error) },
    { title: 'From', text: module => (module['is-configured'] ? 'configuration' : 'API') },
    { title: 'Remove', isAction: true, fill: (cell, { id, kind, stream, ...module }) => control(cell, !module['is-configured'], 'Remove', `Remove ${kind} of ${stream}`, () => attempt('The module has been removed.', () => remove(`modules/${id}`))) },
  ]);
  page.root.append(modules.element, recordings.element, insertions.element);
  const items = reply => (Array.isArray(reply) ? reply : reply.items);
  const polls = [
    poll,
    page.poll(signal => get('recordings', null, signal), reply => recordings.update(items(reply), reply['is-on'] !== false), 5, () => recordings.update([], false)),
    page.poll(signal => get('modules', null, signal), reply => modules.update(items(reply)), 5, () => modules.update([])),
    page.poll(signal => get('insertions', null, signal), reply => insertions.update(items(reply)), 5, () => insertions.update([])),
  ];
  const refresh = () => polls.forEach(each => each.run());
  return filters => {
    changed(filters);
    if (!filters.stream) showDetail();
  };
}

function section(title, words, columns) {
  const table = new Table({ caption: title, key: ({ id }) => id, columns, empty: isOn => h('p', { class: 'note' }, words(isOn)) });
  return { element: h('section', null, h('h2', null, title), table.element), update: (items, isOn) => table.update(items, isOn) };
}

function control(cell, isShown, text, label, act) {
  cell.act = act;
  if (isShown && !cell.firstChild) cell.append(button(text, () => cell.act(), { class: 'small', 'aria-label': label }));
  if (!isShown) cell.replaceChildren();
}
