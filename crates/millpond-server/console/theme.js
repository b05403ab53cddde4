'use strict';
// Runs before the page is drawn, so that it does not flash in the other colours.
try {
  const theme = localStorage.getItem('millpond-theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // Without storage the system's choice holds.
}
