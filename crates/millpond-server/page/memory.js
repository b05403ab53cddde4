'use strict';

// The viewer's wishes and places in titles, kept by this browser. If it may store nothing, the page keeps them until it is closed.

// Titles whose places are kept, and seconds from which a title counts as begun.
const PLACES = 300;
const BEGUN = 5;
// Share of a title from which it counts as seen.
const SEEN = 0.95;
// One origin may have several servers below its sub-paths. Tokens change; the library stays the same.
const MEMORY = `millpond ${here.slice(0, here.length - token.length)}/`;

const memory = { wishes: {}, places: new Map() };

// Reads the entry, which other pages may have changed.
function recall() {
  try {
    const { wishes, places } = JSON.parse(localStorage.getItem(MEMORY)) || {};
    if (wishes && typeof wishes === 'object') memory.wishes = wishes;
    if (Array.isArray(places)) memory.places = new Map(places.filter(([path, place]) => typeof path === 'string' && place && place.lasts > 0));
  } catch { /* nothing is stored, or it is not readable */ }
}

// Changes the memory, and stores it.
function remember(change) {
  recall();
  change(memory);
  const { wishes } = memory;
  const places = [...memory.places].sort(([, a], [, b]) => b.when - a.when).slice(0, PLACES);
  memory.places = new Map(places);
  try { localStorage.setItem(MEMORY, JSON.stringify({ wishes, places })); } catch { /* it may not, or is full */ }
}

const wish = change => remember(({ wishes }) => Object.assign(wishes, change));

// Share of a title that was seen, from 0 to 1.
function shareSeen(path) {
  const place = memory.places.get(path);
  return place ? Math.min(1, place.at / place.lasts) : 0;
}

// Seconds from which a title goes on; 0 where it was not begun, or was seen.
function placeIn(path) {
  const place = memory.places.get(path);
  return place && place.at >= BEGUN && shareSeen(path) < SEEN ? place.at : 0;
}

// Titles below a folder that were begun and not seen, the last one first.
function begun(folder) {
  const all = [...memory.places].filter(([path]) => path.startsWith(folder) && placeIn(path));
  return all.sort(([, a], [, b]) => b.when - a.when).map(([path]) => path);
}

recall();
