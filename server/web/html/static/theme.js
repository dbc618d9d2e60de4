// The colours that somebody has chosen, before anything is drawn.
"use strict";
document.documentElement.dataset.theme = localStorage.getItem("penstock-theme") || "";
