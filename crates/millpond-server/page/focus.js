'use strict';

// Keys that move the focus by geometry, and the key that goes back: those of a keyboard, and of a television's remote control.

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
// Names of the key that goes back, on keyboards, Android TV and Tizen; its codes on HbbTV with webOS, and on Tizen.
const BACK = ['Escape', 'Backspace', 'GoBack', 'XF86Back'];
const BACK_CODES = [461, 10009];
// Everything that can have the focus, except for the cards. The volume has keys of its own.
const STOPS = ':is(header, #stage, .head, #open-stream, dialog) :is(button, input:not(#volume), select, summary, a[href]), #screen, #more';
// Cards at each end of a list that the focus can enter from outside. A list may have thousands.
const ENDS = 24;

const isCard = stop => stop.parentElement?.localName === 'li';
// The box of a card is the box of its list item, because cards out of view are not laid out.
const boxOf = stop => (isCard(stop) ? stop.parentElement : stop).getBoundingClientRect();
const isShown = stop => boxOf(stop).width > 0 && !stop.disabled;

// Distance of a box from another one in a direction; Infinity if it does not lie in that direction.
function far(from, to, [x, y]) {
  const [across, down] = [x > 0 ? to.left - from.right : from.left - to.right, y > 0 ? to.top - from.bottom : from.top - to.bottom];
  const gap = x ? across : down;
  const aside = x ? Math.max(0, to.top - from.bottom, from.top - to.bottom) : Math.max(0, to.left - from.right, from.left - to.right);
  if (gap < -4 || (x && aside)) return Infinity;
  // Among boxes at one distance, the one with the best aligned edges.
  return Math.max(0, gap) + 2 * aside + Math.abs(x ? to.top - from.top : to.left - from.left) / 16;
}

function nearest(stop, all, way) {
  const from = boxOf(stop);
  let best = { score: Infinity };
  for (const each of all) {
    const score = each === stop || !isShown(each) ? Infinity : far(from, boxOf(each), way);
    if (score < best.score) best = { each, score };
  }
  return best.each;
}

// The cards that the focus can enter from outside their list.
function ends() {
  return ['resume-list', 'list'].flatMap(id => {
    const { children } = $(id);
    const [first, last] = [[...children].slice(0, ENDS), [...children].slice(-ENDS)];
    return [...new Set([...first, ...last])].map(li => li.firstChild);
  });
}

// The next card in a direction within a list. Up and down, it is a card of the nearest line, even if that line is shorter.
function neighbour(card, [x, y]) {
  const step = x + y > 0 ? 'nextElementSibling' : 'previousElementSibling';
  const own = boxOf(card);
  let best = null;
  let line = null;
  for (let li = card.parentElement[step]; li; li = li[step]) {
    if (x) return li.firstChild;
    const box = li.getBoundingClientRect();
    if (y > 0 ? box.top < own.bottom - 1 : box.bottom > own.top + 1) continue;
    if (line !== null && Math.abs(box.top - line) > 1) break;
    line = box.top;
    const aside = Math.abs((box.left + box.right) / 2 - (own.left + own.right) / 2);
    if (!best || aside < best.aside) best = { card: li.firstChild, aside };
  }
  return best?.card;
}

// Whether a title plays in full screen. The keys are those of the player then.
const isWatched = () => document.fullscreenElement && !video.paused;

// Whether an element has a use of its own for an arrow key.
function keeps(target, [x]) {
  if (target === document.body) return !$('stage').hidden;
  if (target.closest('#menu')) return false;
  if (isWatched() || target.matches('#volume')) return true;
  // Left and right seek.
  if (target.matches('#screen, video, #scrub')) return x !== 0;
  if (!target.matches('#filter, #stream-name') || !x) return false;
  return x > 0 ? target.selectionStart < target.value.length : target.selectionEnd > 0;
}

// The element that an arrow key moves the focus to; nothing where there is none.
function towards(target, way) {
  const y = way[1];
  const [screen, cards] = [$('screen'), [...$('list').children]];
  if (target === document.body) return cards.find(li => boxOf(li).bottom > 0)?.firstChild;
  // Below the search field come the titles that it found.
  if (target === $('filter') && y > 0 && $('stage').hidden && cards.length) return cards[0].firstChild;
  const own = isCard(target) && neighbour(target, way);
  if (own) return own;
  const within = target.closest('#menu, dialog') || document.fullscreenElement || document;
  const stops = [...within.querySelectorAll(STOPS)];
  if (within === document) stops.push(...ends());
  const [inside, outside] = [stops.filter(stop => stop !== screen && screen.contains(stop)), stops.filter(stop => !screen.contains(stop))];
  if (target === screen || target === video) {
    return y > 0 ? ['retry', 'next-now', 'play'].map($).find(isShown) : nearest(screen, outside, way);
  }
  if (!screen.contains(target)) {
    // From below, the buttons of the player come before its picture.
    return nearest(target, [...outside, ...inside, ...(y < 0 ? [] : [screen])], way);
  }
  const isMenu = within.id === 'menu';
  return nearest(target, inside, way) || (isMenu || !y ? undefined : y < 0 ? screen : nearest(target, outside, way));
}

// One step back: out of a menu, the full screen, a title, a search, a folder. Returns whether there was one.
function stepBack() {
  const dialog = document.querySelector('dialog[open]');
  if (dialog) dialog.close();
  else if (!$('menu').hidden) {
    toggleMenu(false);
    $('settings').focus();
  } else if (!$('preview').hidden) hidePreview();
  else if (document.fullscreenElement) document.exitFullscreen();
  else if (!$('stage').hidden) go({ path: '' });
  else if (view.q || $('filter').value) {
    $('filter').value = '';
    go({ q: '' });
  } else if (view.folder && view.folder !== shelf.top) go({ folder: folderOf(view.folder.replace(/\/$/, '')) });
  else return false;
  return true;
}

// Presses elements that browsers press with the space bar only. Remote controls have no space bar.
function press(target) {
  if (target.matches('select') && target.showPicker) {
    try { target.showPicker(); } catch { /* the browser wants another gesture */ }
  } else if (target.matches('[type=checkbox]')) target.click();
  else return false;
  return true;
}

function steer(event) {
  const { key, keyCode, target } = event;
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  const isTyped = target.matches('#filter, #stream-name');
  const way = ARROWS[key];
  let isDone = false;
  if (BACK.includes(key) || BACK_CODES.includes(keyCode)) isDone = !(isTyped && key === 'Backspace') && stepBack();
  else if (key === 'Enter') isDone = press(target);
  else if (['Home', 'End'].includes(key) && isCard(target)) {
    const { children } = target.parentElement.parentElement;
    children[key === 'Home' ? 0 : children.length - 1].firstChild.focus();
    isDone = true;
  } else if (way && !keeps(target, way)) {
    const to = towards(target, way);
    to?.focus();
    // Up and down scroll if no element lies there.
    isDone = Boolean(to) || way[0] !== 0 || isCard(target);
  }
  if (isDone) event.preventDefault();
}
