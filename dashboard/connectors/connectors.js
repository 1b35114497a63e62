/** A project's connectors: what each needs from a person, its tools and what changed in them, and the agents' calls. */
import { getJson, getJsonOrNull, getList, post, put, remove } from "../api/api.js";
import { actions as approvalActions, approvalCards } from "./approvals.js";
import {
  accessActions,
  act,
  connectorPath,
  FETCH_MS,
  namesOf,
  NEEDS,
  needsYours,
  signInDetail,
  storeClient,
  storedWord,
} from "./access.js";
import { ask, askFor } from "../frame/dialog.js";
import { h } from "../elements/dom.js";
import {
  badge,
  button,
  callout,
  code,
  commandBlock,
  detail,
  empty,
  listRow,
  projectLink,
  prose,
  tag,
  time,
  trail,
} from "../elements/parts.js";
import { projectHead, projectPath } from "../projects/project.js";

/** @typedef {import("../wire.d.ts").Project} Project */
/** @typedef {import("../wire.d.ts").Connector} Connector */
/** @typedef {import("../wire.d.ts").ConnectorListing} Listing */
/** @typedef {import("../wire.d.ts").Catalogue} Catalogue */
/** @typedef {import("../wire.d.ts").ConnectorCall} Call */
/** @typedef {import("../wire.d.ts").Tool} Tool */
/** @typedef {import("./access.js").Names} Names */

/** The words for a state, its colour, and what a person does next. @type {Record<string, [string, string, string]>} */
const STATES = {
  ready: ["ready", "good", ""],
  needs_credential: ["needs a credential", "warn", "Store the credential that the server expects."],
  needs_refresh: ["tools unknown", "warn", "Fetch the server's tools."],
  needs_acceptance: ["needs acceptance", "warn", "Look at the new or changed tools, and accept them."],
  failed: ["failed", "bad", ""],
};

/** @type {Record<Connector["kind"], string>} */
const KINDS = { mcp: "MCP", openapi: "OpenAPI", http: "HTTP" };

const LINES = `[[connectors]]
slug = "linear"
kind = "mcp"
url = "https://mcp.example.com/mcp"
auth = "bearer"

[[connectors.tools]]
match = "list_*"
policy = "allow"`;

const connectors = {
  /** @param {string[]} params @param {import("../frame/app.js").Extent} extent */
  load: async ([id = ""], { pages: shown }) => {
    const [project, listing, { members }, { items, more }, open] = await Promise.all([
      getJson(projectPath(id)),
      getJson(`${projectPath(id)}/connectors`),
      getJson(`${projectPath(id)}/members`),
      getList(`${projectPath(id)}/executor/calls`, "calls", shown),
      // A viewer does not decide.
      getJsonOrNull(`${projectPath(id)}/approvals?status=pending&limit=200`, [403]),
    ]);
    return {
      project,
      listing,
      names: namesOf(members),
      calls: items,
      more,
      approvals: open?.approvals ?? [],
    };
  },

  /** @param {{project: Project}} data */
  title: ({ project }) => `Connectors of ${project.name}`,

  /** @param {{project: Project, listing: Listing, names: Names, calls: Call[], more: boolean, approvals: import("../wire.d.ts").Approval[]}} data */
  view: ({ project, listing, names, calls, more, approvals }) => [
    ...projectHead(project, "/settings"),
    h("h2", { "data-key": "heading" }, "Connectors"),
    h(
      "p",
      { class: "quiet", "data-key": "about" },
      "Agents use the tools of these servers, and never see their credentials. The default branch's platform.toml names the servers and the rules.",
    ),
    approvalCards(project.id, approvals),
    listing.errors.map(({ path, message, line }, index) =>
      h(
        "div",
        { "data-key": `error-${index}` },
        callout(
          "bad",
          line !== null && `Line ${line}: `,
          path !== null && [code(path), ": "],
          ...prose(message),
        ),
      ),
    ),
    listing.connectors.length === 0
      ? [
          empty("No connectors yet.", "Add the server to platform.toml on the default branch, for example:"),
          commandBlock(LINES, "the lines"),
        ]
      : h(
          "ul",
          { class: "rows", "data-key": "connectors" },
          listing.connectors.map((one) => connectorRow(project.id, one, names)),
        ),
    h(
      "section",
      { "data-key": "calls" },
      h("h2", {}, "Calls"),
      calls.length === 0
        ? empty("No calls yet.", "Every call of an agent is listed here, also one that was refused.")
        : h(
            "ul",
            { class: "rows" },
            calls.map((one) => callRow(project.id, one)),
          ),
      more && h("p", { class: "more" }, button("more", "Show older calls")),
    ),
  ],
};

