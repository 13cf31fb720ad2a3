// A page with its data in it: a report, or a file of its own.

import { Page } from "./page.js";

async function readFrozen(holder) {
  const packed = Uint8Array.from(atob(holder.textContent.trim()), (sign) => sign.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

for (const root of document.querySelectorAll(".live")) {
  readFrozen(document.getElementById("live-data")).then((data) => {
    root.page = new Page(root, data);
    root.dataset.ready = "";
  });
}
