'use strict';

// The keys of the player, as people know them. Keys that move the focus are in focus.js.

const KEYS = {
  ' ': togglePlay,
  Enter: togglePlay,
  k: togglePlay,
  j: () => seekBy(-10),
  l: () => seekBy(10),
  ArrowLeft: () => seekBy(-5),
  ArrowRight: () => seekBy(5),
  ArrowUp: () => louder(0.05),
  ArrowDown: () => louder(-0.05),
  '+': () => louder(0.05),
  '-': () => louder(-0.05),
  f: toggleFull,
  m: toggleSound,
  c: toggleSubtitles,
  n: () => playNext(),
  '<': () => faster(-1),
  '>': () => faster(1),
};

function faster(step) {
  const index = SPEEDS.indexOf(video.playbackRate);
  setSpeed(SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, (index < 0 ? SPEEDS.indexOf(1) : index) + step))]);
}

// Keys that move the focus, and that are the player's only while a title fills the screen.
const OF_PAGE = ['ArrowUp', 'ArrowDown'];

function pressed(event) {
  const { key, target } = event;
  if ($('stage').hidden || $('code').open || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  const isBar = target === $('scrub');
  // Fields, menus and buttons have keys of their own.
  if (target.matches('input, select, textarea') && !isBar) return;
  if (key === ' ' && target.matches('button, summary, a')) return;
  const isOfPlayer = target === $('screen') || target === video;
  if (key === 'Enter' && !isOfPlayer) return;
  if (OF_PAGE.includes(key) && !isWatched()) return;
  if (isBar && ['Home', 'End'].includes(key)) return;
  const digit = /^\d$/.test(key) && video.duration > 0 && Number.isFinite(video.duration) ? Number(key) / 10 : null;
  const act = KEYS[key.length === 1 ? key.toLowerCase() : key] || (digit === null ? null : () => seekTo(digit * video.duration));
  if (!act) return;
  event.preventDefault();
  awake();
  act();
}
