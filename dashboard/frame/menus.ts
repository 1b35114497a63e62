/** Menus of actions, `details.menu`: they close when a reader chooses, leaves or presses Escape, and open where there is room. */

const close = (menu: Element) => {
  const wasInside = menu.contains(document.activeElement);
  menu.removeAttribute("open");
  if (wasInside) menu.querySelector("summary")?.focus();
};

/** Open menus, other than the one around the element. */
const openMenus = (around: EventTarget | null) =>
  [...document.querySelectorAll("details.menu[open]")].filter(
    (menu) => !(around instanceof Node && menu.contains(around)),
  );

/** Closes all. */
export const closeMenus = () => {
  for (const menu of openMenus(null)) close(menu);
};

/** The visible part of the place around an element: the window, within the elements around it that scroll or cut off. */
const seenAround = (element: Element) => {
  let [top, bottom] = [0, innerHeight];
  for (let one = element.parentElement; one !== null && one !== document.body; one = one.parentElement) {
    if (getComputedStyle(one).overflowY === "visible") continue;
    const edges = one.getBoundingClientRect();
    [top, bottom] = [Math.max(top, edges.top), Math.min(bottom, edges.bottom)];
  }
  return { top, bottom };
};

/** A menu is no higher than half of the window (style.css), so that one side has room for it. */
const place = ({ target }: Event) => {
  if (!(target instanceof HTMLDetailsElement) || !target.matches(".menu[open]")) return;
  delete target.dataset["side"];
  const items = target.querySelector(".menu-items")?.getBoundingClientRect();
  const own = target.getBoundingClientRect();
  const seen = seenAround(target);
  const isOut = items !== undefined && items.bottom > seen.bottom;
  if (isOut && own.top - seen.top > seen.bottom - own.bottom) target.dataset["side"] = "above";
};

/** Listens for the whole life of the page. */
export const followMenus = () => {
  document.addEventListener("click", ({ target }) => {
    for (const menu of openMenus(target)) menu.removeAttribute("open");
  });
  // A chosen action closes its menu. Before it begins: a dialog gives the focus back to what had it then.
  document.addEventListener(
    "click",
    ({ target }) => {
      const chosen = target instanceof Element ? target.closest(".menu-items :is(a, button)") : null;
      const menu = chosen?.closest("details.menu");
      if (menu) close(menu);
    },
    { capture: true },
  );
  document.addEventListener("toggle", place, { capture: true });
};
