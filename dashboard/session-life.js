/** A session's life on its page: what happened when, how its sandbox booted, and the log. */
import { bootView } from "./boot.js";
import { h } from "./dom.js";
import { duration, moment } from "./format.js";
import { logView } from "./log.js";

/** @typedef {import("./wire.d.ts").Session} Session */
/** @typedef {import("./wire.d.ts").Sandbox} Sandbox */

/** Why it was stopped. The service's other reasons are words. @type {Readonly<Record<string, string>>} */
const STOP_WORDS = {
  user_deactivated: "the person who started it was deactivated",
  outdated: "its sandbox was too old for the upgraded service",
};
/** @param {Session} found */
const stopWords = ({ stop_reason: reason }) => STOP_WORDS[reason ?? ""] ?? reason ?? "";

/** @param {Session} found @param {Sandbox | null} sandbox */
export const timeline = (found, sandbox) => {
  const ended = sandbox?.ended_at ?? null;
  /** @type {[string, string | null | undefined, string?][]} */
  const all = [
    ["Accepted", found.created_at],
    ["Sandbox requested", sandbox?.created_at, sandbox?.provider],
    ["Sandbox live", sandbox?.active_at],
    ["Running", found.running_at],
    ["Sandbox ended", ended],
    ["Stopped", found.status === "stopped" ? found.stopped_at : null, stopWords(found)],
    ["Failed", found.status === "failed" ? found.failure?.at : null, found.failure?.code],
  ];
  const steps = all
    .flatMap(([label, at, detail]) => (at ? [{ label, at, detail }] : []))
    .toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at));
  return h(
    "ol",
    { class: "timeline" },
    steps.map(({ label, at, detail }, index) =>
      h(
        "li",
        { "data-key": label },
        h("span", { class: "step" }, label, detail ? h("span", { class: "quiet" }, ` ${detail}`) : null),
        h(
          "time",
          { datetime: at, title: moment(at) },
          index === 0 ? moment(at) : `+${duration(sinceOf(steps, index))}`,
        ),
      ),
    ),
    found.status === "provisioning" && h("li", { class: "pending", "data-key": "pending" }, "Starting…"),
  );
};

/** Time since the previous step. @param {{at: string}[]} steps @param {number} index */
const sinceOf = (steps, index) => Date.parse(steps[index]?.at ?? "") - Date.parse(steps[index - 1]?.at ?? "");

/**
 * How it booted, and its log, for readers who open them. They see at once why it failed.
 *
 * @param {Session} found @param {Sandbox | null} sandbox @param {import("./log.js").Log | null} log
 */
export const logSection = (found, sandbox, log) =>
  h(
    "details",
    { class: "session-log", "data-key": "logs", open: found.status === "failed" },
    h("summary", {}, h("h2", {}, "Boot and log")),
    found.status !== "provisioning" && bootView(found, sandbox, log),
    logView(log),
  );
