/** When a schedule is due: in the trigger's time zone, and in the reader's. */
import { h } from "./dom.js";
import { moment, ZONE } from "./format.js";
import { time } from "./parts.js";

/** Formats are costly to make. A browser may not know every zone of the service. @type {Map<string, Intl.DateTimeFormat | null>} */
const formats = new Map();

/** @param {string} zone @returns {Intl.DateTimeFormat | null} null for a zone that this browser does not know */
const formatOf = (zone) => {
  const known = formats.get(zone);
  if (known !== undefined) return known;
  try {
    const made = new Intl.DateTimeFormat(undefined, {
      timeZone: zone,
      weekday: "short",
      year: "numeric",
      month: "short",
      day: "numeric",
      hour: "numeric",
      minute: "2-digit",
      second: "2-digit",
    });
    formats.set(zone, made);
    return made;
  } catch {
    formats.set(zone, null);
    return null;
  }
};

/** @param {string} at @param {string} zone @returns {string | null} the wall clock there */
const momentIn = (at, zone) => formatOf(zone)?.format(new Date(at)) ?? null;

/**
 * The instants as a table: one column for each zone, one if both are the same.
 *
 * @param {readonly string[]} instants soonest first
 * @param {string} zone the trigger's
 */
export const instantsView = (instants, zone) => {
  const isOwn = zone === ZONE || formatOf(zone) === null;
  return h(
    "div",
    { class: "table", tabindex: 0, role: "region", "aria-label": "Next runs" },
    h(
      "table",
      { class: "instants" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          !isOwn && h("th", { scope: "col" }, zone),
          h("th", { scope: "col" }, isOwn && zone === ZONE ? ZONE : `${ZONE} (you)`),
          h("th", { scope: "col" }, h("span", { class: "unseen" }, "From now")),
        ),
      ),
      h(
        "tbody",
        {},
        instants.map((at) =>
          h(
            "tr",
            { "data-key": at },
            !isOwn && h("td", {}, momentIn(at, zone)),
            h("td", {}, momentIn(at, ZONE) ?? moment(at)),
            h("td", { class: "quiet" }, time(at)),
          ),
        ),
      ),
    ),
  );
};
