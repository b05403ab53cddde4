'use strict';

// The gallery: as many cards as were scrolled to, and the keys that move between them.

// Cards that are put into the page at a time.
const ROWS = 100;

// The rows of the gallery, those that are in the page, and where further ones come from.
const shelf = { rows: [], room: ROWS, total: 0, more: null };

// Shows rows: `total` of them, of which `more()` returns a function that fetches further ones, or null.
function rows(all, total = all.length, more = () => null) {
  const place = `${view.folder}?${view.q}`;
  if (place !== shelf.place) Object.assign(shelf, { place, room: ROWS });
  Object.assign(shelf, { rows: all, total, more });
  put();
  document.dispatchEvent(new Event('listed'));
}

// Puts the first rows into the page. The focus stays where it was, also when the card is made anew; in another folder it goes to the
// first card.
function put() {
  const active = document.activeElement;
  const had = $('list').contains(active) ? active.dataset.key : null;
  const old = new Map([...$('list').children].map(li => [li.firstChild.dataset.key, li]));
  $('list').replaceChildren(...shelf.rows.slice(0, shelf.room).map(row => {
    const known = old.get(keyOf(row));
    const isSame = known && ['side', 'below', 'title'].every(fact => known.dataset[fact] === row[fact]);
    const li = isSame ? known : card(row);
    li.firstChild.onclick = row.act;
    return li;
  }));
  for (const li of old.values()) if (!li.isConnected) posters.forget(li);
  if (had !== null) {
    const buttons = [...$('list').querySelectorAll('button')];
    const next = buttons.find(button => button.dataset.key === had) || buttons[0] || $('filter');
    next.focus({ preventScroll: buttons.some(button => button.dataset.key === had) });
  }
  tellMore();
  mark();
}

function tellMore() {
  $('more').hidden = !(shelf.rows.length > shelf.room || shelf.more());
  const shown = Math.min(shelf.room, shelf.rows.length);
  $('more').textContent = `Show more (${shown.toLocaleString('en')} of ${shelf.total.toLocaleString('en')})`;
}

// Puts further cards into the page, behind those that are there.
async function showMore() {
  if ($('more').hidden || $('more').disabled) return;
  const { signal } = listing;
  const fetchMore = shelf.rows.length < shelf.room + ROWS ? shelf.more() : null;
  const last = $('list').lastElementChild;
  const hadFocus = document.activeElement === $('more');
  if (fetchMore) {
    $('more').disabled = true;
    try {
      const further = await fetchMore();
      if (signal.aborted) return;
      shelf.rows.push(...further);
    } catch (error) {
      if (!signal.aborted) note(`No more titles: ${error.message}`);
      return;
    } finally {
      $('more').disabled = false;
    }
  }
  const cards = shelf.rows.slice(shelf.room, shelf.room + ROWS).map(row => {
    const li = card(row);
    li.firstChild.onclick = row.act;
    return li;
  });
  shelf.room += ROWS;
  $('list').append(...cards);
  mark(cards.map(li => li.firstChild));
  tellMore();
  if (hadFocus) last?.nextElementSibling?.firstChild.focus();
  // On large screens its end may be in view again.
  end.unobserve($('more'));
  end.observe($('more'));
}

// Further cards are shown when the end of the gallery is near.
const end = new IntersectionObserver(entries => { if (entries.some(entry => entry.isIntersecting)) showMore(); }, { rootMargin: '600px' });

// The titles that were begun, below the folder that is shown.
const RESUMED = 12;

function resume() {
  const paths = view.q ? [] : begun(view.folder).slice(0, RESUMED);
  const key = paths.map(path => `${path} ${placeIn(path)}`).join('\n');
  // Beside a title that plays, there are those of its folder.
  $('resume').hidden = !paths.length || view.path !== '';
  if ($('resume-list').dataset.key === key) return;
  $('resume-list').dataset.key = key;
  const had = $('resume-list').contains(document.activeElement) ? document.activeElement.dataset.path : null;
  for (const li of $('resume-list').children) posters.forget(li);
  $('resume-list').replaceChildren(...paths.map(path => {
    const row = titleRow({ path, kind: 'file' });
    const { at, lasts } = memory.places.get(path);
    const li = card({ ...row, side: `${clock(Math.max(0, lasts - at))} left`, below: '', lasts: true });
    li.firstChild.onclick = row.act;
    return li;
  }));
  if (had !== null) ([...$('resume-list').querySelectorAll('button')].find(button => button.dataset.path === had) || $('filter')).focus();
}

// The card in a direction from another one, by where they are on the screen; null at the edge.
function neighbour(all, from, key) {
  const own = from.getBoundingClientRect();
  const index = all.indexOf(from);
  if (key === 'ArrowRight') return all[index + 1] || null;
  if (key === 'ArrowLeft') return all[index - 1] || null;
  const isDown = key === 'ArrowDown';
  const rest = isDown ? all.slice(index + 1) : all.slice(0, index).reverse();
  let best = null;
  let line = null;
  for (const each of rest) {
    const box = each.getBoundingClientRect();
    if (isDown ? box.top < own.bottom - 1 : box.bottom > own.top + 1) continue;
    // The nearest line only.
    if (line !== null && Math.abs(box.top - line) > 1) break;
    line = box.top;
    const far = Math.abs((box.left + box.right) / 2 - (own.left + own.right) / 2);
    if (!best || far < best.far) best = { each, far };
  }
  return best ? best.each : null;
}

// The keys that move in the gallery, also those of a remote control.
function moveFocus(event) {
  const all = [...$('library').querySelectorAll('#resume:not([hidden]) #resume-list button, #list button, #more:not([hidden])')];
  const from = document.activeElement;
  if (!all.includes(from) || event.ctrlKey || event.metaKey || event.altKey) return;
  const arrows = ['ArrowDown', 'ArrowUp', 'ArrowLeft', 'ArrowRight'];
  const to = arrows.includes(event.key) ? neighbour(all, from, event.key) : { Home: all[0], End: all[all.length - 1] }[event.key];
  if (!to && !arrows.includes(event.key)) return;
  event.preventDefault();
  // The keys of the player are none of these.
  event.stopPropagation();
  if (to) to.focus();
  else if (event.key === 'ArrowUp') ($('stage').hidden ? $('filter') : $('screen')).focus();
}
