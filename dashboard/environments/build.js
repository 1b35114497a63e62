/** One build of a project's environment, with its log; and what other pages say about builds. */
import { getJson } from "../api/api.js";
import { h } from "../elements/dom.js";
import { followBuild, isOver, makeLog } from "./log.js";
import { duration, elapsed, grouped, moment, now, shortId, size } from "../elements/format.js";
import { badge, button, callout, code, facts, projectLink, prose, time, trail } from "../elements/parts.js";
import { projectPath } from "../projects/project.js";

/** @typedef {import("../wire.d.ts").Project} Project */
/** @typedef {import("../wire.d.ts").Build} Build */
/** @typedef {import("../wire.d.ts").BuildFailure} BuildFailure */
/** @typedef {import("../elements/dom.js").Child} Child */
/** @typedef {{project: Project, build: Build}} BuildPage */
/** @typedef {ReturnType<typeof followBuild>} Following */

/** How much of a failed step's output is shown outside of the log. */
const TAIL_LINES = 20;
const TAIL_CHARS = 4096;

/** Why a build was begun. Other causes are shown as they are. @type {Record<string, string>} */
export const CAUSES = {
  manifest: "its files changed",
  session: "a session needed it",
  asked: "a person asked for it",
  refresh: "the base image may be old",
};

const CHANGE =
  "Change the Dockerfile, or the file that names it, and merge the change into the default branch.";
const SMALLER =
  "Make the build smaller, or ask your operator for a higher limit on time, memory or disk and then build again.";
const AGAIN = "This may be temporary. Build again.";
/** Advice about a failure, by its code. @type {Record<string, string>} */
const ADVICE = {
  syntax: CHANGE,
  step_failed: CHANGE,
  context_missing: CHANGE,
  image_unusable: CHANGE,
  egress_denied:
    "Correct the host's name, or ask your operator to add this host to `PLATFORM_EGRESS_ALLOW`. Then build again.",
  base_unavailable:
    "Correct the image's name, or ask your operator to allow the hosts of its registry in `PLATFORM_EGRESS_ALLOW`.",
  too_large: SMALLER,
  out_of_memory: SMALLER,
  timeout: SMALLER,
  builder_unavailable: "Ask your operator to fix the builder, then build again.",
  repository_unavailable: AGAIN,
  interrupted: AGAIN,
  secret_missing: "Set the secret's value, then build again.",
};

/** @param {string} projectId @param {string} id of a build */
export const buildLink = (projectId, id) => projectLink(projectId, `/environment/builds/${id}`);

/** @param {string} projectId @param {string} id of a build */
export const linkToBuild = (projectId, id) =>
  h("a", { href: buildLink(projectId, id), title: id }, `build ${shortId(id)}`);

/** Whichever of the two is known to be newer. @param {Build} loaded @param {Following | null} live @returns {Build} */
export const newest = (loaded, live) => {
  const seen = live?.seen.build;
  return !isOver(loaded) && seen?.id === loaded.id ? seen : loaded;
};

/** Each name with its value. @param {Record<string, string>} given */
export const assignments = (given) => Object.entries(given).map(([name, value]) => `${name}=${value}`);

/** @param {string} path @param {Pick<Build, "context" | "target" | "args" | "secrets" | "devcontainer" | "base" | "commit">} source @returns {[string, Child][]} */
export const sourceFacts = (path, { context, target, args, secrets, devcontainer, base, commit }) => {
  const given = assignments(args);
  const at = h("code", { title: commit }, commit.slice(0, 10));
  /** @type {[string, Child][]} */
  const named = devcontainer === null ? [] : [["File", code(devcontainer)]];
  if (base !== null) return [...named, ["Base image", code(base)], ["Commit", at]];
  return [
    ...named,
    ["Dockerfile", code(path)],
    ["Context", context === "" ? "the whole repository" : code(context)],
    ["Stage", target === null ? "the last one" : code(target)],
    ["Arguments", given.length > 0 && code(given.join(" "))],
    ["Secrets", secrets.length > 0 && code(secrets.join(" "))],
    ["Commit", at],
  ];
};

/** The state of a build as text, without the time. @param {Build} build @returns {Child[]} */
const doing = ({ status, step }) => {
  if (status === "queued") return ["waits for its place on the node"];
  if (status === "resolving") return ["reads the files of the commit"];
  if (status === "exporting") return ["copies the files of the image"];
  if (status !== "building" || step === null) return [];
  return [`step ${step.step}, line ${step.line}: `, code(step.instruction)];
};

/** @param {Build} build how long it took, or takes so far, in ms */
export const tookOf = ({ created_at: created, begun_at: begun, ended_at: ended }) =>
  (ended === null ? now() : Date.parse(ended)) - Date.parse(begun ?? created);

/** @param {Build} build */
export const stateView = (build) =>
  h(
    "p",
    { class: "build-state", "data-key": "state" },
    h("span", { role: "status" }, badge(build.status), " ", ...doing(build)),
    // Outside of the status, so that it is not announced every second.
    h(
      "span",
      { class: "quiet" },
      isOver(build)
        ? [time(build.ended_at), build.begun_at && `, after ${duration(tookOf(build))}`]
        : soFar(build),
    ),
  );

/** @param {Build} build */
const soFar = (build) => {
  const since = build.begun_at ?? build.created_at;
  return h("time", { datetime: since, title: moment(since) }, ` · ${elapsed(tookOf(build))} so far`);
};

