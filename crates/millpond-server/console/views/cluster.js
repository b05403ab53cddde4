// The nodes of the cluster, their load, what the fleet plays and tells, and which nodes serve and have a title.

import { component, get, getHere, put, remove } from '../api.js';
import { confirm } from '../dialogs.js';
import { button, code, empty, fact, h, keyed, setAttribute, setText } from '../dom.js';
import { count, decimal, duration, pathOf, percent, perSecond, rate, time, viewerHours } from '../format.js';
import { href } from '../route.js';
import { Table, badgeCell, linkCell, meterCell } from '../table.js';
import { twoLines } from './sessions.js';

// Titles and events that are shown.
const [TITLES, EVENTS] = [12, 30];

/** The text and the kind of the badge of a node, and why. */
function state({ draining, reachable, error, report }) {
  if (reachable === false) return ['does not answer', 'bad', error];
  if (draining) return ['draining', 'warn'];
  if (report?.['waiting-for'].length) return ['not ready', 'warn', report['waiting-for'].join('; ')];
  return ['serving', 'good'];
}

/** The weight of a node, its limit where it has one, and its share. */
function loadCell(cell, node) {
  const [load, weight, limit] = ['load-bps', 'capacity-bps', 'limit-bps'].map(name => node[name]);
  meterCell(cell, percent(load / weight), load / weight, null, `${rate(load)} of ${rate(weight)}${limit === null || limit === undefined ? '' : `, limit ${rate(limit)}`}`);
}

/** The time by which the clock of a node's machine is ahead, where it is known. */
const clock = milliseconds => (milliseconds === null || milliseconds === undefined ? '–' : `${milliseconds < 0 ? '−' : '+'}${duration(Math.abs(milliseconds) / 1000)}`);

/** The settings in which a node differs from most. */
function differing(differences, { name }) {
  const own = differences.filter(one => one.differing.includes(name) || one.lacking.includes(name));
  return own.map(({ subject, place }) => (subject === 'place' ? place || 'the place without a name' : subject)).join(', ');
}

