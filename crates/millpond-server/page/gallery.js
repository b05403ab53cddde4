'use strict';

// The gallery: as many cards as were scrolled to.

// Cards that are put into the page at a time.
const ROWS = 100;

// All rows of the gallery, how many are in the page, and the source of further rows; the folder, the previous folder, and the highest one.
const shelf = { rows: [], room: ROWS, total: 0, more: null, folder: '', before: '', top: '' };

// Shows rows: `total` of them, of which `more()` returns a function that fetches further ones, or null.
function rows(all, total = all.length, more = () => null) {
  const place = `${view.folder}?${view.q}`;
  if (place !== shelf.place) Object.assign(shelf, { place, room: ROWS, before: shelf.folder, folder: view.folder });
  Object.assign(shelf, { rows: all, total, more });
  put();
  document.dispatchEvent(new Event('listed'));
}

// Makes the card of a row.
function placed(row) {
  const li = card(row);
  li.dataset.kind = row.kind;
  li.firstChild.onclick = row.act;
  return li;
}

// Puts the first rows into the page. The focus stays where it was, also when the card is made anew. In another folder the first card gets
// the focus; on the way up, the card of the folder that was left.
function put() {
  const active = document.activeElement;
  const had = $('list').contains(active) ? active.dataset.key : null;
  const old = new Map([...$('list').children].map(li => [li.firstChild.dataset.key, li]));
  $('list').replaceChildren(...shelf.rows.slice(0, shelf.room).map(row => {
    const known = old.get(keyOf(row));
    const isSame = known && ['side', 'below', 'title'].every(fact => known.dataset[fact] === row[fact]);
    if (!isSame) return placed(row);
    known.firstChild.onclick = row.act;
    return known;
  }));
  for (const li of old.values()) if (!li.isConnected) posters.forget(li);
  if (had !== null) {
    const buttons = [...$('list').querySelectorAll('button')];
    const same = buttons.find(button => button.dataset.key === had);
    const left = buttons.find(({ dataset: { path } }) => path.endsWith('/') && shelf.before.startsWith(path));
    (same || left || buttons[0] || $('filter')).focus({ preventScroll: Boolean(same) });
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
  const cards = shelf.rows.slice(shelf.room, shelf.room + ROWS).map(placed);
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
    const { at, lasts, programme = '' } = memory.places.get(path);
    const li = card({ ...row, side: `${clock(Math.max(0, lasts - at))} left`, below: programme, lasts: true });
    li.firstChild.onclick = row.act;
    return li;
  }));
  if (had !== null) ([...$('resume-list').querySelectorAll('button')].find(button => button.dataset.path === had) || $('filter')).focus();
}
