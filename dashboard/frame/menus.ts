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

/** A menu is no higher than half of the window (style.css), so that one side has room for it. */
const place = ({ target }: Event) => {
  if (!(target instanceof HTMLDetailsElement) || !target.matches(".menu[open]")) return;
  delete target.dataset["side"];
  const items = target.querySelector(".menu-items")?.getBoundingClientRect();
  const { top = 0 } = target.getBoundingClientRect();
  const isOut = items !== undefined && items.bottom > innerHeight;
  if (isOut && top > innerHeight - top) target.dataset["side"] = "above";
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
