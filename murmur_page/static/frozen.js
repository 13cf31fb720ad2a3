// A page with its data in it: a report, or a file of its own.

import { Page } from "./page.js";

// The frames as a run knows them: murmur_page.columns has put their counts in columns.
function inRows({ rows, ...parts }) {
  for (const [part, keyed] of Object.entries(parts)) {
    for (const row of keyed) {
      const key = row.filter((each) => typeof each === "number"), columns = row.slice(key.length).map(withZeros);
      for (const [at, frame] of rows.entries()) {
        const counts = columns.map((column) => column[at]);
        if (counts.some((each) => each)) (frame[part] ||= []).push([...key, ...counts]);
      }
    }
  }
  return rows;
}

// A negative number stands for as many zeros.
function withZeros(column) {
  return column.flatMap((each) => (each < 0 ? new Array(-each).fill(0) : each));
}

async function readFrozen(holder) {
  const packed = Uint8Array.from(atob(holder.textContent.trim()), (sign) => sign.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const data = JSON.parse(await new Response(stream).text());
  return { ...data, frames: inRows(data.frames) };
}

for (const root of document.querySelectorAll(".live")) {
  readFrozen(document.getElementById("live-data")).then((data) => {
    root.page = new Page(root, data);
    root.dataset.ready = "";
  });
}
