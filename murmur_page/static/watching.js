// A page that is fed by a server while it looks on.

import { Page } from "./page.js";

const FRAMES_MAX = 4_000; // then a new snapshot has fewer of them
const AGAIN_MS = [500, 1_000, 2_000, 5_000, 10_000];

// The way of an event so far, or why there is none.
async function askWay(event) {
  try {
    const answer = await fetch(`way/${event}`);
    return answer.ok ? await answer.json() : (await answer.text()).trim();
  } catch {
    return "The server does not answer.";
  }
}

// What a node was at a moment, or why nobody can say.
async function askState(node, us) {
  try {
    const answer = await fetch(`state/${node}/${us}`);
    return answer.ok ? await answer.json() : (await answer.text()).trim();
  } catch {
    return "The server does not answer.";
  }
}

// Have the run judged while it goes on; why it cannot be, if it cannot.
async function askJudge() {
  try {
    return (await (await fetch("judge", { method: "POST" })).text()).trim();
  } catch {
    return "The server does not answer.";
  }
}

class Watching {
  constructor(root) {
    this.root = root;
    this.note = root.querySelector("[data-live=note]");
    this.tries = 0;
    this.join();
  }

  join() {
    const address = new URL("feed", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    this.socket = new WebSocket(address);
    this.socket.addEventListener("message", (event) => this.take(JSON.parse(event.data)));
    this.socket.addEventListener("close", () => this.lost());
  }

  take(message) {
    this.tries = 0;
    if (message.kind === "error") {
      this.final = true;
      this.note.textContent = `This run cannot be shown: ${message.text}`;
    } else if (message.kind === "snapshot") {
      this.note.textContent = "";
      this.final = !message.live;
      if (this.page) this.page.reset(message.data, message.live);
      else this.page = this.root.page = new Page(this.root, message.data, message.live);
      this.page.askWay = askWay;
      this.page.askState = askState;
      this.page.askJudge = askJudge;
      this.page.take(message.told || {});
      this.root.dataset.ready = "";
    } else {
      this.page.grow(message.frames || []);
      if (message.told) this.page.take(message.told);
      if (message.over || this.page.run.frames.length > FRAMES_MAX) this.socket.close();
    }
  }

  // Whatever ended the connection (the server, a lost network, an hour of sleep): join again, from a new snapshot.
  lost() {
    if (this.final) return;
    const wait = AGAIN_MS[Math.min(this.tries, AGAIN_MS.length - 1)];
    if (this.tries) this.note.textContent = "The server does not answer; trying again. What was seen so far stays.";
    this.tries += 1;
    setTimeout(() => this.join(), wait);
  }
}

for (const root of document.querySelectorAll("section.live")) root.watching = new Watching(root);
