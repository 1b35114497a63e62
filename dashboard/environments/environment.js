/** What a project's sandboxes run on, and the builds of its Dockerfile. */
import { getJson, getList } from "../api/api.js";
import { h } from "../elements/dom.js";
import {
  assignments,
  buildActions,
  buildLink,
  CAUSES,
  failureView,
  linkToBuild,
  newest,
  problemView,
  sourceFacts,
  stateView,
  tookOf,
} from "./build.js";
import { followBuild, isOver } from "./log.js";
import { elapsed, moment, shortId, size } from "../elements/format.js";
import { badge, button, callout, code, commandBlock, facts, idTail, prose, time } from "../elements/parts.js";
import { projectHead, projectPath } from "../projects/project.js";

/** @typedef {import("../wire.d.ts").Project} Project */
/** @typedef {import("../wire.d.ts").Build} Build */
/** @typedef {import("../wire.d.ts").Environment} Environment */
/** @typedef {import("../wire.d.ts").Base} Base */
/** @typedef {import("../elements/dom.js").Child} Child */
/** @typedef {{project: Project, environment: Environment, builds: Build[], more: boolean}} EnvironmentPage */
/** @typedef {ReturnType<typeof followBuild>} Following */

const DOCKERFILE = `FROM docker.io/library/debian:13-slim
RUN apt-get update && apt-get install --yes --no-install-recommends python3`;

/** @param {string} path */
const useOf = (path) => `[environment]
devcontainer = "${path}"`;

const SETUP = `[environment]
setup = "npm ci"`;

export const environment = {
  /** @param {string[]} params @param {import("../frame/app.js").Extent} extent @returns {Promise<EnvironmentPage>} */
  load: async ([id = ""], { pages }) => {
    const path = projectPath(id);
    const [project, found, { items, more }] = await Promise.all([
      getJson(path),
      getJson(`${path}/environment`),
      getList(`${path}/environment/builds`, "builds", pages),
    ]);
    return { project, environment: found, builds: items, more };
  },

  /** @param {string[]} _params @param {() => void} changed */
  follow: (_params, changed) => {
    const following = followBuild(changed, null);
    return {
      ...following,
      /** @param {HTMLElement} _main @param {EnvironmentPage} data */
      drawn: (_main, { environment: { current } }) => {
        if (current !== null && !isOver(current)) following.see(current);
      },
    };
  },

  /** @param {EnvironmentPage} data */
  title: ({ project }) => `Environment of ${project.name}`,

  /** @param {EnvironmentPage} data @param {unknown} _me @param {Following | null} live */
  view: ({ project, environment: found, builds, more }, _me, live) => [
    ...projectHead(project, "/environment"),
    h(
      "section",
      { "data-key": "environment" },
      h("h2", {}, "Sandboxes run on"),
      ...(found.builder === null && found.kind !== "image"
        ? unbuilt(found)
        : SOURCES[found.kind](project, found)),
    ),
    h("section", { "data-key": "setup" }, h("h2", {}, "Setup command"), ...setupView(project, found)),
    h(
      "section",
      { "data-key": "waiting" },
      h("h2", {}, "Ready before a session"),
      waitingView(found.waiting),
    ),
    found.dockerfile !== null &&
      found.builder !== null &&
      h(
        "section",
        { "data-key": "current" },
        h("h2", {}, "Newest build"),
        ...currentView(project.id, found, live),
      ),
    (builds.length > 0 || (found.dockerfile !== null && found.builder !== null)) &&
      h(
        "section",
        { "data-key": "builds" },
        h("h2", {}, "Builds"),
        builds.length === 0
          ? h("p", { class: "quiet" }, "No builds yet.")
          : h(
              "ul",
              { class: "rows" },
              builds.map((build) => row(newest(build, live))),
            ),
        more && h("p", { class: "more", "data-key": "more" }, button("more", "Show older builds")),
      ),
  ],
};

