// The viewers and publishers of this server: found, ordered, ended.

import { component, get, remove } from '../api.js';
import { confirm } from '../dialogs.js';
import { button, empty, h, keyed, setAttribute, setText } from '../dom.js';
import { ago, bytes, count, rate, time } from '../format.js';
import { list } from '../list.js';
import { href } from '../route.js';
import { badgeCell, linkCell } from '../table.js';

const KINDS = [['', 'All kinds'], ['http', 'HTTP'], ['long', 'Long responses'], ['rtsp', 'RTSP'], ['webrtc', 'WebRTC'], ['srt', 'SRT'], ['rtmp', 'RTMP'], ['publish', 'Publishers']];
const NAMES = { http: 'HTTP', long: 'Long', rtsp: 'RTSP', webrtc: 'WebRTC', srt: 'SRT', rtmp: 'RTMP', publish: 'Publisher' };
// How long a viewer of HTTP that was ended is refused.
const BLOCK = '60s';
const descending = name => (one, other) => (other[name] ?? -1) - (one[name] ?? -1);

export function open(page) {
  const told = h('p', { class: 'told', role: 'status' });
  const end = async session => {
    const what = session.kind === 'publish' ? 'Disconnect' : 'End';
    const words = session.kind !== 'http'
      ? `${session.client} on ${session.asset}. The connection is closed; nothing keeps the client from coming back.`
      : `${session.client} on ${session.asset}. Requests of this viewer are refused for ${BLOCK}.`;
    if (!await confirm(`${what} this ${session.kind === 'publish' ? 'publisher' : 'session'}?`, words, what)) return;
    try {
      await remove(`sessions/${component(session.id)}`, { block: BLOCK });
      setText(told, `${session.client} on ${session.asset} has been ended.`);
      poll.run();
      blocks.run();
    } catch (error) {
      setText(told, `Not ended: ${error.message}.`);
    }
  };
  const { changed, poll } = list(page, {
    path: 'sessions',
    noun: ['session', 'sessions'],
    seconds: 2,
    fields: [{ name: 'q', label: 'Find', hint: 'client, asset, agent or id' }, { name: 'kind', label: 'Kind', options: KINDS }, { name: 'place', label: 'Place', options: [['', 'All places']] }],
    table: {
      caption: 'Sessions',
      key: session => session.id,
      columns: [
        { title: 'Client', fill: (cell, { client, agent, subject, id }) => twoLines(cell, subject ? `${client} (${subject})` : client, agent ?? id) },
        { title: 'Asset', long: true, fill: (cell, { asset, kind }) => linkCell(cell, kind === 'http' ? href('cache', { path: asset }) : href('graph', { q: asset }), asset) },
        { title: 'Kind', fill: (cell, { kind, transport }) => twoLines(cell, NAMES[kind] ?? kind, transport === kind ? '' : transport) },
        { title: 'State', fill: (cell, { state }) => badgeCell(cell, state, state === 'idle' || state === 'paused' || state === 'ready' ? null : 'good') },
        { title: 'Rate', number: true, sort: 'rate', compare: descending('bps'), hint: 'Average of about 10 seconds', text: ({ bps }) => rate(bps) },
        { title: 'Sent', number: true, sort: 'sent', compare: descending('bytes'), hint: 'Received, for publishers', text: session => bytes(session.bytes) },
        { title: 'Requests', number: true, minor: true, sort: 'requests', compare: descending('requests'), text: ({ requests }) => count(requests) },
        { title: 'For', number: true, sort: 'age', compare: (one, other) => one.started - other.started, fill: (cell, { started }) => {
          setText(cell, ago(started));
          cell.title = `since ${time(started)}`;
        } },
        { title: 'End', isAction: true, fill: (cell, session) => {
          const control = cell.firstChild ?? cell.appendChild(button('', () => end(cell.session), { class: 'small' }));
          cell.session = session;
          setText(control, session.kind === 'publish' ? 'Disconnect' : 'End');
          control.setAttribute('aria-label', `${control.textContent} ${session.client} on ${session.asset}`);
        } },
      ],
      empty: ({ isFiltered }) => (isFiltered
        ? empty('No session fits these filters.', 'Change or clear them to see the others.')
        : empty('Nobody is watching now.', 'Sessions appear here as soon as a player starts. The players\' page of this server is on its HTTP address.')),
    },
  });
  const blocked = h('section', { class: 'card', hidden: true }, h('h2', null, 'Refused now'), h('ul', { class: 'rows' }));
  page.root.prepend(told);
  page.root.append(blocked);
  places(page);
  const blocks = page.poll(signal => get('blocks', null, signal), ({ items }) => {
    blocked.hidden = items.length === 0;
    keyed(blocked.lastChild, items, ({ id }) => id, item => h('li', null, h('span'), button('Admit again', async () => {
      await remove(`blocks/${component(item.id)}`).catch(error => setText(told, error.message));
      blocks.run();
    }, { class: 'small' })), (node, { client, asset, until }) => setText(node.firstChild, `${client} on ${asset}, until ${time(until)}`));
  }, 5);
  return changed;
}

// Puts the places of the server into the filter.
export function places(page) {
  const select = page.root.querySelector('#filter-place');
  get('places').then(({ items }) => {
    if (items.length < 2) {
      select.parentElement.hidden = true;
      return;
    }
    select.append(...items.map(({ name }) => h('option', { value: name }, name)));
    select.value = page.filters.place ?? '';
  }, () => {});
}

// A cell with a dim second line.
export function twoLines(cell, first, second) {
  if (!cell.firstChild) cell.append(h('span'), h('small'));
  setText(cell.firstChild, first);
  setText(cell.lastChild, second ?? '');
  setAttribute(cell.lastChild, 'title', second);
}
