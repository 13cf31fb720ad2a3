// The worker with Python, as the page knows it: calls that answer, and an end to one that does not or is full.

export class Python {
  // `onReady` is called once, when a worker can be asked; `onTrouble` with words when none can.
  constructor(onReady, onTrouble) {
    this.onReady = onReady;
    this.onTrouble = onTrouble;
    this.begin();
  }

  begin() {
    this.waiting = new Map();
    this.calls = 0;
    this.started = new Promise((resolve) => { this.start = resolve; });
    this.worker = new Worker("worker.js", { type: "module" });
    this.worker.addEventListener("message", ({ data }) => this.take(data));
    this.worker.addEventListener("error", (event) => this.onTrouble(event.message || "The worker could not be started."));
  }

  take({ ready, number, answer, trouble, full }) {
    if (ready) { this.start(); this.onReady(); this.onReady = () => {}; return; }
    if (number === undefined) { this.onTrouble(trouble); return; }
    if (full) { this.restart(trouble); return; } // WebAssembly gives no memory back
    const { resolve, reject } = this.waiting.get(number);
    this.waiting.delete(number);
    if (trouble === undefined) resolve(answer); else reject(new Error(trouble));
  }

  ask(call, given = {}) {
    this.calls += 1;
    return new Promise((resolve, reject) => {
      this.waiting.set(this.calls, { resolve, reject });
      this.worker.postMessage({ number: this.calls, call, given });
    });
  }

  // The same; what has no answer after so many seconds is ended, and another worker begins.
  async askFor(seconds, call, given) {
    await this.started; // what it takes to begin is not its fault
    const timer = setTimeout(() => this.restart(`It did not come back for ${seconds} s: it loops. Python begins anew.`), seconds * 1e3);
    try {
      return await this.ask(call, given);
    } finally {
      clearTimeout(timer);
    }
  }

  restart(words) {
    this.worker.terminate();
    for (const { reject } of this.waiting.values()) reject(new Error(words));
    this.begin();
  }
}

// Why this browser cannot run Python; "": it can.
export function lacking() {
  if (typeof WebAssembly !== "object") return "This browser has no WebAssembly, which the lessons run on.";
  if (typeof DecompressionStream !== "function") return "This browser cannot unpack a stream (DecompressionStream): any one since 2023 can.";
  if (typeof Worker !== "function") return "This browser has no workers, in which the lessons run.";
  if (location.protocol === "file:") return "A page that is opened as a file may start no worker: python -m http.server opens it.";
  return "";
}
