// The page of the lessons: what it says until Python is there, and its parts.

import { Python, lacking } from "./python.js";
import { Same } from "./same.js";

const parts = Object.fromEntries([...document.querySelectorAll("[data-lessons]")].map((each) => [each.dataset.lessons, each]));
const trouble = lacking();
const began = performance.now();

function begin() {
  const python = new Python(ready, (words) => { parts.state.textContent = `Python could not be started: ${words}`; });
  const same = new Same(parts.same, python);

  function ready() {
    parts.state.textContent = `Python is ready, after ${((performance.now() - began) / 1000).toFixed(1)} s. It runs in this page alone.`;
    document.documentElement.dataset.ready = "";
    same.ready();
  }
}

if (trouble) parts.state.textContent = trouble; else begin();