/** @param {string} project @param {Connector} connector @param {Names} names */
const connectorRow = (project, connector, names) => {
  const { slug, kind, url, auth, state, credential, usable, failure, sessions } = connector;
  const { to_accept: open, left_out: leftOut } = connector;
  const isOwn = connector.credential_of === "user";
  const need = state === "needs_credential" && (isOwn ? needsYours(auth) : NEEDS[auth]);
  const [word, tone, next] = need || STATES[state] || [state, "warn", ""];
  const link = projectLink(project, `/connectors/${slug}`);
  const of = { project, slug };
  return listRow(
    slug,
    [
      h("a", { href: link, class: "named" }, slug),
      detail(KINDS[kind], " · ", code(url)),
      detail(
        `${usable} usable ${usable === 1 ? "tool" : "tools"}`,
        open > 0 && ` · ${open} to accept`,
        leftOut.length > 0 && [" · ", h("a", { href: link }, `${leftOut.length} left out`)],
        credential !== null && [" · ", storedWord(connector), time(credential.updated_at)],
        isOwn && " · each person has a credential of their own",
        !sessions.includes("trigger") && " · not for sessions of triggers",
      ),
      signInDetail(connector, names),
      failure !== null && h("span", { class: "reason" }, failure),
      next !== "" && h("span", {}, state === "needs_acceptance" ? h("a", { href: link }, next) : next),
    ],
    {
      states: [tag(word, tone)],
      actions: [
        ...accessActions(connector, of),
        state === "needs_refresh" && act("refresh-connector", "Fetch the tools", of),
      ],
    },
  );
};

/** @param {string} project @param {Call} call */
const callRow = (project, { id, session_id: session, connector, tool, at, outcome, message, ...call }) =>
  listRow(
    id,
    [
      h("span", { class: "named" }, code(`${connector} ${tool}`)),
      detail(
        time(at),
        " · ",
        h("a", { href: projectLink(project, `/sessions/${session}`) }, "session"),
        " · ",
        code(id),
        " · ",
        code(call.arguments_preview),
      ),
      message !== null && h("span", { class: "reason" }, message),
    ],
    { states: [badge(outcome ?? "running")], actions: [] },
  );

const connector = {
  /** @param {string[]} params */
  load: async ([id = "", slug = ""]) => {
    const [project, { connectors: all }, catalogue] = await Promise.all([
      getJson(projectPath(id)),
      getJson(`${projectPath(id)}/connectors`),
      getJson(connectorPath(id, slug, "/catalogue")),
    ]);
    return { project, catalogue, known: all.find((/** @type {Connector} */ one) => one.slug === slug) };
  },

  /** @param {{project: Project, catalogue: Catalogue}} data */
  title: ({ project, catalogue }) => `${catalogue.slug} · Connectors of ${project.name}`,

  /** @param {{project: Project, catalogue: Catalogue, known: Connector | undefined}} data known: undefined while the manifest changes */
  view: ({ project, catalogue, known }) => {
    const { slug, pin, tools, removed, left_out: leftOut, failure } = catalogue;
    const of = { project: project.id, slug };
    const waiting = tools.filter(({ state }) => state !== "accepted");
    return [
      trail([
        ["Projects", "#/projects"],
        [project.name, projectLink(project.id)],
        ["Connectors", projectLink(project.id, "/connectors")],
        [slug, null],
      ]),
      h("h1", { "data-key": "heading" }, slug),
      h(
        "p",
        { class: "quiet", "data-key": "dates" },
        known !== undefined && [code(known.url), " · "],
        "tools fetched ",
        time(catalogue.refreshed_at),
        " · accepted ",
        time(catalogue.accepted_at),
      ),
      failure !== null && callout("bad", "The last fetch failed: ", failure, " Accepted tools stay usable."),
      waiting.length + removed.length > 0 &&
        callout(
          "warn",
          waiting.length > 0 &&
            `${waiting.length} ${waiting.length === 1 ? "tool is" : "tools are"} hidden from agents until you accept. `,
          removed.length > 0 && ["The server no longer has ", removed.join(", "), "."],
        ),
      h(
        "p",
        { class: "actions", "data-key": "actions" },
        pin !== null &&
          waiting.length + removed.length > 0 &&
          act("accept-connector", "Accept these tools", { ...of, pin }),
        act("refresh-connector", "Fetch the tools again", of),
        known !== undefined &&
          (known.credential !== null || known.sign_in !== null) &&
          act(
            "forget-connector-credential",
            known.credential_of === "user" ? "Delete your credential" : "Delete the credential",
            of,
          ),
      ),
      tools.length === 0
        ? empty("No tools are known.", "Fetch them from the server.")
        : h(
            "ul",
            { class: "rows", "data-key": "tools" },
            [...waiting, ...tools.filter(({ state }) => state === "accepted")].map(toolRow),
          ),
      leftOut.length > 0 &&
        h(
          "section",
          { "data-key": "left-out" },
          h("h2", {}, "Left out"),
          h(
            "ul",
            { class: "rows" },
            leftOut.map(({ name, why }) =>
              listRow(name, [code(name), detail(why)], { states: [], actions: [] }),
            ),
          ),
        ),
    ];
  },
};

