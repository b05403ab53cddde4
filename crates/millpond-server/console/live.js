// Polls of the server: they pause while nobody looks, wait longer while the server is away, and go on by themselves.

import { ApiError } from './api.js';

// Seconds between tries while the server does not answer.
const TRIES = [1, 2, 4, 8, 15];
// Seconds until a request that was refused is repeated, at least.
const REFUSED = 5;

const polls = new Set();
const listeners = new Set();
// `away` has the error and its beginning, and when the server is asked again.
const state = { paused: false, away: null, tries: 0, wantsToken: false, last: null };

const tell = () => listeners.forEach(listener => listener(state));
export const onState = listener => listeners.add(listener);

export function pause(paused) {
  state.paused = paused;
  tell();
  if (!paused) refresh();
}

export const isPaused = () => state.paused;

// Polls again at once.
export function refresh() {
  polls.forEach(poll => poll.run());
}

// Polls again with the token that was given.
export function withToken() {
  state.wantsToken = false;
  tell();
  refresh();
}

// Notes how a request of a poll ended.
function outcome(error) {
  if (error instanceof ApiError && error.isAway) {
    const now = Date.now();
    if (!state.away) Object.assign(state, { away: { since: now, error, next: 0 }, tries: 0 });
    if (now >= state.away.next) {
      Object.assign(state.away, { error, next: now + 1000 * TRIES[Math.min(state.tries, TRIES.length - 1)] });
      state.tries += 1;
    }
  } else {
    Object.assign(state, { away: null, tries: 0, last: Date.now() });
    if (error instanceof ApiError && error.status === 401) state.wantsToken = true;
  }
  tell();
}

// Makes requests one after the other until it is closed. `load` gets a signal that aborts it, `show` gets its result. A request
// that was refused goes to `fail`.
export class Poll {
  constructor(load, show, seconds, fail) {
    Object.assign(this, { load, show, seconds, fail, timer: 0, ends: null, isClosed: false });
    polls.add(this);
    this.run();
  }

  // Starts a request now; one under way is given up.
  run() {
    clearTimeout(this.timer);
    this.ends?.abort();
    if (this.isClosed) return;
    const ends = new AbortController();
    this.ends = ends;
    this.request(ends.signal).then(wait => {
      if (ends.signal.aborted || wait === null) return;
      this.timer = setTimeout(() => this.turn(), 1000 * wait);
    });
  }

  // The next turn: nothing while paused, out of sight, or without a token.
  turn() {
    const rests = state.paused || state.wantsToken || document.hidden;
    const early = state.away && Date.now() < state.away.next;
    if (rests || early) this.timer = setTimeout(() => this.turn(), early ? 250 : 500);
    else this.run();
  }

  // Resolves with the seconds until the next turn.
  async request(signal) {
    try {
      const value = await this.load(signal);
      if (signal.aborted) return null;
      outcome(null);
      this.show(value);
      return this.seconds;
    } catch (error) {
      if (signal.aborted) return null;
      if (!(error instanceof ApiError)) throw error;
      outcome(error);
      if (!error.isAway && error.status !== 401) this.fail?.(error);
      return error.isAway || error.status === 401 ? 0.25 : Math.max(REFUSED, this.seconds);
    }
  }

  close() {
    this.isClosed = true;
    clearTimeout(this.timer);
    this.ends?.abort();
    polls.delete(this);
  }
}

document.addEventListener('visibilitychange', () => { if (!document.hidden && !state.paused) refresh(); });
