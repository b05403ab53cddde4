// Elements without markup in strings: the security policy forbids it, and names of others can't become elements.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value') element.value = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return element;
}

// An element of HTML. Attributes that begin with "on" are listeners; null and false leave an attribute or a child out.
export const h = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);

// An element of SVG.
export const s = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

// Sets the text of a node where it differs, so that selections stay.
export function setText(node, text) {
  const words = text === null || text === undefined ? '' : String(text);
  if (node.textContent !== words) node.textContent = words;
}

// Sets or removes an attribute where it differs.
export function setAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

// Makes the children of `parent` those of `items`, in order. Children are kept by key, so focus and selections stay.
export function keyed(parent, items, key, make, update) {
  const before = parent.keyed ?? new Map();
  const after = new Map();
  let next = parent.firstChild;
  for (const item of items) {
    const id = key(item);
    if (after.has(id)) continue;
    const node = before.get(id) ?? make(item);
    update?.(node, item);
    after.set(id, node);
    if (node === next) next = next.nextSibling;
    else parent.insertBefore(node, next);
  }
  for (const [id, node] of before) if (!after.has(id)) node.remove();
  parent.keyed = after;
}

// A pair of a name and a value in a list of facts.
export function fact(name, value, title) {
  const dd = h('dd', null, value ?? '–');
  return h('div', { title }, h('dt', null, name), dd);
}

export const button = (text, onclick, attributes) => h('button', { type: 'button', onclick, ...attributes }, text);

// The words where a list is empty: the reason, and the next step.
export const empty = (title, ...words) => h('div', { class: 'empty' }, h('strong', null, title), h('p', null, ...words));

export const code = text => h('code', null, text);

// Waits until no call came for `ms`, then calls.
export function later(call, ms) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...values), ms);
  };
}
