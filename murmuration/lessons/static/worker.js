// Python in a worker of its own, so that the page stays awake; the page ends the worker when its Python does not come back.

import { loadPyodide } from "./pyodide/pyodide.mjs";

const PACKED = "pyodide.asm.wasm";
const ask = self.fetch.bind(self);

// The one file that lies here packed.
self.fetch = async (what, how) => {
  const address = String(what.url || what);
  if (!address.endsWith(PACKED)) return ask(what, how);
  const packed = await ask(`${address}.packed`);
  return new Response(packed.body.pipeThrough(new DecompressionStream("gzip")), { headers: { "Content-Type": "application/wasm" } });
};

// Too little memory is told in many ways: by WebAssembly, by the browser, by Python.
function isFull(error) { return error instanceof RangeError || /memory/i.test(String(error.message || error)); }

function inWords(error) {
  if (isFull(error)) return "This browser gives a page too little memory: Python in it wants 64 MB or more.";
  return String(error.message || error);
}

// Pyodide tells nobody of an instance that could not be made, and waits for ever.
const instantiate = WebAssembly.instantiateStreaming.bind(WebAssembly);
WebAssembly.instantiateStreaming = (...given) => instantiate(...given).catch((error) => { self.postMessage({ trouble: inWords(error) }); throw error; });

async function bytesOf(name) {
  const answer = await ask(new URL(name, import.meta.url));
  if (!answer.ok) throw new Error(`${name} is missing beside this page`);
  return answer.arrayBuffer();
}

async function begin() {
  const wheel = bytesOf("pyodide/pydantic_core.whl"), own = bytesOf("murmur.zip");
  const python = await loadPyodide({ indexURL: new URL("pyodide/", import.meta.url).href });
  const place = python.runPython("import sysconfig; sysconfig.get_paths()['purelib']");
  python.unpackArchive(await wheel, "zip", { extractDir: place });
  python.unpackArchive(await own, "zip", { extractDir: place });
  return python.pyimport("murmuration.lessons.desk");
}

const begun = begin();
begun.then(() => self.postMessage({ ready: true }), (error) => self.postMessage({ trouble: inWords(error) }));

self.addEventListener("message", async ({ data: { number, call, given } }) => {
  try {
    const desk = await begun;
    self.postMessage({ number, ...JSON.parse(desk.answer(call, JSON.stringify(given))) });
  } catch (error) {
    self.postMessage({ number, trouble: inWords(error), full: isFull(error) });
  }
});
