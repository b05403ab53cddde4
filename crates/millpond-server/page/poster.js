'use strict';

// Posters: the cards of the gallery, with the durations and pictures of those that are seen. Of a folder, the server knows a picture at most.

// A colour for a card without a picture, the same each time.
const hueOf = text => [...text].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % 360, 7);

// Makes the card of a row.
function card(row) {
  const { path, kind, title, year, below, side, hint, stream, lasts, artwork } = row;
  const button = element('button', undefined, { type: 'button', title: hint || nameOf(path) });
  Object.assign(button.dataset, { path, key: keyOf(row) });
  if (artwork) button.dataset.artwork = artwork;
  if (stream === 'running') button.dataset.live = '';
  const look = element('span', undefined, { className: 'look' });
  look.dataset.letter = kind === 'directory' ? '' : [...title][0] || '';
  look.style.setProperty('--hue', hueOf(title));
  if (stream) {
    const badge = element('span', stream === 'running' ? 'Live' : stream, { className: 'badge' });
    badge.dataset.stream = stream;
    look.append(badge);
  }
  const name = element('span', title, { className: 'name' });
  if (year) name.append(' ', element('small', year, { className: 'year' }));
  if (below) name.append(element('small', below, { className: 'below' }));
  const facts = element('small', side, { className: 'side' });
  if (stream) facts.dataset.stream = stream;
  button.append(look, name, facts);
  const li = element('li', undefined, { className: kind === 'directory' ? 'folder' : '' });
  Object.assign(li.dataset, { side, below, title });
  li.append(button);
  if (lasts || stream === 'running' || kind === 'directory') posters.observer.observe(li);
  return li;
}

const keyOf = ({ kind, path }) => `${kind}:${path}`;

// Marks on cards the share of the title that was seen, and the title that plays.
function mark(cards = document.querySelectorAll('#list button, #resume-list button')) {
  for (const button of cards) {
    const { path } = button.dataset;
    if (path === fileOf(view.path)) button.setAttribute('aria-current', 'true');
    else button.removeAttribute('aria-current');
    const look = button.firstChild;
    const share = memory.places.has(path) ? shareSeen(path) : 0;
    const isSeen = share >= SEEN;
    look.querySelector('.share')?.remove();
    look.querySelector('.seen')?.remove();
    if (isSeen) look.append(element('span', 'seen', { className: 'seen' }));
    else if (placeIn(path)) {
      const bar = element('span', undefined, { className: 'share' });
      bar.style.setProperty('--share', `${Math.round(share * 100)}%`);
      look.append(bar);
    }
  }
}

// Cards that are asked about at the same time.
const BRIEFS = 3;
// Milliseconds between two pictures of a stream on its card, and until the next attempt after a failed one.
const SNAPSHOT = 10000;
const SNAPSHOT_AGAIN = 60000;

const posters = {
  // Durations and pictures of titles, by key.
  known: new Recent(2000),
  // Cards in view without their details.
  wanted: new Set(),
  busy: 0,
  observer: new IntersectionObserver(entries => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting && target.isConnected) posters.wanted.add(target);
      else posters.wanted.delete(target);
    }
    posters.next();
  }, { rootMargin: '100px' }),
  forget(li) {
    this.observer.unobserve(li);
    this.wanted.delete(li);
  },
  next() {
    while (this.busy < BRIEFS && this.wanted.size) {
      const [li] = this.wanted;
      this.wanted.delete(li);
      this.observer.unobserve(li);
      this.busy += 1;
      this.show(li).catch(() => {}).finally(() => {
        this.busy -= 1;
        this.next();
      });
    }
  },
  async show(li) {
    const { path, key, artwork, live } = li.firstChild.dataset;
    if (live !== undefined) return this.follow(li);
    const beside = artwork && pictured(li, artwork);
    if (!this.known.has(key)) {
      this.known.set(key, await getJson(`${here}/.millpond/brief?path=${encodeURIComponent(path)}`).catch(refusedBrief));
    }
    const { duration, poster, artwork: inside } = this.known.get(key);
    tellUnplayable(li, this.known.get(key));
    const look = li.firstChild.firstChild;
    if (duration > 0) look.append(element('span', clock(duration), { className: 'lasts' }));
    // In this order: an image file beside the title, the picture in its file, a key frame that the server decodes, one that the browser decodes.
    if (await beside || await pictured(li, inside) || await pictured(li, poster?.image)) return;
    if (!poster || !li.isConnected || !decodable('video', poster.codec)) return;
    await playerReady();
    const made = await picture(poster.url);
    const canvas = element('canvas');
    paint(canvas, made);
    look.prepend(canvas);
    look.dataset.letter = '';
  },
  // Shows the newest picture of a running stream, and again while its card is in view.
  async follow(li) {
    const path = li.firstChild.dataset.path.split('/').map(encodeURIComponent).join('/');
    // The time makes each address new: browsers would show a known one from memory.
    const isShown = document.hidden || await pictured(li, `/${path}/snapshot.jpg?at=${Date.now()}`);
    setTimeout(() => li.isConnected && this.observer.observe(li), isShown ? SNAPSHOT : SNAPSHOT_AGAIN);
  },
};
