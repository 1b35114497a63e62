/**
 * Finds text that is cut off, as an expression for the browser: a page that scrolls sideways, text outside of the window, and
 * text outside of a box that hides its overflow. A box of its own may scroll. Excerpts pass: the beginning of a text
 * (`-webkit-line-clamp`), and a text that has its whole in its title.
 */
export const CUT_OFF = `(() => {
  const faults = [];
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 0) faults.push("the page is " + wide + " px too wide");
  const hides = (value) => value === "hidden" || value === "clip";
  const scrolls = (value) => value === "auto" || value === "scroll";
  const faultOf = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()].filter(({ width, height }) => width > 0 && height > 0);
    if (rects.length === 0) return null;
    const [left, right] = [Math.min(...rects.map((r) => r.left)), Math.max(...rects.map((r) => r.right))];
    const [top, bottom] = [Math.min(...rects.map((r) => r.top)), Math.max(...rects.map((r) => r.bottom))];
    let [sideways, down] = [false, false];
    for (let at = node.parentElement; at !== null; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (at.matches(".unseen, noscript, title, option, datalist") || style.visibility === "hidden") return null;
      if (at.getAttribute("title")?.includes(node.data.trim()) || at.matches("[aria-hidden=true], svg")) return null;
      if (style.webkitLineClamp !== "none") return null;
      const box = at.getBoundingClientRect();
      if (!sideways && hides(style.overflowX) && (left < box.left - 1 || right > box.right + 1)) return "cut by " + at.className;
      if (!down && hides(style.overflowY) && (top < box.top - 1 || bottom > box.bottom + 1)) return "cut by " + at.className;
      sideways ||= scrolls(style.overflowX);
      down ||= scrolls(style.overflowY);
      if (at.matches("button, .button, .badge, .tag, kbd") && right > box.right + 1) return "outside of its box";
      if (style.position === "fixed") break;
    }
    return !sideways && (left < -1 || right > innerWidth + 1) ? "outside of the window" : null;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    if (node.data.trim() === "" || !node.parentElement.checkVisibility()) continue;
    if (node.parentElement.closest(".skip:not(:focus)") !== null) continue;
    const fault = faultOf(node);
    if (fault !== null) faults.push(fault + ": " + node.data.trim().slice(0, 80));
  }
  return faults;
})()`;
