/** How the service gets access to a connector: a stored credential or client, or a person's sign-in. */
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { projectLink } from "../elements/parts.ts";
import { ask, askFor } from "../frame/dialog.ts";
import { notice } from "../frame/notices.ts";
import { RoleAct } from "../ui/act.tsx";
import { Detail, Time } from "../ui/parts.tsx";

export type Connector = Answer<"GET /v1/projects/:pid/connectors">["connectors"][number];
export type Words = readonly [word: string, tone: "good" | "warn" | "bad", next: string];

/** A connector of a project. */
export interface Named {
  readonly pid: string;
  readonly slug: string;
}

/** A server may be slow. */
export const FETCH_MS = 90_000;

/** What a connector with OAuth needs instead of a credential. */
const NEEDS: Readonly<Record<string, Words>> = {
  oauth: ["needs a sign-in", "warn", "Sign in at the server."],
  client_credentials: ["needs a credential", "warn", "Store the client that the server knows."],
};

const takesClient = (auth: string): boolean => NEEDS[auth] !== undefined;

/** The words for a missing credential, if they are not those of all connectors. */
export const needWords = ({ auth, credential_of: of }: Connector): Words | undefined =>
  of === "user"
    ? [
        "yours is missing",
        "warn",
        auth === "oauth"
          ? "Your sessions use your own sign-in. Sign in at the server."
          : "Your sessions use your own credential. Store it.",
      ]
    : NEEDS[auth];

/** The words for a stored credential. */
export const storedWord = ({ auth, credential_of: of }: Connector): string => {
  if (takesClient(auth)) return "client stored";
  return of === "user" ? "your credential stored" : "credential stored";
};

/** The instant, the person and the place of its sign-in. @param props `names`: of people, by id */
export const SignIn = ({
  connector: { sign_in: signIn },
  names,
}: {
  readonly connector: Connector;
  readonly names: ReadonlyMap<string, string>;
}) => {
  if (signIn === null || signIn.status === "ended") return null;
  const by = signIn.by === null ? undefined : names.get(signIn.by);
  return (
    <Detail>
      signed in <Time at={signIn.at} />
      {by !== undefined && ` by ${by}`}
      {signIn.issuer !== null && " at "}
      {signIn.issuer !== null && <code>{signIn.issuer}</code>}
      {signIn.failure !== null && ` · the last renewal failed: ${signIn.failure}`}
    </Detail>
  );
};

/** Leaves the page for the connector's server, which sends the browser back. */
const authorize = async (params: Named): Promise<void> => {
  const { url } = await request("POST /v1/projects/:pid/connectors/:slug/authorize", { params }, FETCH_MS);
  location.assign(url);
};

/** Stores the id and the secret of an OAuth client. */
const storeClient = async (params: Named, auth: string): Promise<void> => {
  const typed = await askFor(
    {
      title: `Store the client of ${params.slug}`,
      text: `A client that you registered at the server. Its redirect address is ${location.origin}/dashboard/callback/connector. The secret is encrypted, and sent to the server's sign-in only.`,
      confirm: "Store",
    },
    {
      id: { label: "Client id (empty: as platform.toml says)", value: "", lines: 1, required: false },
      value: { label: "Client secret", value: "", lines: 1, required: true, hidden: true },
    },
  );
  if (typed === null) return;
  const { id = "", value = "" } = typed;
  const { failure } = await request(
    "PUT /v1/projects/:pid/connectors/:slug/credential",
    { params, payload: { value, ...(id !== "" && { client_id: id }) } },
    FETCH_MS,
  );
  if (failure !== null && auth === "client_credentials") throw new Error(`The client is stored. ${failure}`);
  notice(auth === "oauth" ? "The client is stored. Sign in now." : "The client is stored.");
};

const storeCredential = async (params: Named, auth: string): Promise<void> => {
  const typed = await askFor(
    {
      title: `Store the credential of ${params.slug}`,
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
  const { value = "" } = typed;
  const { failure } = await request(
    "PUT /v1/projects/:pid/connectors/:slug/credential",
    { params, payload: { value } },
    FETCH_MS,
  );
  if (failure !== null) throw new Error(`The credential is stored. ${failure}`);
  notice("The credential is stored.", [
    "Look at the tools",
    projectLink(params.pid, `/connectors/${params.slug}`),
  ]);
};

export const forget = async (params: Named): Promise<void> => {
  const sure = await ask({
    title: `Delete the credential of ${params.slug}?`,
    text: "Agents can no longer use it. A sign-in ends, too. The accepted tools stay accepted.",
    confirm: "Delete",
    danger: true,
  });
  if (sure === null) return;
  await request("DELETE /v1/projects/:pid/connectors/:slug/credential", { params });
  notice("The credential was deleted.");
};

/** Fetches the tools from the server. */
export const refresh = async (params: Named): Promise<void> => {
  const { failure } = await request(
    "POST /v1/projects/:pid/connectors/:slug/catalogue",
    { params, payload: { action: "refresh" } },
    FETCH_MS,
  );
  if (failure !== null) throw new Error(failure);
  notice("The tools are fetched.");
};

const storeLabel = ({ auth, credential, credential_of: of }: Connector): string => {
  if (takesClient(auth)) return credential === null ? "Store a client" : "Replace the client";
  if (credential !== null) return of === "user" ? "Replace yours" : "Replace";
  return of === "user" ? "Store yours" : "Store the credential";
};

/** The buttons that give the service access. */
export const AccessActs = ({ pid, connector }: { readonly pid: string; readonly connector: Connector }) => {
  const { auth, slug, sign_in: signIn } = connector;
  const named = { pid, slug };
  const store = takesClient(auth) ? storeClient : storeCredential;
  return (
    <>
      {auth === "oauth" && (
        <RoleAct
          entry="authorize-connector"
          label={signIn === null ? "Sign in" : "Sign in again"}
          about={slug}
          does={() => authorize(named)}
        />
      )}
      {auth !== "none" && (
        <RoleAct
          entry="set-connector-credential"
          label={storeLabel(connector)}
          about={slug}
          does={() => store(named, auth)}
        />
      )}
    </>
  );
};
