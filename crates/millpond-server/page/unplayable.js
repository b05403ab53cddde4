'use strict';

// Titles that can't be played: their cards say so before anybody opens them.

// Status codes of the server for a title whose media it can't read. Other codes may have another cause.
const UNPLAYABLE = [415, 422];

// The words of a card, with the names of the format or codecs that can't be played, if the server knows them.
const notPlayed = media => (media.length ? `can't be played: ${media.map(name => name.replace(/^an? /, '')).join(', ')}` : 'can\'t be played');

// The row of a file in a format that is not read. When it is opened, the server says what can be done.
function leftOutRow({ path, format }) {
  const row = titleRow({ path, kind: 'left-out' });
  return { ...row, below: '', side: notPlayed([format]), hint: `${nameOf(path)}\nThis is ${format}. Open it to read how to make it playable.` };
}

// Marks the card of a title that can't be played: `words` in place of its size, `why` in its tooltip.
function markUnplayable(li, words, why) {
  const button = li.firstChild;
  li.dataset.unplayable = words;
  button.title = `${nameOf(button.dataset.path)}\n${why}`;
  button.querySelector('.side').textContent = words;
}

// Details of a title for which the server refused them: the reason, if the title can't be played at all.
function refusedBrief({ status, message, media }) {
  return UNPLAYABLE.includes(status) ? { why: message, media } : {};
}

// Marks the card of a title that the server can't read, or that this browser can't decode.
function tellUnplayable(li, { why, media, poster }) {
  if (why) markUnplayable(li, notPlayed(media), why);
  else if (poster && !decodable('video', poster.codec)) markUnplayable(li, 'can\'t be played in this browser', `This browser can't decode its pictures (${poster.codec}). VLC and mpv can.`);
}
