'use strict';

// Plays a running stream from one long response (stream.mp4) by Media Source Extensions, close to its newest frame.

// Seconds between the picture and the newest frame: what playing steers to, from where it plays faster, from where it jumps.
const NEAR = 0.3;
const FAR = 0.7;
const BEHIND = 3;
// Seconds of media that stay before the picture.
const KEPT = 10;
// Seconds until a response that ended is asked for again: the first and the longest time.
const AGAIN = [0.5, 8];

const wait = seconds => new Promise(done => { setTimeout(done, seconds * 1000); });

// What a problem document (RFC 9457) or a status says.
async function refusal(reply) {
  const body = await reply.json().catch(() => ({}));
  return body.detail || `${reply.status} ${reply.statusText}`;
}

// A player of `url` on a video element. `tell` gets the words of a fault, or null once media arrives again.
class LongResponse {
  constructor(element, url, tell) {
    Object.assign(this, { element, url, ends: new AbortController(), source: new MediaSource(), buffer: null });
    this.tell = words => this.ends.signal.aborted || tell(words);
    this.object = URL.createObjectURL(this.source);
    element.src = this.object;
    this.steering = setInterval(() => this.steer(), 100);
    this.run();
  }

  // Plays one response after the other. The server ends one when the formats change, and when it stops.
  async run() {
    await new Promise(done => { this.source.addEventListener('sourceopen', done, { once: true }); });
    let pause = AGAIN[0];
    while (!this.ends.signal.aborted) {
      try {
        if (await this.response()) pause = AGAIN[0];
        else this.tell('The stream has ended. Asking for it again …');
      } catch (error) {
        if (this.ends.signal.aborted) return;
        this.tell(error.message);
        if (error.isFinal) return;
      }
      await wait(pause);
      pause = Math.min(2 * pause, AGAIN[1]);
    }
  }

  // Plays one response to its end. Resolves with whether media came.
  async response() {
    const reply = await fetch(this.url, { signal: this.ends.signal });
    if (!reply.ok) throw new Error(await refusal(reply));
    this.prepare(reply.headers.get('Content-Type'));
    const reader = reply.body.getReader();
    let hasMedia = false;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return hasMedia;
      await this.changed(() => this.buffer.appendBuffer(value));
      if (!hasMedia && this.newest() !== null) {
        hasMedia = true;
        this.tell(null);
        this.element.play().catch(() => {});
      }
      const from = this.element.currentTime - KEPT;
      if (this.buffer.buffered.length && this.buffer.buffered.start(0) < from - KEPT) {
        await this.changed(() => this.buffer.remove(0, from));
      }
    }
  }

  // Makes the buffer ready for a response. Each one begins at time 0, and follows the one before.
  prepare(type) {
    if (!MediaSource.isTypeSupported(type)) {
      throw Object.assign(new Error(`This browser can't decode ${type}. The addresses below play in VLC, mpv and other players.`), { isFinal: true });
    }
    if (!this.buffer) {
      this.buffer = this.source.addSourceBuffer(type);
      return;
    }
    // The fragment that was cut off is forgotten.
    this.buffer.abort();
    this.buffer.changeType(type);
    this.buffer.timestampOffset = this.newest() ?? 0;
  }

  // Waits until a change of the buffer is complete.
  changed(change) {
    return new Promise((done, fail) => {
      this.buffer.onupdateend = done;
      this.buffer.onerror = () => fail(new Error(`This browser can't read ${this.url}.`));
      try { change(); } catch (error) { fail(error); }
    });
  }

  // Time of the newest frame; null before the first one.
  newest() {
    const { buffered } = this.buffer;
    return buffered.length ? buffered.end(buffered.length - 1) : null;
  }

  // Keeps the picture close to the newest frame.
  steer() {
    if (!this.buffer || this.newest() === null) return;
    const { element, buffer: { buffered } } = this;
    const newest = this.newest();
    const last = buffered.start(buffered.length - 1);
    const behind = newest - element.currentTime;
    // A hole is jumped over, and so is a delay that grew while the page was hidden. A jump may miss: the beginning of what is
    // buffered moves until pictures and sound have arrived.
    const isInHole = element.currentTime < last && element.readyState < 3;
    if (isInHole || (!element.seeking && behind > BEHIND)) {
      element.currentTime = Math.max(last, newest - NEAR);
    } else {
      element.playbackRate = behind > FAR ? 1.1 : behind < NEAR ? 1 : element.playbackRate;
    }
  }

  // Seconds between the picture and the newest frame that arrived; null before the first one.
  delay() {
    return this.buffer && this.newest() !== null ? Math.max(0, this.newest() - this.element.currentTime) : null;
  }

  destroy() {
    clearInterval(this.steering);
    this.ends.abort();
    this.element.playbackRate = 1;
    URL.revokeObjectURL(this.object);
  }
}

// ---- the server's clock

// Milliseconds by which it is ahead of this one; null where it is unknown.
let clockAhead = null;

async function compareClocks() {
  const asked = Date.now();
  const reply = await fetch('/.millpond/time', { cache: 'no-store' }).catch(() => null);
  const time = reply && reply.ok ? Date.parse(await reply.text()) : NaN;
  clockAhead = Number.isNaN(time) ? null : time - (asked + Date.now()) / 2;
}

// Seconds since a moment (a Date) of the server's clock; null where one of them is unknown.
function secondsSince(date) {
  return date && clockAhead !== null ? (Date.now() + clockAhead - date.getTime()) / 1000 : null;
}

// ---- states of streams

// Since when, in the clock of the reader.
function sinceText(unix) {
  const then = new Date(unix * 1000);
  const isToday = then.toDateString() === new Date().toDateString();
  return isToday ? then.toLocaleTimeString() : then.toLocaleString();
}

function stateText({ state: name, since, why }) {
  const time = since ? ` since ${sinceText(since)}` : '';
  const words = why ? `: ${why}` : '';
  return `${name}${time}${words}`;
}