/** @param {Project} project @param {Environment} found @returns {Child[]} */
const setupView = ({ default_branch: branch }, { setup, devcontainer }) =>
  setup === null
    ? [
        h("p", {}, "None. A command can install the project's packages before the agent begins."),
        h(
          "p",
          {},
          "To add one, write it into ",
          code("platform.toml"),
          ", and merge it into ",
          code(branch),
          ":",
        ),
        commandBlock(SETUP, "the setup command"),
      ]
    : [
        h("pre", { class: "text", tabindex: 0, "aria-label": "Setup command" }, setup.trim()),
        h(
          "p",
          { class: "quiet" },
          devcontainer !== null &&
            devcontainer.commands.length > 0 && ["From ", code(devcontainer.path), ". "],
          "It runs in each new sandbox when the repository is cloned. A session uses the command of its own commit.",
        ),
      ];

/** On a node that builds nothing, whatever the repository says. @param {Environment} found @returns {Child[]} */
const unbuilt = ({ dockerfile, devcontainer }) => {
  const path = devcontainer?.path ?? dockerfile?.path ?? null;
  return [
    machineFiles(),
    path === null
      ? h(
          "p",
          {},
          "This node builds no images (",
          code("PLATFORM_BUILDER=none"),
          "). A Dockerfile has no effect.",
        )
      : callout(
          "warn",
          "The image of ",
          code(path),
          " is not built, because this node builds no images (",
          code("PLATFORM_BUILDER=none"),
          "). Ask your operator to choose a builder.",
        ),
  ];
};

const machineFiles = () =>
  h("p", {}, "The machine's own files. Agents find the programs that are installed on the machine.");

/** @param {Child[]} text */
const quiet = (...text) => h("p", { class: "quiet" }, ...text);

/** Sandboxes that wait for a session. @param {Environment["waiting"]} waiting @returns {Child} */
const waitingView = ({ wanted, ready, for_triggers: forTriggers, possible }) => {
  if (!possible)
    return quiet(
      "No sandbox waits on this node (",
      code("PLATFORM_WARM_MEMORY_MB"),
      "). Each session starts its own.",
    );
  if (forTriggers > 0) return h("p", {}, "A sandbox is ready for a cron trigger that fires soon.");
  if (wanted === 0)
    return quiet(
      "A sandbox starts when a person begins to write a prompt. To keep one ready at all times, write ",
      code("warm = 1"),
      " below ",
      code("[environment]"),
      " in platform.toml.",
    );
  return h("p", {}, `Ready for the next sessions: ${ready} of ${wanted} sandboxes.`);
};

/** @param {Project} project @param {Environment} found @returns {Child[]} */
const built = (project, { dockerfile, devcontainer, builder, image_of: image, bases }) => [
  facts([
    ...(dockerfile === null ? [] : sourceFacts(dockerfile.path, dockerfile)),
    ...(devcontainer === null ? [] : saidFacts(devcontainer)),
    ["Builder", builder],
    ["Image", imageText(project.id, { image, bases }, dockerfile?.key ?? "")],
    ["Base images", bases.length > 0 && h("ul", { class: "plain" }, bases.map(baseView))],
  ]),
];

/** @param {import("../wire.d.ts").Devcontainer} devcontainer @returns {[string, Child][]} */
const saidFacts = ({ variables, ignored }) => {
  const given = assignments(variables);
  return [
    ["Variables", given.length > 0 && code(given.join(" "))],
    ["Ignored", ignored.length > 0 && code(ignored.join(" "))],
  ];
};

/** Whether the tag stands for another image than at the build. @param {Base} base */
const hasChanged = ({ digest, built_digest: former }) =>
  digest !== null && former !== null && digest !== former;

/** A base image, its digest, and when the registry was asked. @param {Base} base */
const baseView = (base) =>
  h(
    "li",
    { "data-key": base.reference },
    code(base.reference),
    base.digest !== null && [" ", code(base.digest.slice(0, DIGEST_SHOWN))],
    ", looked up ",
    time(base.looked_up_at),
    hasChanged(base) && ", changed since the build",
    base.problem !== null && [". The last look failed: ", base.problem],
  );

/** `sha256:` and twelve digits: enough to compare with what other tools show. */
const DIGEST_SHOWN = 19;

/** A file that could be used, or why it could not. @param {string} branch @param {Environment["devcontainer"]} found @returns {Child[]} */
const unusedView = (branch, found) => {
  if (found === null) return [];
  const { path, problem } = found;
  return [
    h("h3", {}, "Use devcontainer.json"),
    problem === null
      ? h(
          "p",
          {},
          code(path),
          " is not used. To use it, merge these lines of ",
          code("platform.toml"),
          " into ",
          code(branch),
          ":",
        )
      : h("p", {}, "The repository's file cannot be used: ", prose(problem)),
    ...(problem === null ? [commandBlock(useOf(path), "the lines for platform.toml")] : []),
  ];
};

