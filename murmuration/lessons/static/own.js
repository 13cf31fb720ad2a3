// The last lesson: a router that is written in the page, and tried on three runs.

import { element } from "./story.js";

const PATIENCE_S = 20;

export class Own {
  constructor(place, python, told) {
    this.python = python;
    this.told = told;
    this.code = element("textarea", { value: told.code, rows: told.code.split("\n").length, spellcheck: false });
    this.code.setAttribute("aria-label", "the router's code");
    this.button = element("button", { type: "button" }, "Try it");
    this.button.addEventListener("click", () => this.try());
    this.say = element("p", { role: "status" }, "");
    this.rows = element("tbody", {});
    const head = ["run", "verdict", "", "inputs of machines"].map((words) => element("th", { scope: "col" }, words));
    place.append(element("h2", {}, told.title), ...told.task.map((words) => element("p", {}, words)), this.code, this.button, this.say,
      element("table", {}, element("thead", {}, element("tr", {}, ...head)), this.rows));
  }

  async try() {
    this.button.disabled = true;
    this.rows.replaceChildren();
    let valid = 0;
    for (let number = 0; number < this.told.trials; number += 1) {
      this.say.textContent = `It is tried on run ${number + 1} of ${this.told.trials} …`;
      const found = await this.python.askFor(PATIENCE_S, "try", { code: this.code.value, number }).catch((error) => ({ trouble: error.message }));
      if (found.trouble) { this.say.textContent = found.trouble; this.done("trouble"); return; }
      valid += found.verdict === "valid";
      this.rows.append(element("tr", {}, ...[found.title, found.verdict, found.reason, found.inputs.toLocaleString("en")].map((words) => element("td", {}, words))));
    }
    this.say.textContent = valid === this.told.trials ? "Solved: it did what it promises in all of them." : `Not yet: ${valid} of ${this.told.trials} are valid.`;
    this.done(valid === this.told.trials ? "solved" : "open");
  }

  done(state) {
    this.say.className = `live-verdict ${state === "solved" ? "valid" : "invalid"}`;
    this.button.disabled = false;
  }
}