/** @param {Tool} tool */
const toolRow = ({ name, description, input_schema: schema, request, policy, rule, state, accepted }) =>
  listRow(
    name,
    [
      code(name),
      detail(description),
      request !== null && detail("Sends ", code(request)),
      accepted !== null &&
        accepted.request !== request &&
        h("span", { class: "reason" }, "The accepted request was: ", accepted.request ?? "none"),
      accepted !== null &&
        accepted.description !== description &&
        h("span", { class: "reason" }, "The accepted description was: ", accepted.description),
      accepted !== null &&
        JSON.stringify(accepted.input_schema) !== JSON.stringify(schema) &&
        h("span", { class: "reason" }, "Its arguments changed."),
      h(
        "details",
        { class: "group", "data-key": "schema" },
        h("summary", {}, "Arguments"),
        commandBlock(JSON.stringify(schema, null, 2), "the arguments"),
        accepted !== null && [
          h("p", {}, "The accepted ones were:"),
          commandBlock(JSON.stringify(accepted.input_schema, null, 2), "the accepted arguments"),
        ],
      ),
    ],
    {
      states: [
        state !== "accepted" && tag(state, "warn"),
        h("span", { title: `Rule: ${rule}` }, tag(policy, policy === "deny" ? "bad" : undefined)),
      ],
      actions: [],
    },
  );

/** @type {Record<string, import("../frame/actions.js").Action>} */
const actions = {
  ...approvalActions,

  /** Leaves the page for the connector's server, which sends the browser back. */
  "authorize-connector": async ({ project = "", slug = "" }) => {
    const { url } = await post(connectorPath(project, slug, "/authorize"), {}, FETCH_MS);
    location.assign(url);
  },

  "set-connector-credential": async ({ project = "", slug = "", auth = "" }, page) => {
    if (NEEDS[auth] !== undefined) return storeClient({ project, slug, auth }, page);
    const typed = await askFor(
      {
        title: `Store the credential of ${slug}`,
        text: "It is encrypted, and sent to this connector's origin only. No agent, page or answer shows it. The service then fetches the server's tools.",
        confirm: "Store",
      },
      {
        value: {
          label: auth === "basic" ? "user:password" : "Credential",
          value: "",
          lines: 1,
          required: true,
          hidden: true,
        },
      },
    );
    if (typed === null) return;
    const { failure } = await put(
      connectorPath(project, slug, "/credential"),
      { value: typed["value"] },
      FETCH_MS,
    );
    if (failure !== null) throw new Error(`The credential is stored. ${failure}`);
    page.notice("The credential is stored.", [
      "Look at the tools",
      projectLink(project, `/connectors/${slug}`),
    ]);
  },

  "refresh-connector": async ({ project = "", slug = "" }, page) => {
    const { failure } = await post(
      connectorPath(project, slug, "/catalogue"),
      { action: "refresh" },
      FETCH_MS,
    );
    if (failure !== null) throw new Error(failure);
    page.notice("The tools are fetched.");
  },

  "accept-connector": async ({ project = "", slug = "", pin = "" }, page) => {
    await post(connectorPath(project, slug, "/catalogue"), { action: "accept", pin });
    page.notice("The tools are accepted. Agents can use what the rules allow.");
  },

  "forget-connector-credential": async ({ project = "", slug = "" }, page) => {
    const sure = await ask({
      title: `Delete the credential of ${slug}?`,
      text: "Agents can no longer use it. A sign-in ends, too. The accepted tools stay accepted.",
      confirm: "Delete",
    });
    if (sure === null) return;
    await remove(connectorPath(project, slug, "/credential"));
    page.notice("The credential was deleted.");
  },
};

export const pages = { connectors, connector };
export { actions };
