'use strict';

// Titles that can't be played: their cards tell it before somebody opens them.

// The status codes by which the server says that a title has no media which it can read, and not that something else is missing.
const UNPLAYABLE = [415, 422];

// The row of a file in a format that is not read. Opened, the server tells what can be done.
function leftOutRow({ path, format }) {
  const row = titleRow({ path, kind: 'left-out' });
  return { ...row, below: '', side: `can't be played: ${format.replace(/^an? /, '')}`, hint: `${nameOf(path)}\nThis is ${format}. Open it to read how it becomes playable.` };
}

// Marks the card of a title that can't be played: `words` in place of its size, `why` in its tooltip.
function markUnplayable(li, words, why) {
  const button = li.firstChild;
  li.dataset.unplayable = words;
  button.title = `${nameOf(button.dataset.path)}\n${why}`;
  button.querySelector('.side').textContent = words;
}

// What a card tells of a title whose details the server refused; nothing where the title may still play.
function refusedBrief({ status, message }) {
  return UNPLAYABLE.includes(status) ? { why: message } : {};
}

// Tells on a card what its details say of playing: that the server can't read the title, or this browser can't decode it.
function tellUnplayable(li, { why, poster }) {
  if (why) markUnplayable(li, 'can\'t be played', why);
  else if (poster && !decodable('video', poster.codec)) markUnplayable(li, 'not in this browser', `This browser can't decode its pictures (${poster.codec}). VLC and mpv can.`);
}
