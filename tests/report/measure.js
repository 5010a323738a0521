// Lays PAGE out at every width and in both schemes, and writes what is wrong with each into the document.

const inside = (a, b) =>
  a.left >= b.left - 3 && a.right <= b.right + 3 && a.top >= b.top - 3 && a.bottom <= b.bottom + 3;
const meet = (a, b) =>
  Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
  Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
const all = (page, what) => [...page.querySelectorAll(what)];
const box = (element) => element.getBoundingClientRect();

const wide = (page) =>
  all(page, "p, dd, dt, td, th, pre, li, h1, h2, h3, caption, figure")
    .filter((e) => e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1)
    .map((e) => `${e.tagName} ${e.textContent.slice(0, 40)}`);

const cut = (page) =>
  all(page, "svg text")
    .filter((e) => !inside(box(e), box(e.ownerSVGElement)))
    .map((e) => e.textContent);

const over = (page) =>
  all(page, "svg").flatMap((svg) => {
    const texts = all(svg, "text").map((e) => [e.textContent, box(e)]);
    return texts.flatMap(([one, a], n) =>
      texts.slice(n + 1).filter(([, b]) => meet(a, b)).map(([two]) => `${one} | ${two}`));
  });

const stacked = (page) =>
  all(page, "section, figure, article, table, pre, dl").map((e) => [e, box(e)]).flatMap(([e, a], n, every) =>
    every.slice(n + 1).filter(([f, b]) => !e.contains(f) && meet(a, b)).map(([f]) => `${e.tagName} ${f.tagName}`));

async function measured(width, scheme) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width:${width}px;height:800px;border:0;color-scheme:${scheme}`;
  frame.srcdoc = PAGE;
  await new Promise((done) => {
    frame.onload = done;
    document.body.append(frame);
  });
  const page = frame.contentDocument, root = page.documentElement;
  const found = {
    width, scheme, over: over(page), cut: cut(page), wide: wide(page), stacked: stacked(page),
    seen: root.clientWidth,
    scroll: root.scrollWidth - root.clientWidth,
    requests: frame.contentWindow.performance.getEntriesByType("resource").map((e) => e.name),
    sections: all(page, "section").filter((e) => e.offsetHeight > 40).map((e) => e.id),
    tiny: all(page, "svg text").filter((e) => box(e).height < 9).length,
    page: frame.contentWindow.getComputedStyle(page.body).backgroundColor,
  };
  frame.remove();
  return found;
}

(async () => {
  const found = [];
  for (const width of WIDTHS) for (const scheme of SCHEMES) found.push(await measured(width, scheme));
  const told = document.createElement("pre");
  told.id = "told";
  told.textContent = JSON.stringify(found);
  document.body.append(told);
})();
