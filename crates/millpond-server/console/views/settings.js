// The settings: what is in force, where it comes from, and changes to the configuration file.

import { ApiError, get, patch, post } from '../api.js';
import { button, code, empty, h, keyed, setAttribute, setText } from '../dom.js';
import { plural } from '../format.js';
import { filterBar } from '../list.js';

const EACH = 15;
const ORIGINS = { default: 'default', file: 'file', environment: 'environment', flag: 'flag' };

export function open(page) {
  const told = h('p', { class: 'told', role: 'status' });
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const head = h('p', { class: 'note' });
  const total = h('p', { class: 'total', role: 'status' });
  const settings = h('ul', { class: 'settings' });
  const nothing = h('div', { hidden: true });
  const reload = button('Reload the file', async () => {
    try {
      tell(await post('reload', {}));
    } catch (error) {
      setText(told, words(error));
    }
    poll.run();
  }, { title: 'Reads the configuration file again, as SIGHUP does' });
  const bar = filterBar(page, [
    { name: 'q', label: 'Find', hint: 'name, value or help' },
    { name: 'show', label: 'Show', options: [['', 'All settings'], ['given', 'Given'], ['waiting', 'Waiting for a restart'], ['file', 'From the file'], ['environment', 'From the environment'], ['flag', 'From flags']] },
  ], reload);
  page.root.append(bar.element, told, problem, head, total, settings, nothing);
  let [reply, editing] = [null, null];

  const words = error => (error instanceof ApiError && error.errors.length ? error.errors.join('\n') : error.message);
  function tell({ applied, 'needs-restart': waiting, places, warnings }) {
    const change = ({ setting, from, to }) => `${setting}: ${from ?? 'off'} → ${to ?? 'off'}`;
    const lines = [
      applied.length && `Changed: ${applied.map(change).join('; ')}`, waiting.length && `After a restart: ${waiting.map(change).join('; ')}`,
      ...['added', 'removed', 'changed'].map(kind => places[kind].length && `Places ${kind}: ${places[kind].join(', ')}`), ...warnings,
    ];
    setText(told, lines.filter(Boolean).join('\n') || 'Nothing has changed.');
  }

  const fits = ({ name, help, value, from, 'in-force': force, 'needs-restart': waits }) => {
    const { q, show } = page.filters;
    const text = `${name} ${help} ${value ?? ''} ${force ?? ''}`.toLowerCase();
    const isShown = { given: from !== 'default', waiting: waits, file: from === 'file', environment: from === 'environment', flag: from === 'flag' }[show] ?? true;
    return isShown && (!q || q.toLowerCase().split(/\s+/).every(word => text.includes(word)));
  };

  function draw() {
    if (!reply) return;
    const found = reply.settings.filter(fits);
    setText(head, reply.file ? `Configuration file: ${reply.file}${reply['is-writable'] ? '' : ', which this server may not write'}.` : 'No configuration file is in use: start with --config FILE to change settings here.');
    setText(total, plural(found.length, 'setting'));
    nothing.hidden = found.length > 0;
    if (!found.length) nothing.replaceChildren(empty('No setting fits.', 'Clear the filters to see all.'));
    keyed(settings, found, ({ name }) => name, made, refill);
  }

  function made({ name }) {
    const node = h('li', { class: 'card' },
      h('div', { class: 'head' }, h('h2', null, name), h('p', { class: 'value' }, code('')), h('span', { class: 'badge' }), button('Change', () => edit(node), { class: 'small', 'aria-label': `Change ${name}` })),
      h('p', { class: 'note warn', hidden: true }), h('p'), h('p', { class: 'note' }));
    return node;
  }

  function refill(node, setting) {
    const [top, waits, help, note] = node.children;
    const [, value, badge, change] = top.children;
    const { form, default: usual, from, source, 'in-force': force, value: next } = setting;
    node.setting = setting;
    setText(badge, ORIGINS[from] ?? from);
    setAttribute(badge, 'data-kind', from === 'default' ? null : 'good');
    const why = setting['is-secret'] ? null : !reply.file ? 'there is no configuration file' : !reply['is-writable'] ? 'the file may not be written' : from === 'flag' || from === 'environment' ? `it is given by ${from === 'flag' ? 'a flag' : 'the environment'}` : null;
    change.disabled = Boolean(why);
    setAttribute(change, 'title', why && `Can't be changed here: ${why}`);
    setText(value.firstChild, force ?? 'off');
    waits.hidden = next === force;
    setText(waits, `${setting['is-live'] === false ? 'After a restart' : 'After a reload'}: ${next ?? 'off'}`);
    setText(help, setting.help);
    setText(note, `${from === 'default' ? '' : `From ${source}. `}Default: ${usual}. Form: ${form}.${setting['is-live'] === false ? ' Takes effect after a restart.' : ''}`);
  }

  function edit(node) {
    if (editing) editing.close();
    const { setting } = node;
    const id = `edit-${setting.name}`;
    const field = setting.choices?.length
      ? h('select', { id }, setting.choices.map(choice => h('option', { value: choice }, choice)))
      : h('input', { id, type: setting['is-secret'] ? 'password' : 'text', autocomplete: 'off', spellcheck: 'false' });
    field.value = setting['is-secret'] ? '' : setting.value ?? '';
    const fault = h('p', { class: 'problem', role: 'alert', hidden: true });
    const send = async body => {
      fault.hidden = true;
      try {
        const report = await patch('settings', body);
        close();
        tell(report);
        poll.run();
      } catch (error) {
        fault.hidden = false;
        setText(fault, words(error));
      }
    };
    const form = h('form', { class: 'edit', onsubmit: event => {
      event.preventDefault();
      send({ set: { [setting.name]: field.value }, unset: [], 'dry-run': false });
    } }, h('label', { for: id }, `New value of ${setting.name} (${setting.form})`), field, h('div', { class: 'actions' },
      button('Cancel', () => close()), setting.from === 'file' && button('Use the default', () => send({ set: {}, unset: [setting.name], 'dry-run': false })), h('button', { class: 'main' }, 'Save to the file')), fault);
    function close() {
      form.remove();
      editing = null;
      node.querySelector('.head button').focus();
    }
    form.addEventListener('keydown', event => { if (event.key === 'Escape') close(); });
    editing = { close };
    node.append(form);
    field.focus();
  }

  const poll = page.poll(signal => get('settings', null, signal), value => {
    problem.hidden = true;
    reply = value;
    draw();
  }, EACH, error => {
    problem.hidden = false;
    setText(problem, error.message);
  });
  return filters => {
    bar.show(filters);
    draw();
  };
}
