'use strict';

// Chapters of a title: marks on the bar for seeking, and the name of the chapter at a time.

// Marks where the chapters of a title begin. The beginning of the title needs no mark.
function markChapters({ chapters = [], duration }) {
  const begins = chapters.map(({ start }) => start).filter(start => start > 0 && start < duration);
  $('chapters').replaceChildren(...begins.map(start => {
    const mark = document.createElement('i');
    mark.style.left = `${100 * start / duration}%`;
    return mark;
  }));
}

// Returns the name of the chapter at a time; nothing where the title has none.
function chapterAt(time) {
  const { chapters = [] } = state.asset || {};
  const begun = chapters.filter(({ start }) => start <= time);
  return begun.length ? begun[begun.length - 1].title : '';
}
