// Runs before the page is drawn, so that a chosen theme never flashes the other one first.
const theme = JSON.parse(localStorage.getItem('windowpane:theme') ?? 'null')
if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
