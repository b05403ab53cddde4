'use strict';

// Small functions that all parts of the page use.

const $ = id => document.getElementById(id);

// What the server tells of the page: the way to its root, its version, and the folder or stream whose address was opened.
const site = { ...document.documentElement.dataset };

// What the page's addresses begin with: scheme and host without a user and password, then the sub-path of a proxy, then the token
// that the page was opened with, /~TOKEN.
const TOKEN = /\/(?:~|%7[Ee])eyJ[^/]*$/;
const here = location.origin
  // A token without a slash behind it is a folder all the same.
  + (TOKEN.test(location.pathname) ? location.pathname : new URL(site.root, location.href).pathname.replace(/\/$/, ''));

// RTSP has no sub-path. Its addresses begin with the token.
const token = (here.match(TOKEN) || [''])[0];

// The user and password in the page's own address. Browsers send them of themselves only to the address that was opened.
const [username, password] = (({ username: user, password: word }) => [user, word].map(text => {
  try { return decodeURIComponent(text); } catch { return text; }
}))(new URL(document.baseURI));

// An error with the server's words. For a title that can't be played at all it has a code, the names of the format or codecs, and a command.
function failure(body, status) {
  let told = {};
  try { told = JSON.parse(body) || {}; } catch { /* a proxy's own page */ }
  const { detail, code, media = [], command } = told;
  return Object.assign(new Error(detail || `The server answered ${status}.`), { status, code, media, command });
}

// Resolves with an answer of the server. fetch() takes no password; once one request had it, browsers send it with all others.
function getJson(url, signal) {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    const aborted = () => new DOMException('aborted', 'AbortError');
    const stop = () => {
      request.abort();
      fail(aborted());
    };
    if (signal?.aborted) {
      fail(aborted());
      return;
    }
    signal?.addEventListener('abort', stop, { once: true });
    request.open('GET', url, true, username || null, password || null);
    request.onloadend = () => signal?.removeEventListener('abort', stop);
    request.onerror = () => fail(new Error('The server can\'t be reached.'));
    request.onload = () => {
      try {
        if (request.status !== 200) throw failure(request.responseText, request.status);
        done(JSON.parse(request.responseText));
      } catch (error) {
        fail(error);
      }
    };
    request.send();
  });
}

// Scripts that are loaded when they are needed, by name.
const scripts = new Map();

function script(name) {
  if (!scripts.has(name)) {
    scripts.set(name, new Promise((done, fail) => {
      const e = element('script', undefined, { src: `${here}/.millpond/${site.version}/${name}` });
      e.onload = () => done();
      e.onerror = () => {
        // The next attempt asks again.
        scripts.delete(name);
        e.remove();
        fail(new Error(`The player can't be loaded from this server (${name}).`));
      };
      document.head.append(e);
    }));
  }
  return scripts.get(name);
}

// Loads the style of the player. Without it, the player works all the same.
function style() {
  style.loaded ||= new Promise(done => {
    const e = element('link', undefined, { rel: 'stylesheet', href: `${here}/.millpond/${site.version}/player.css` });
    e.onload = e.onerror = () => done();
    document.head.append(e);
  });
  return style.loaded;
}

// Loads all that plays. The page shows its gallery without it.
const playerReady = () => Promise.all([script('player.js'), style()]);

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

// Returns the file of a path. The path of a programme has the programme's number behind the file.
const fileOf = path => path.replace(/(\.(?:m?ts|m2ts?|trp|m3u8))\/[1-9]\d*$/i, '$1');

const nameOf = path => fileOf(path).replace(/\/$/, '').split('/').pop();

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