export function open(page) {
  const told = h('p', { class: 'told', role: 'status' });
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const nothing = h('div', { hidden: true });
  const facts = h('dl', { class: 'facts' });
  const faults = h('ul', { class: 'health' });
  const nodes = new Table({
    caption: 'Nodes',
    key: ({ name }) => name,
    columns: [
      { title: 'Node', fill: (cell, node) => twoLines(cell, node.self ? `${node.name} (this one)` : node.name, [node.zone && `zone ${node.zone}`, node.http, node.rtsp, node.roles.join(', ')].filter(Boolean).join('  ')) },
      { title: 'State', fill: (cell, node) => badgeCell(cell, ...state(node)) },
      { title: 'Version', text: ({ version }) => version ?? '–' },
      { title: 'Differs', text: ({ differs }) => differs || '–' },
      { title: 'Load', fill: loadCell },
      { title: 'Sessions', number: true, fill: (cell, { sessions, booked }) => twoLines(cell, count(sessions), booked === undefined ? '' : `${rate(booked)} booked`) },
      { title: 'Viewers', number: true, hint: 'Viewers by HTTP of the last minute, and sessions of RTSP', fill: (cell, { report }) => twoLines(cell, report ? count(report.viewers + report.sessions) : '–', report ? `${percent(report['hit-ratio'])} from the cache, ${perSecond(report['errors-per-second'])} errors` : '') },
      { title: 'Clock', number: true, minor: true, hint: 'Time by which the clock of its machine is ahead of that of this node', text: node => clock(node['clock-ahead-ms']) },
      { title: 'Drain', isAction: true, fill: (cell, node) => {
        cell.node = node;
        const control = cell.firstChild ?? cell.appendChild(button('', () => drain(cell.node), { class: 'small' }));
        setText(control, node.draining ? 'Take work again' : 'Drain');
        setAttribute(control, 'aria-label', `${control.textContent}: ${node.name}`);
      } },
    ],
  });
  const changes = new Table({
    caption: 'Changes of nodes',
    key: ({ time, node, change }) => `${time} ${node} ${change}`,
    columns: [
      { title: 'Time', text: ({ time }) => new Date(time * 1000).toLocaleTimeString() },
      { title: 'Node', text: ({ node }) => node },
      { title: 'Change', text: ({ change }) => change },
    ],
  });
  const titles = new Table({
    caption: 'Titles that most viewers watch',
    key: ({ title }) => title,
    columns: [
      { title: 'Title', long: true, fill: (cell, { title }) => linkCell(cell, href('cluster', { path: title }), title) },
      { title: 'Viewers', number: true, text: ({ viewers }) => count(viewers) },
      { title: 'Viewed today', number: true, text: one => viewerHours(one['viewer-seconds']) },
      { title: 'Starts', number: true, minor: true, text: ({ starts }) => count(starts) },
      { title: 'Nodes', text: one => one.nodes.join(', ') },
    ],
  });
  const events = new Table({
    caption: 'Events of all nodes',
    key: ({ source, id }) => `${source} ${id}`,
    columns: [
      { title: 'Time', text: event => time(Date.parse(event.time) / 1000) },
      { title: 'Node', text: ({ source }) => decodeURIComponent(source.replace('millpond://', '')) },
      { title: 'Event', text: ({ type }) => type.replace('millpond.', '') },
      { title: 'About', long: true, text: ({ subject }) => subject ?? '–' },
    ],
  });
  const [hot, news] = [h('section', { class: 'stack', hidden: true }, h('h2', null, 'Hot titles of the fleet'), titles.element), h('section', { class: 'stack', hidden: true }, h('h2', null, 'Events of the fleet'), events.element)];
  const asked = h('div', { 'aria-live': 'polite' });
  const input = h('input', { type: 'text', id: 'assign', placeholder: 'films/a.mp4', autocomplete: 'off', spellcheck: 'false', value: page.filters.path });
  const form = h('form', { class: 'ask', onsubmit: event => {
    event.preventDefault();
    const path = pathOf(input.value);
    if (path === (page.filters.path ?? '')) find();
    else page.set({ path });
  } }, h('label', { for: 'assign' }, 'Path or address of an asset or stream'), h('div', null, input, h('button', { class: 'main' }, 'Where does it lie?')));
  const member = h('div', null, h('section', { class: 'card' }, h('h2', null, 'This node'), facts, faults), nodes.element, changes.element, hot, news, h('section', { class: 'card' }, h('h2', null, 'A title'), form, asked));
  member.hidden = true;
  page.root.append(told, problem, nothing, member);

  async function drain({ name, draining }) {
    if (!draining && !await confirm(`Drain ${name}?`, `New viewers are sent to other nodes; those of ${name} end by themselves.`, 'Drain')) return;
    try {
      await (draining ? remove : put)(`cluster/nodes/${component(name)}/drain`);
      setText(told, draining ? `${name} takes work again.` : `${name} is draining.`);
    } catch (error) {
      setText(told, error.message);
    }
    poll.run();
  }

  function alone(isAlone) {
    member.hidden = isAlone;
    nothing.hidden = !isAlone;
    if (isAlone && !nothing.firstChild) {
      nothing.append(empty('This server is no node of a cluster.', 'Start each server with ', code('--cluster http://etcd:2379'), ', or without etcd with ', code('--cluster-nodes'), ': they share their viewers and read each asset from its storage once.'));
    }
  }

  // What each node reports, by its name.
  let reports = new Map();
  let last = null;

  function showNodes() {
    nodes.update(last.nodes.map(node => ({ ...node, ...reports.get(node.name), booked: last.booked[`node:${node.name}`], differs: differing(last.differences, node) })));
  }

  let fleet = null;
  /** Follows all nodes, once it is known that there are some. */
  function follow() {
    fleet ??= page.poll(signal => getHere('cluster/fleet', null, signal), all => {
      reports = new Map(all.nodes.map(({ name, error, report }) => [name, { error, report }]));
      titles.update(all.titles.slice(0, TITLES));
      events.update(all.events.slice(0, EVENTS));
      [hot.hidden, news.hidden] = [all.titles.length === 0, all.events.length === 0];
      if (last) showNodes();
    }, 3, () => {});
  }

  const poll = page.poll(signal => get('cluster', null, signal), cluster => {
    problem.hidden = true;
    if (cluster?.node === null) return alone(true);
    alone(false);
    const { etcd } = cluster;
    const peers = cluster.peers.filter(({ state }) => state !== 'own');
    const silent = peers.filter(({ state }) => state === 'unreachable');
    const answering = peers.filter(({ state }) => state === 'answers').length;
    const rows = [
      ['Node', cluster.node], ['Membership', cluster.membership, cluster.membership.startsWith('foreign')], ['Cluster', cluster['cluster-id'] ?? '–'], ['View', `revision ${count(cluster.revision)}`], ['Assignment', cluster.assignment],
      cluster.registry === 'cluster-nodes' ? ['Peers', `${count(answering)} of ${count(peers.length)} answer`, silent.length > 0] : ['etcd', etcd.state === 'away' ? `away for ${count(etcd.seconds)} s: ${etcd.error}` : etcd.state, etcd.state === 'away'], ['Incarnation', cluster.incarnation],
    ];
    keyed(facts, rows, ([name]) => name, ([name]) => fact(name), (row, [, value, isBad]) => {
      setText(row.lastChild, value);
      row.classList.toggle('bad', Boolean(isBad));
    });
    const differences = cluster.differences.map(({ text }) => `Nodes have different settings: ${text}`);
    const failed = [...reports].filter(([, { error }]) => error).map(([, { error }]) => error);
    const homes = cluster['failing-homes'].map(({ place, home, error }) => `The home ${home} of ${place || 'the place'} fails: ${error}`);
    const unreachable = silent.map(({ url, error, seconds }) => `The peer ${url} does not answer for ${count(seconds)} s: ${error}`);
    keyed(faults, [...differences, ...cluster.problems, ...homes, ...failed, ...unreachable], text => text, text => h('li', { 'data-kind': 'warn' }, text));
    changes.update(cluster.changes);
    last = cluster;
    showNodes();
    follow();
    return undefined;
  }, 2, error => {
    if (error.status === 404) return alone(true);
    problem.hidden = false;
    setText(problem, error.message);
    return undefined;
  });

  /** What nodes have of a title. */
  function copies(found) {
    const table = new Table({ caption: 'Cached slices', key: ({ name }) => name, columns: [
      { title: 'Node', text: ({ name }) => name },
      { title: 'Slices', text: one => (one.error ?? (one.objects ? `${count(one['in-memory'])} in memory, ${count(one['on-disk'])} on the disk, of ${count(one.slices)}` : 'none')) },
      { title: 'Pinned', fill: (cell, { pinned }) => badgeCell(cell, pinned ? 'pinned' : '', 'good') },
    ] });
    table.update(found.nodes);
    return table.element;
  }

  /** Which nodes serve a title, and whether they have room. */
  function assignment(answer) {
    const table = new Table({ caption: 'Candidates', key: ({ name }) => name, columns: [
      { title: 'Node', text: ({ name }) => name },
      { title: 'Standing', text: ({ standing }) => standing },
      { title: 'Load', fill: (cell, one) => meterCell(cell, percent(one['load-bps'] / one['bound-bps']), one['load-bps'] / one['bound-bps'], null, `${rate(one['load-bps'])} of its bound ${rate(one['bound-bps'])}`) },
      { title: 'Score', number: true, text: ({ score }) => decimal(score, 3) },
    ] });
    table.update(answer.candidates);
    const book = new Table({ caption: 'Booked bandwidth', key: ({ resource }) => resource, columns: [
      { title: 'Resource', text: ({ resource }) => resource },
      { title: 'Booked', text: one => (one['bound-bps'] === null ? `${rate(one['booked-bps'])}, without a limit` : `${rate(one['booked-bps'])} of ${rate(one['bound-bps'])}`) },
      { title: 'A stream needs', number: true, text: one => rate(one['wanted-bps']) },
      { title: 'Fits', fill: (cell, { fits }) => badgeCell(cell, fits ? 'yes' : 'no', fits ? 'good' : 'bad') },
    ] });
    book.update(answer.book);
    return [
      h('dl', { class: 'facts' }, fact('Object', answer.object), fact('Kind', answer.kind), fact('Rule', answer.assignment), fact('View', `revision ${answer.revision}`), fact('Homes of its first bytes', answer.homes.join(', ') || 'none')),
      table.element, ...(answer.book.length ? [book.element] : []), h('pre', { tabindex: '0' }, answer.text),
    ];
  }

  let turn = 0;
  async function find() {
    const { path } = page.filters;
    asked.replaceChildren();
    turn += 1;
    const mine = turn;
    if (!path) return;
    try {
      const found = await getHere('cluster/objects', { url: path });
      if (mine !== turn) return;
      const served = found.assignment ? assignment(found.assignment) : [h('p', null, 'Each node serves it itself.')];
      asked.append(...served, h('h3', null, 'Cached slices'), copies(found));
    } catch (error) {
      if (mine === turn) asked.append(h('p', { class: 'problem' }, error.message));
    }
  }
  find();
  return filters => {
    if (input.value !== (filters.path ?? '')) input.value = filters.path ?? '';
    find();
  };
}
