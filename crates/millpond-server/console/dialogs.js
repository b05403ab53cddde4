// Dialogs: a question before a change, the token, the shortcuts. They give the focus back to where it was.

import { setToken } from './api.js';
import { button, h } from './dom.js';

// Opens a dialog with content; resolves with its return value once it is closed.
function open(title, content, wide) {
  const heading = h('h2', { id: 'dialog-title' }, title);
  const dialog = h('dialog', { 'aria-labelledby': 'dialog-title', class: wide ? 'wide' : null }, heading, content);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise(done => {
    dialog.addEventListener('close', () => {
      dialog.remove();
      done(dialog.returnValue);
    });
  });
}

const actions = (...buttons) => h('div', { class: 'actions' }, buttons);
const close = value => event => event.target.closest('dialog').close(value);

// Asks before something ends or is removed. Resolves with whether the answer is yes.
export async function confirm(title, words, yes) {
  const answer = await open(title, [
    h('p', null, words),
    actions(button('Cancel', close(''), { autofocus: true }), button(yes, close('yes'), { class: 'danger' })),
  ]);
  return answer === 'yes';
}

// Asks for the admin token. Resolves with whether one was given.
export async function askToken() {
  const input = h('input', { type: 'password', autocomplete: 'off', spellcheck: 'false', id: 'token', autofocus: true });
  const give = event => {
    event.preventDefault();
    if (!input.value.trim()) return;
    setToken(input.value.trim());
    event.target.closest('dialog').close('token');
  };
  const form = h('form', { onsubmit: give },
    h('label', { for: 'token' }, 'Token'), input,
    h('p', { class: 'note' }, 'It is kept in this tab until the tab is closed. The settings admin-token and admin-token-file name it.'),
    actions(button('Not now', close('')), h('button', { class: 'main' }, 'Use token')));
  const words = h('p', null, 'This server asks for its admin token, or the token that was given is wrong.');
  return await open('Admin token', [words, form]) === 'token';
}

// A value to type. Resolves with it, or with null.
export async function prompt(title, words, label, yes, placeholder) {
  const input = h('input', { type: 'text', id: 'prompt', placeholder, autocomplete: 'off', autofocus: true });
  const form = h('form', { onsubmit: event => { event.preventDefault(); event.target.closest('dialog').close('yes'); } },
    h('label', { for: 'prompt' }, label), input,
    actions(button('Cancel', close('')), h('button', { class: 'main' }, yes)));
  const answer = await open(title, [h('p', null, words), form]);
  return answer === 'yes' ? input.value.trim() : null;
}

// Lists the shortcuts, with a switch for them.
export function help(views, isOn, change) {
  const rows = pairs => pairs.map(([keys, does]) => h('div', null, h('dt', null, keys.split(' ').map(key => h('kbd', null, key))), h('dd', null, does)));
  const others = [['/', 'Filter'], ['p', 'Pause or resume'], ['r', 'Refresh now'], ['t', 'Theme'], ['?', 'This list'], ['Esc', 'Close']];
  const box = h('input', { type: 'checkbox', id: 'shortcuts-on', onchange: event => change(event.target.checked) });
  box.checked = isOn;
  return open('Keyboard shortcuts', [
    h('div', { class: 'columns' }, h('dl', { class: 'keys' }, rows(views)), h('dl', { class: 'keys' }, rows(others))),
    h('p', null, h('label', { class: 'check' }, box, ' Shortcuts of single keys are on')),
    actions(button('Close', close(''), { class: 'main', autofocus: true })),
  ], true);
}
