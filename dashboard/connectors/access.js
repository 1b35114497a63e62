/** How the service gets access to a connector: a stored credential or client, or a person's sign-in. */
import { put } from "../api/api.js";
import { askFor } from "../frame/dialog.js";
import { button, code, detail, time } from "../elements/parts.js";
import { projectPath } from "../projects/project.js";

/** @typedef {import("../wire.d.ts").Connector} Connector */
/** @typedef {import("../elements/dom.js").Child} Child */

/** A server may be slow. */
export const FETCH_MS = 90_000;

/** What a connector with OAuth needs instead of a credential. @type {Record<string, [string, string, string]>} */
export const NEEDS = {
  oauth: ["needs a sign-in", "warn", "Sign in at the server."],
  client_credentials: ["needs a credential", "warn", "Store the client that the server knows."],
};

/** The words for a missing own credential. @param {string} auth @returns {[string, string, string]} */
export const needsYours = (auth) => [
  "yours is missing",
  "warn",
  auth === "oauth"
    ? "Your sessions use your own sign-in. Sign in at the server."
    : "Your sessions use your own credential. Store it.",
];

/** The words for a stored credential. @param {Connector} connector */
export const storedWord = ({ auth, credential_of: of }) =>
  of === "user" && NEEDS[auth] === undefined
    ? "your credential stored "
    : NEEDS[auth] === undefined
      ? "credential stored "
      : "client stored ";

/** @typedef {Map<string, string>} Names of people, by id */

/** @param {{user: {id: string, name: string}}[]} members @returns {Names} */
export const namesOf = (members) => new Map(members.map(({ user }) => [user.id, user.name]));

/** @param {string} project @param {string} slug @param {string} [rest] */
export const connectorPath = (project, slug, rest = "") =>
  `${projectPath(project)}/connectors/${slug}${rest}`;

/** @param {string} action @param {string} label @param {{project: string, slug: string, pin?: string, auth?: string}} of */
export const act = (action, label, { project, slug, pin, auth }) =>
  button(action, label, {
    class: pin === undefined ? "plain" : "primary",
    "data-project": project,
    "data-slug": slug,
    "data-pin": pin,
    "data-auth": auth,
    "aria-label": `${label}: ${slug}`,
  });

/** The place, the instant and the person of its sign-in. @param {Connector} connector @param {Names} names @returns {Child} */
export const signInDetail = ({ sign_in: signIn }, names) => {
  if (signIn === null || signIn.status === "ended") return false;
  const by = signIn.by === null ? undefined : names.get(signIn.by);
  return detail(
    "signed in ",
    time(signIn.at),
    by !== undefined && ` by ${by}`,
    signIn.issuer !== null && [" at ", code(signIn.issuer)],
    signIn.failure !== null && ` · the last renewal failed: ${signIn.failure}`,
  );
};

/** @param {Connector} connector */
const storeLabel = ({ auth, credential, credential_of: of }) => {
  if (NEEDS[auth] !== undefined) return credential === null ? "Store a client" : "Replace the client";
  if (credential !== null) return of === "user" ? "Replace yours" : "Replace";
  return of === "user" ? "Store yours" : "Store the credential";
};

/** The buttons that give the service access. @param {Connector} connector @param {{project: string, slug: string}} of @returns {Child[]} */
export const accessActions = (connector, of) => {
  const { auth, sign_in: signIn } = connector;
  return [
    auth === "oauth" && act("authorize-connector", signIn === null ? "Sign in" : "Sign in again", of),
    auth !== "none" && act("set-connector-credential", storeLabel(connector), { ...of, auth }),
  ];
};

/** Stores the id and the secret of an OAuth client. @param {{project: string, slug: string, auth: string}} of @param {import("../frame/actions.js").Page} page */
export const storeClient = async ({ project, slug, auth }, page) => {
  const typed = await askFor(
    {
      title: `Store the client of ${slug}`,
      text: `A client that you registered at the server. Its redirect address is ${location.origin}/dashboard/callback/connector. The secret is encrypted, and sent to the server's sign-in only.`,
      confirm: "Store",
    },
    {
      id: { label: "Client id (empty: as platform.toml says)", value: "", lines: 1, required: false },
      value: { label: "Client secret", value: "", lines: 1, required: true, hidden: true },
    },
  );
  if (typed === null) return;
  const { id, value } = typed;
  const { failure } = await put(
    connectorPath(project, slug, "/credential"),
    { value, ...(id !== "" && { client_id: id }) },
    FETCH_MS,
  );
  if (failure !== null && auth === "client_credentials") throw new Error(`The client is stored. ${failure}`);
  page.notice(auth === "oauth" ? "The client is stored. Sign in now." : "The client is stored.");
};
