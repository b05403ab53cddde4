'use strict';

// Small functions that all parts of the page use.

const $ = id => document.getElementById(id);

// What paths begin with where the page was opened with a token: /~TOKEN/.
const prefix = (location.pathname.match(/^\/~[^/]+/) || [''])[0];

async function getJson(url, signal) {
  const reply = await fetch(url, { signal });
  const body = await reply.json();
  if (!reply.ok) throw new Error(body.detail || `${reply.status} ${reply.statusText}`);
  return body;
}

function bytes(n) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (n >= 1000 && unit < units.length - 1) { n /= 1000; unit += 1; }
  return `${n.toFixed(n < 10 && unit ? 1 : 0)} ${units[unit]}`;
}

function clock(seconds) {
  const whole = Math.round(seconds);
  const two = n => String(n).padStart(2, '0');
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

const count = (n, noun) => `${n.toLocaleString('en')} ${noun}${n === 1 ? '' : 's'}`;

const nameOf = path => path.replace(/\/$/, '').split('/').pop();

function element(tag, text, attributes = {}) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  Object.assign(e, attributes);
  return e;
}

// Whether this browser can decode a codec of video or audio.
function decodable(kind, codec) {
  const type = `${kind}/mp4; codecs="${codec}"`;
  const source = window.ManagedMediaSource || window.MediaSource;
  return Boolean(source && source.isTypeSupported(type)) || document.createElement('video').canPlayType(type) !== '';
}

// Pages of plain HTTP from other machines have no clipboard but the old way.
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = element('textarea', text);
    const active = document.activeElement;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    active?.focus();
    return done;
  }
}

// A map that forgets the entry that was used least recently.
class Recent extends Map {
  constructor(most) {
    super();
    this.most = most;
  }

  get(key) {
    const value = super.get(key);
    if (value !== undefined) {
      this.delete(key);
      super.set(key, value);
    }
    return value;
  }

  set(key, value) {
    this.delete(key);
    super.set(key, value);
    if (this.size > this.most) this.delete(this.keys().next().value);
    return this;
  }
}
