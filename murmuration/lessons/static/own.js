// The last lesson: a router that is written in the page, and tried on three runs.

import { element } from "./story.js";

const PATIENCE_S = 20;

function file(name, content) {
  return element("a", { href: URL.createObjectURL(new Blob([content], { type: "text/plain" })), download: name }, name);
}

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
    this.saved = element("p", {});
    const head = ["run", "verdict", "", "machines took", "as a scenario", "its journal"].map((words) => element("th", { scope: "col" }, words));
    place.append(element("h2", {}, told.title), ...told.task.map((words) => element("p", {}, words)), this.code, this.button, this.say,
      element("table", {}, element("thead", {}, element("tr", {}, ...head)), this.rows), this.saved);
  }

  async try() {
    this.button.disabled = true;
    this.rows.replaceChildren();
    this.saved.replaceChildren();
    const code = this.code.value;
    let valid = 0;
    for (let number = 0; number < this.told.trials; number += 1) {
      this.say.textContent = `It is tried on run ${number + 1} of ${this.told.trials} …`;
      const found = await this.python.askFor(PATIENCE_S, "try", { code, number }).catch((error) => ({ trouble: error.message }));
      if (found.trouble) { this.say.textContent = found.trouble; this.done("trouble"); return; }
      valid += found.verdict === "valid";
      const scenario = file(`own-${number + 1}.yaml`, found.saved), journal = element("code", {}, found.hash.slice(0, 16));
      this.rows.append(element("tr", {}, ...[found.title, found.verdict, found.reason, `${found.inputs.toLocaleString("en")} inputs`, scenario, journal].map((words) => element("td", {}, words))));
    }
    this.saved.append("With ", file("own.py", code), " beside them, ", element("code", {}, "murmur run own-1.yaml"), " plays such a run again and leaves the same journal.");
    this.say.textContent = valid === this.told.trials ? "Solved: it did what it promises in all of them." : `Not yet: ${valid} of ${this.told.trials} are valid.`;
    this.done(valid === this.told.trials ? "solved" : "open");
  }

  done(state) {
    this.say.className = `live-verdict ${state === "solved" ? "valid" : "invalid"}`;
    this.button.disabled = false;
  }
}
