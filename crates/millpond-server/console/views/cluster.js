// The nodes of the cluster, their load, and which of them serve a path.

import { component, get, put, remove } from '../api.js';
import { confirm } from '../dialogs.js';
import { button, code, empty, fact, h, keyed, setAttribute, setText } from '../dom.js';
import { count, decimal, percent, rate } from '../format.js';
import { Table, badgeCell, meterCell } from '../table.js';
import { twoLines } from './sessions.js';

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
      { title: 'Node', fill: (cell, node) => twoLines(cell, node.self ? `${node.name} (this one)` : node.name, [node.http, node.rtsp].filter(Boolean).join('  ')) },
      { title: 'Roles', text: ({ roles }) => roles.join(', ') },
      { title: 'State', fill: (cell, { draining }) => badgeCell(cell, draining ? 'draining' : 'serving', draining ? 'warn' : 'good') },
      { title: 'Load', fill: (cell, node) => meterCell(cell, percent(node['load-bps'] / node['capacity-bps']), node['load-bps'] / node['capacity-bps'], null, `${rate(node['load-bps'])} of ${rate(node['capacity-bps'])}`) },
      { title: 'Sessions', number: true, text: ({ sessions }) => count(sessions) },
      { title: 'Booked', number: true, text: ({ booked }) => (booked === undefined ? '–' : rate(booked)) },
      { title: 'Drain', isAction: true, fill: (cell, node) => {
        cell.node = node;
        const control = cell.firstChild ?? cell.appendChild(button('', () => drain(cell.node), { class: 'small' }));
        setText(control, node.draining ? 'Take work again' : 'Drain');
        setAttribute(control, 'aria-label', `${control.textContent}: ${node.name}`);
      } },
    ],
  });
  const asked = h('div', { 'aria-live': 'polite' });
  const input = h('input', { type: 'text', id: 'assign', placeholder: 'films/a.mp4', autocomplete: 'off', spellcheck: 'false', value: page.filters.path });
  const form = h('form', { class: 'ask', onsubmit: event => {
    event.preventDefault();
    page.set({ path: input.value.trim().replace(/^\//, '') });
    assign();
  } }, h('label', { for: 'assign' }, 'Path of an asset or stream'), h('div', null, input, h('button', { class: 'main' }, 'Which nodes serve it?')));
  const member = h('div', null, h('section', { class: 'card' }, h('h2', null, 'This node'), facts, faults), nodes.element, h('section', { class: 'card' }, h('h2', null, 'Assignment'), form, asked));
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
      nothing.append(empty('This server is no node of a cluster.', 'Start each server with ', code('--cluster http://etcd:2379'), ': they share their viewers and read each asset from its storage once.'));
    }
  }

  const poll = page.poll(signal => get('cluster', null, signal), cluster => {
    problem.hidden = true;
    if (cluster?.node === null) return alone(true);
    alone(false);
    const { etcd } = cluster;
    const rows = [
      ['Node', cluster.node], ['Membership', cluster.membership], ['View', `revision ${count(cluster.revision)}`], ['Assignment', cluster.assignment],
      ['etcd', etcd.state === 'away' ? `away for ${count(etcd.seconds)} s: ${etcd.error}` : etcd.state, etcd.state === 'away'], ['Incarnation', cluster.incarnation],
    ];
    keyed(facts, rows, ([name]) => name, ([name]) => fact(name), (row, [, value, isBad]) => {
      setText(row.lastChild, value);
      row.classList.toggle('bad', Boolean(isBad));
    });
    keyed(faults, cluster.problems, text => text, text => h('li', { 'data-kind': 'warn' }, text));
    nodes.update(cluster.nodes.map(node => ({ ...node, booked: cluster.booked[`node:${node.name}`] })));
    return undefined;
  }, 2, error => {
    if (error.status === 404) return alone(true);
    problem.hidden = false;
    setText(problem, error.message);
    return undefined;
  });

  async function assign() {
    const { path } = page.filters;
    asked.replaceChildren();
    if (!path) return;
    try {
      const answer = await get('cluster/assign', { path });
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
      asked.append(h('dl', { class: 'facts' }, fact('Object', answer.object), fact('Kind', answer.kind), fact('Rule', answer.assignment), fact('View', `revision ${answer.revision}`), fact('Homes of its first bytes', answer.homes.join(', ') || 'none')),
        table.element, ...(answer.book.length ? [book.element] : []), h('pre', { tabindex: '0' }, answer.text));
    } catch (error) {
      asked.append(h('p', { class: 'problem' }, error.message));
    }
  }
  assign();
  return filters => {
    if (input.value !== (filters.path ?? '')) input.value = filters.path ?? '';
    assign();
  };
}