/** @param {Following | null} live */
export const problemView = (live) =>
  live !== null &&
  live.seen.problem !== null &&
  h("p", { class: "refusal", role: "alert", "data-key": "unread" }, prose(live.seen.problem));

/** @param {string} tail */
const endOf = (tail) => tail.trimEnd().split("\n").slice(-TAIL_LINES).join("\n").slice(-TAIL_CHARS);

/** @param {Build} build @param {BuildFailure} failure @param {boolean} hasLog whether the whole log is shown beside it */
export const failureView = ({ status, step }, failure, hasLog = false) => {
  if (status !== "failed") return false;
  const { code: what, message } = failure;
  const tail = "tail" in failure && !hasLog ? endOf(failure.tail) : "";
  return callout(
    "bad",
    h("p", {}, h("strong", {}, prose(message))),
    step !== null &&
      "line" in failure &&
      step.line === failure.line &&
      h("p", {}, `Line ${step.line}: `, code(step.instruction)),
    tail !== "" && [
      h("p", {}, "The end of its output:"),
      h("pre", { class: "logs", tabindex: 0, role: "region", "aria-label": "The end of the output" }, tail),
    ],
    ADVICE[what] !== undefined && h("p", {}, prose(ADVICE[what])),
  );
};

/** @param {Build} build @param {boolean} canBuild @param {boolean} leads whether a link leads to the log */
export const buildActions = (build, canBuild, leads) => {
  const input = { "data-project": build.project_id, "data-build": build.id };
  return h(
    "p",
    { class: "actions", "data-key": "actions" },
    isOver(build)
      ? canBuild && button("build-environment", "Build again", input)
      : button("cancel-build", "Cancel", input),
    leads && h("a", { class: "button", href: buildLink(build.project_id, build.id) }, "Show the log"),
  );
};

export const environmentBuild = {
  /** @param {string[]} params @returns {Promise<BuildPage>} */
  load: async ([projectId = "", id = ""]) => {
    const path = projectPath(projectId);
    const [project, build] = await Promise.all([
      getJson(path),
      getJson(`${path}/environment/builds/${encodeURIComponent(id)}`),
    ]);
    return { project, build };
  },

  /** @param {string[]} _params @param {() => void} changed */
  follow: (_params, changed) => {
    const log = makeLog();
    const following = followBuild(changed, log);
    return {
      ...following,
      /** @param {HTMLElement} main @param {BuildPage} data */
      drawn: (main, { build }) => {
        const place = main.querySelector("[data-own=build-log]");
        if (place !== null && log.element.parentNode !== place) place.replaceChildren(log.element);
        following.see(build);
      },
    };
  },

  /** @param {BuildPage} data @param {Following | null} live */
  title: ({ build }, live) => `Build ${shortId(build.id)} · ${newest(build, live).status}`,

  /** @param {BuildPage} data @param {unknown} _me @param {Following | null} live */
  view: ({ project, build: loaded }, _me, live) => {
    const build = newest(loaded, live);
    return [
      trail([
        ["Projects", "#/projects"],
        [project.name, projectLink(project.id)],
        ["Environment", projectLink(project.id, "/environment")],
        [`Build ${shortId(build.id)}`, null],
      ]),
      h(
        "header",
        { class: "head", "data-key": "head" },
        h("h1", {}, `Build ${shortId(build.id)}`),
        stateView(build),
        buildActions(build, true, false),
      ),
      build.failure && failureView(build, build.failure, true),
      h(
        "section",
        { "data-key": "log" },
        h("h2", {}, "Log"),
        problemView(live),
        h("div", { "data-own": "build-log", "data-key": "build-log" }),
      ),
      h("section", { "data-key": "facts" }, h("h2", {}, "Details"), buildFacts(build)),
    ];
  },
};

/** @param {Build} build */
const buildFacts = (build) =>
  facts([
    ...sourceFacts(build.dockerfile, build),
    ["Reason", CAUSES[build.cause] ?? build.cause],
    ["Node", code(build.node_id)],
    ["Tries", build.tries > 1 && String(build.tries)],
    ["Requested", moment(build.created_at)],
    ["Began", build.begun_at && moment(build.begun_at)],
    ["Ended", build.ended_at && moment(build.ended_at)],
    [
      "Image",
      build.image &&
        h(
          "span",
          {},
          code(build.image.digest),
          `, ${size(build.image.bytes)}, ${grouped(build.image.files)} files`,
        ),
    ],
  ]);

/** On what a session's sandbox runs. @param {string} projectId @param {import("../wire.d.ts").Sandbox} sandbox @param {Build | null} awaited @returns {Child} */
export const sandboxEnvironment = (projectId, { environment, image, boot_started_at: begun }, awaited) => {
  if (environment) {
    const link = linkToBuild(projectId, environment.build_id);
    if (awaited !== null) return h("span", {}, "waits for ", link);
    return h(
      "span",
      {},
      link,
      environment.stale && ", stale: the newer image was not ready when the sandbox started",
    );
  }
  if (begun === null) return null;
  return image === null ? "The machine's own programs" : h("span", {}, "Image ", code(image));
};

/** For what the sandbox of a session waits. @param {Build | null} awaited */
export const awaitedView = (awaited) =>
  awaited &&
  callout(
    "",
    "The sandbox waits for the first build of the project's environment. ",
    h("a", { href: buildLink(awaited.project_id, awaited.id) }, "Show its log"),
  );
