// A canvas as large as its place on the page.

// Give the context's canvas one dot for each of the screen's; its size in the units of the page, in which to draw.
export function fitted(context) {
  const ratio = window.devicePixelRatio || 1;
  const { width, height } = context.canvas.getBoundingClientRect();
  context.canvas.width = Math.max(1, Math.round(width * ratio));
  context.canvas.height = Math.max(1, Math.round(height * ratio));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { width, height };
}