/** @type {Record<Environment["kind"], (project: Project, found: Environment) => Child[]>} */
const SOURCES = {
  machine: ({ default_branch: branch }, { devcontainer }) => [
    machineFiles(),
    ...unusedView(branch, devcontainer),
    h("h3", {}, "Add a Dockerfile"),
    h(
      "p",
      {},
      "To choose the programs yourself, add these two lines as ",
      code(".platform/Dockerfile"),
      ", and merge them into ",
      code(branch),
      ":",
    ),
    commandBlock(DOCKERFILE, "the Dockerfile"),
    h(
      "p",
      { class: "quiet" },
      "A build reaches only the hosts that your operator allows in ",
      code("PLATFORM_EGRESS_ALLOW"),
      ". Before you merge, ask for the hosts of the image's registry (first line), and of the distribution's package server (",
      code("apt-get"),
      "). A build that is refused says which host it needs.",
    ),
  ],
  image: (_project, { image }) => [
    h("p", {}, "The image ", code(image ?? ""), ", which ", code("platform.toml"), " names."),
    h("p", { class: "quiet" }, "An operator makes it on the machine. The service does not build it."),
  ],
  dockerfile: built,
  devcontainer: built,
};

/**
 * What a new sandbox would boot on.
 * @param {string} projectId @param {{image: Build | null, bases: Base[]}} found @param {string} key
 */
const imageText = (projectId, { image, bases }, key) => {
  if (image === null) return "none yet";
  return h(
    "span",
    {},
    linkToBuild(projectId, image.id),
    image.image && `, ${size(image.image.bytes)}`,
    image.key !== key
      ? ", stale: built from an earlier commit"
      : bases.some(hasChanged) && ", stale: a base image has changed since",
  );
};

/** The newest build. @param {string} projectId @param {Environment} found @param {Following | null} live @returns {Child[]} */
const currentView = (projectId, { current, image_of: image }, live) => {
  const input = { "data-project": projectId };
  if (current === null)
    return [
      h("p", {}, "It is not built on this node yet. The first session that needs it starts the build."),
      h("p", { class: "actions" }, button("build-environment", "Build now", input)),
    ];
  const build = newest(current, live);
  return [
    stateView(build),
    problemView(live),
    build.failure && failureView(build, build.failure),
    build.status !== "ready" &&
      h("p", { class: "quiet", "data-key": "meanwhile" }, meanwhile(build, image !== null)),
    buildActions(build, true, true),
  ];
};

/** The consequence for sessions if the image is missing. @param {Build} build @param {boolean} hasImage */
const meanwhile = (build, hasImage) => {
  if (isOver(build))
    return hasImage
      ? "Sessions start on the last image."
      : "Sessions cannot start, because there is no earlier image.";
  return hasImage
    ? "Until it is ready, sessions start on the last image."
    : "Sessions wait until it is ready.";
};

/** @param {Build} build */
const row = (build) =>
  h(
    "li",
    { class: "row", "data-key": build.id },
    h(
      "span",
      { class: "row-main" },
      h(
        "a",
        {
          class: "cover",
          href: buildLink(build.project_id, build.id),
          "aria-label": `Build ${shortId(build.id)}, ${build.status}, ${moment(build.created_at)}`,
        },
        `Build ${shortId(build.id)}`,
      ),
      build.failure &&
        h("span", { class: build.status === "failed" ? "reason" : "quiet" }, prose(build.failure.message)),
      h(
        "span",
        { class: "quiet parts" },
        h("span", {}, CAUSES[build.cause] ?? build.cause),
        h("span", {}, "commit ", code(build.commit.slice(0, 10))),
        h("span", {}, "node ", idTail(build.node_id)),
      ),
    ),
    badge(build.status),
    h(
      "span",
      { class: "row-side" },
      time(build.created_at),
      build.begun_at !== null && h("span", { class: "quiet" }, elapsed(tookOf(build))),
    ),
  );
