// The page of the lessons: which there are, which one the address names, and what is said until Python is there.

import { Lesson } from "./lesson.js";
import { Own } from "./own.js";
import { Python, lacking } from "./python.js";
import { Same } from "./same.js";
import { element } from "./story.js";

const parts = Object.fromEntries([...document.querySelectorAll("[data-lessons]")].map((each) => [each.dataset.lessons, each]));
const { version, lessons, witnesses } = JSON.parse(document.getElementById("built").textContent);
const began = performance.now();
let lesson = null, pythonWords = parts.state.textContent;

// The scenario that the address holds, or the lesson and the seed that it names; words: what is wrong with it.
function wanted() {
  const named = new URLSearchParams(location.hash.slice(1));
  const other = named.get("version"), scenario = named.get("scenario");
  const words = other && other !== version ? `The link is of murmur ${other}, this page of ${version}: the run may be another one.` : "";
  if (scenario !== null) return { told: { name: "scenario", title: "The run of a link", task: [], question: "", scenario }, words };
  const told = lessons.find((each) => each.name === (named.get("lesson") || lessons[0].name));
  const seed = Number(named.get("seed") || 1);
  if (!told) return { words: `There is no lesson ${named.get("lesson")} here.` };
  if (!Number.isSafeInteger(seed) || seed < 0) return { words: `A seed is a whole number, and not ${named.get("seed")}.` };
  return { told, seed, words };
}

function linkTo(scenario) { return `#${new URLSearchParams({ scenario, version })}`; }

function address(told, seed) { return `#${new URLSearchParams({ lesson: told.name, seed, version })}`; }

function begin() {
  const python = new Python(ready, (words) => { parts.state.textContent = `Python could not be started: ${words}`; });
  const same = new Same(parts.same, python, witnesses);
  const own = lessons.find((each) => each.code);
  new Own(parts.own, python, own);

  function ready() {
    pythonWords = `Python is ready, after ${((performance.now() - began) / 1000).toFixed(1)} s. It runs in this page alone.`;
    document.documentElement.dataset.ready = "";
    same.ready();
    open();
  }

  function open() {
    const { told, seed, words } = wanted();
    parts.state.textContent = words || pythonWords;
    if (!told) return;
    for (const link of parts.list.querySelectorAll("a")) link.setAttribute("aria-current", link.dataset.name === told.name ? "page" : "false");
    parts.own.hidden = told !== own;
    if (told === own) {
      parts.task.hidden = parts.picture.hidden = true;
      if (lesson) lesson.close();
      return;
    }
    if (lesson) lesson.told = told; else lesson = new Lesson(parts, python, told, linkTo);
    const opening = lesson.open(seed), { turn } = lesson;
    opening.catch((error) => {
      if (turn !== lesson.turn) return;
      parts.state.textContent = `It could not be begun: ${error.message}`;
      parts.task.hidden = parts.picture.hidden = true;
    });
  }

  window.addEventListener("hashchange", open);
}

parts.list.append(element("ol", {}, ...lessons.map((each) => {
  const link = element("a", { href: address(each, 1) }, each.title);
  link.dataset.name = each.name;
  return element("li", {}, link);
})));
const trouble = lacking();
if (trouble) parts.state.textContent = trouble; else begin();
