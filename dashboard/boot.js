/** How a session's sandbox booted: its steps as a waterfall, from the sandbox's record and from the daemon's log. */
import { h } from "./dom.js";
import { duration } from "./format.js";

/** @typedef {import("./wire.d.ts").Session} Session */
/** @typedef {import("./wire.d.ts").Sandbox} Sandbox */
/** @typedef {{label: string, from: number, to: number}} Span in ms since the epoch */

/** The width of the longest boot, in columns of a table: styles in attributes are forbidden on this page. */
const COLUMNS = 60;
/** A longer time before the sandbox was asked for belongs to an earlier boot of the session. */
const FIRST_MS = 60_000;
const STEP = /^boot step=([a-z_]{1,40}) at_ms=\d+$/;

/** @param {string | null | undefined} at @returns {number | null} */
const instant = (at) => (at ? Date.parse(at) : null);

/** When the daemon reached each step. @param {import("./log.js").Log | null} log @param {string} sandboxId @returns {Map<string, number>} */
const stepsIn = (log, sandboxId) => {
  /** @type {Map<string, number>} */
  const steps = new Map();
  for (const line of log?.lines ?? []) {
    if (line === null || line.source !== "daemon" || line.sandbox_id !== sandboxId || line.at === null)
      continue;
    const [, step] = STEP.exec(line.line) ?? [];
    if (step !== undefined && !steps.has(step)) steps.set(step, Date.parse(line.at));
  }
  return steps;
};

/**
 * The steps of the newest boot, as far as they are known.
 *
 * @param {Session} session @param {Sandbox} sandbox @param {import("./log.js").Log | null} log
 * @returns {Span[]} in the order in which they begin
 */
export const bootSpans = (session, sandbox, log) => {
  const steps = stepsIn(log, sandbox.id);
  const asked = instant(sandbox.created_at);
  const accepted = instant(session.created_at);
  const isFirst = accepted !== null && asked !== null && asked - accepted < FIRST_MS;
  const started = instant(sandbox.boot_started_at);
  const active = instant(sandbox.active_at);
  const at = (/** @type {string} */ step) => steps.get(step) ?? null;
  /** @type {[string, number | null, number | null][]} */
  const all = [
    ["Branch created", isFirst ? accepted : null, asked],
    ["Waited for a place", asked, started],
    [sandbox.waited ? "Taken from those that wait" : "Sandbox created", started, at("listening")],
    ["Clone credential", at("listening"), at("credential")],
    ["Repository cloned", at("credential"), at("cloned")],
    ["Agent runtime started", at("runtime_started"), at("runtime_ready")],
    ["Ready noticed", at("ready"), active],
    ["Setup command", at("cloned"), at("setup_ended")],
    ["Prompt accepted", at("setup_ended") ?? at("ready"), at("prompt_accepted")],
  ];
  // Without the daemon's lines, the sandbox's record has the sum.
  if (at("listening") === null) all.push(["Sandbox booted", started ?? asked, active]);
  return all
    .flatMap(([label, from, to]) => (from === null || to === null || to < from ? [] : [{ label, from, to }]))
    .toSorted((a, b) => a.from - b.from || a.to - b.to);
};

/** @param {Session} session @param {Sandbox | null} sandbox @param {import("./log.js").Log | null} log */
export const bootView = (session, sandbox, log) => {
  const spans = sandbox === null ? [] : bootSpans(session, sandbox, log);
  const [first] = spans;
  if (first === undefined) return null;
  const end = Math.max(...spans.map(({ to }) => to));
  const all = Math.max(1, end - first.from);
  return h(
    "div",
    { class: "boot", "data-key": "boot" },
    h("h3", {}, "Boot ", h("span", { class: "quiet" }, duration(end - first.from))),
    h(
      "table",
      { class: "waterfall" },
      h(
        "colgroup",
        {},
        h("col", { class: "label" }),
        h("col", { class: "duration" }),
        h("col", { span: COLUMNS }),
      ),
      h(
        "tbody",
        {},
        spans.map((span) => spanRow(span, first.from, all)),
      ),
    ),
  );
};

/** @param {Span} span @param {number} begin @param {number} all ms */
const spanRow = ({ label, from, to }, begin, all) => {
  const before = Math.min(COLUMNS - 1, Math.floor(((from - begin) / all) * COLUMNS));
  const width = Math.max(1, Math.min(COLUMNS - before, Math.round(((to - from) / all) * COLUMNS)));
  const after = COLUMNS - before - width;
  return h(
    "tr",
    { "data-key": label },
    h("th", { scope: "row" }, label),
    h("td", { class: "duration" }, duration(to - from)),
    before > 0 && h("td", { colspan: before }),
    h("td", { colspan: width, class: "bar" }),
    after > 0 && h("td", { colspan: after }),
  );
};
