'use strict';

// Clicks and touches of the picture: a click pauses, a double click fills the screen; a touch shows the controls, two at a side seek.

// Milliseconds between the two touches of a double one, and seconds that it seeks.
const DOUBLE = 300;
const SIDE_STEP = 10;

const touches = { last: null };

function touched(event) {
  const { left, width } = video.getBoundingClientRect();
  const side = (event.clientX - left) / width;
  const now = performance.now();
  const isSecond = touches.last !== null && now - touches.last < DOUBLE;
  touches.last = now;
  if (isSecond && side < 0.4) seekBy(-SIDE_STEP);
  else if (isSecond && side > 0.6) seekBy(SIDE_STEP);
  else if ($('screen').classList.contains('idle') || video.paused) awake();
  else if (!isSecond) $('screen').classList.add('idle');
}

function watchTouches() {
  let isTouch = false;
  video.onpointerup = event => {
    isTouch = event.pointerType === 'touch';
    if (isTouch) touched(event);
  };
  video.onclick = () => isTouch || togglePlay();
  video.ondblclick = () => isTouch || toggleFull();
}
