/** Checks of a repository at another server: what has been tried, what it showed, and what to do about a failure. */
import { ApiError, post } from "../api/api.ts";
import { h } from "../elements/dom.ts";
import { button, projectLink, prose, refusedLink } from "../elements/parts.ts";
import { projectPath } from "./project.js";

/** @typedef {import("../wire.d.ts").RepositoryCheck} RepositoryCheck */

/**
 * @typedef {object} Checking
 * @property {RepositoryCheck | null} check the last one
 * @property {string | null} problem why no check could be made
 * @property {boolean} isRunning
 * @property {(main: HTMLElement, data: any) => void} drawn
 * @property {() => void} again
 * @property {() => void} end
 */

/** A slow server answers late, and a check asks it several times. */
const CHECK_TIMEOUT_MS = 90_000;

/** @type {Record<string, string>} */
const NAMES = {
  host: "Server",
  credential: "Credential",
  repository: "Repository",
  default_branch: "Default branch",
  push: "Push",
  pull_requests: "Pull requests",
  webhook: "Webhooks",
};
/** Those that every repository has. */
const ALWAYS = ["host", "credential", "repository", "default_branch", "push"];
/** @type {Record<string, string>} */
const OUTCOMES = { passed: "passed", failed: "failed", unknown: "not known yet", later: "not tried" };

/** The one of the page that is shown. @type {Checking | null} */
let current = null;

/** Runs one check at a time, and the newest wish after it. @param {() => void} changed @returns {Checking & {ask: (wish: () => Promise<RepositoryCheck>) => void}} */
const checking = (changed) => {
  let turn = 0;
  /** @type {(() => Promise<RepositoryCheck>) | null} */
  let last = null;
  const state = {
    /** @type {RepositoryCheck | null} */
    check: null,
    /** @type {string | null} */
    problem: null,
    isRunning: false,
    /** @param {HTMLElement} _main @param {any} _data */
    drawn: (_main, _data) => {},
    again: () => {
      if (last !== null) state.ask(last);
    },
    end: () => {
      turn += 1;
      if (current === state) current = null;
    },
    /** @param {() => Promise<RepositoryCheck>} wish */
    ask: (wish) => {
      last = wish;
      turn += 1;
      const asked = turn;
      state.isRunning = true;
      changed();
      void wish()
        .then(
          (check) => ({ check, problem: null }),
          (error) => ({ check: null, problem: error instanceof Error ? error.message : String(error) }),
        )
        .then((found) => {
          if (asked !== turn) return;
          Object.assign(state, found, { isRunning: false });
          changed();
        });
    },
  };
  current = state;
  return state;
};

/**
 * The refusal of a field in the form's words: the service names it as programs do.
 *
 * @param {HTMLFormElement} form
 * @returns {(error: unknown) => never}
 */
const inWordsOf = (form) => (error) => {
  const issue = error instanceof ApiError ? error.details?.issues?.[0] : undefined;
  if (issue === undefined) throw error;
  const field = form.elements.namedItem(issue.path.split(".").at(-1) ?? "");
  const label = field instanceof HTMLInputElement ? field.labels?.[0]?.textContent : undefined;
  throw new Error(label ? `${label}: ${issue.message}` : issue.message);
};

/**
 * Checks what a form names, whenever a field of it has changed.
 *
 * @param {(form: HTMLFormElement) => Record<string, unknown> | null} wishOf the request. Null: something is missing.
 * @param {() => void} changed
 * @returns {Checking}
 */
export const followRepositoryForm = (wishOf, changed) => {
  const state = checking(changed);
  /** @type {WeakSet<HTMLFormElement>} */
  const heard = new WeakSet();
  state.drawn = (main) => {
    const form = main.querySelector("form.form");
    if (!(form instanceof HTMLFormElement) || heard.has(form)) return;
    heard.add(form);
    state.check = null;
    state.problem = null;
    // Not at each key: half a token is a wrong token, and the server counts those.
    form.addEventListener("change", () => {
      const wish = wishOf(form);
      if (wish !== null)
        state.ask(() => post("/v1/repository-checks", wish, CHECK_TIMEOUT_MS).catch(inWordsOf(form)));
    });
  };
  return state;
};

/**
 * Checks a project's connection once when its page is shown, and again when asked.
 *
 * @param {string} projectId
 * @param {() => void} changed
 * @returns {Checking}
 */
export const followConnection = (projectId, changed) => {
  const state = checking(changed);
  let hasAsked = false;
  state.drawn = (_main, { project }) => {
    if (hasAsked || project.repository.kind === "hosted") return;
    hasAsked = true;
    state.ask(() => post(`${projectPath(projectId)}/repository/check`, {}, CHECK_TIMEOUT_MS));
  };
  return state;
};

/** After a new credential. */
export const checkAgain = () => current?.again();

/** @param {Checking | null} state @param {{before: string, heading: "h2" | "h3" | "h4", projectId?: string}} words before: shown until the first check */
export const checkView = (state, { before, heading, projectId }) =>
  h(
    "section",
    {
      class: "lines",
      "data-key": "connection",
      "aria-live": "polite",
      "aria-busy": state?.isRunning === true && "true",
    },
    h(heading, {}, "Connection"),
    h("p", { class: "quiet", "data-key": "summary" }, summaryOf(state, before)),
    state?.check &&
      h(
        "ol",
        { class: "checks" },
        stepsOf(state.check).map((step) => stepView(step, projectId)),
      ),
    state !== null &&
      (state.check !== null || state.problem !== null) &&
      h("p", { class: "actions" }, button("check-again", "Check again")),
  );

/** @param {Checking | null} state @param {string} before @returns {import("../elements/dom.ts").Child[]} */
const summaryOf = (state, before) => {
  if (state?.isRunning === true) return ["Checking…"];
  if (state?.problem) return [h("span", { class: "refusal" }, ...prose(state.problem))];
  if (!state?.check) return [before];
  // The service tries no path on its own machine, so that nothing is known yet.
  if (state.check.steps.length === 0)
    return ["The service reads this repository only when you create the project. It must have a branch."];
  return [
    state.check.usable
      ? "The service can work with this repository."
      : "The service cannot work with this repository yet.",
  ];
};

/** Those that were tried, and the names of those that a failure left out. @param {RepositoryCheck} check */
const stepsOf = ({ steps }) => [
  ...steps,
  ...ALWAYS.filter((name) => steps.length > 0 && !steps.some(({ step }) => step === name))
    .filter(() => steps.some(({ outcome }) => outcome === "failed"))
    .map((step) => ({ step, outcome: /** @type {const} */ ("later"), message: "", advice: null })),
];

/** @param {ReturnType<typeof stepsOf>[number]} step @param {string | undefined} projectId */
const stepView = ({ step, outcome, message, advice }, projectId) =>
  h(
    "li",
    { class: "check-step", "data-outcome": outcome, "data-key": step },
    h("strong", {}, NAMES[step] ?? step, h("span", { class: "unseen" }, `: ${OUTCOMES[outcome] ?? outcome}`)),
    message !== "" && h("p", { class: "quiet" }, prose(message)),
    advice !== null && h("p", {}, prose(advice)),
    step === "webhook" && outcome !== "passed" && projectId !== undefined && webhookLinks(projectId, outcome),
  );

/** @param {string} projectId @param {string} outcome */
const webhookLinks = (projectId, outcome) =>
  h(
    "p",
    {},
    outcome === "failed"
      ? h("a", { href: refusedLink(projectId) }, "Show the refused deliveries")
      : h("a", { href: projectLink(projectId, "/triggers") }, "Show the triggers"),
  );
