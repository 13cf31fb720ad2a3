// The table of runs that are the same everywhere: what each came to where the page was built, and what it comes to here.

import { element } from "./story.js";

export class Same {
  constructor(place, python, told) {
    this.place = place;
    this.python = python;
    this.told = told;
    this.button = element("button", { type: "button", disabled: true }, "Play them here");
    this.button.addEventListener("click", () => this.play());
    this.rows = this.told.map((each) => ({ each, here: element("td", {}, ""), same: element("td", {}, "") }));
    const head = ["routing", "reliability", "inputs", "verdict", "SHA-256 of its journal", "here", ""];
    const row = ({ each, here, same }) => element("tr", {}, element("th", { scope: "row" }, each.routing), ...[each.reliability, each.events, each.verdict].map((words) => element("td", {}, String(words))),
      element("td", {}, element("code", {}, each.journal.slice(0, 16))), here, same);
    const table = element("table", {}, element("thead", {}, element("tr", {}, ...head.map((words) => element("th", { scope: "col" }, words)))), element("tbody", {}, ...this.rows.map(row)));
    this.say = element("p", { role: "status" }, "");
    place.append(this.button, this.say, element("div", { className: "live-table" }, table));
  }

  ready() { this.button.disabled = false; }

  async play() {
    this.button.disabled = true;
    await this.compare().catch((error) => { this.say.textContent = error.message; });
    this.button.disabled = false;
  }

  async compare() {
    let equal = 0, inputs = 0;
    const began = performance.now();
    for (const { each, here, same } of this.rows) {
      this.say.textContent = `${each.routing} with ${each.reliability} is played …`;
      const found = await this.python.ask("witness", { routing: each.routing, reliability: each.reliability });
      const alike = JSON.stringify(found) === JSON.stringify(each);
      equal += alike;
      inputs += found.events;
      here.replaceChildren(element("code", {}, found.journal.slice(0, 16)));
      same.textContent = alike ? "the same" : "not the same";
    }
    const seconds = (performance.now() - began) / 1000;
    this.place.dataset.equal = equal;
    this.say.textContent = `${equal} of ${this.rows.length} the same, byte for byte; ${Math.round(inputs / seconds).toLocaleString("en")} inputs of machines a second, the judge's time with it.`;
  }
}
