/**
 * `platform connectors` and `platform calls`. A credential comes from standard input or a file, because every program on
 * the machine can see arguments.
 */
import { recordTable } from "../../cli/endpoint/columns.ts";
import type { Answer } from "../../cli/contract.ts";
import { endpoint } from "../../cli/endpoint/endpoint.ts";
import { EXIT, Failure, usageFailure } from "../../cli/failure.ts";
import { safeLine } from "../../cli/terminal.ts";
import { quantity } from "../../domain/counted.ts";

/** The command for a missing own credential, or null if none is missing. */
const need = (one: {
  readonly slug: string;
  readonly auth: string;
  readonly state: string;
  readonly credential_of: string;
}): string | null => {
  if (one.credential_of !== "user" || one.state !== "needs_credential") return null;
  const verb = one.auth === "oauth" ? "authorize" : "set-credential";
  return `Yours is missing: platform connectors ${verb} ${one.slug}`;
};

type Catalogue = Answer<"GET /v1/projects/:pid/connectors/:slug/catalogue">;
type LeftOut = Pick<Catalogue, "left_out" | "left_out_total">;

const leftOutLines = ({ left_out: named, left_out_total: total }: LeftOut): readonly string[] => [
  ...named.map(({ name, why }) => `left out: ${name}: ${why}`),
  ...(total > named.length ? [`left out: ${total - named.length} more`] : []),
];

const catalogueText = ({ pin, failure, removed, tools, ...leftOut }: Catalogue): string =>
  [
    recordTable<Catalogue["tools"][number]>(
      {
        TOOL: "name",
        STATE: "state",
        POLICY: "policy",
        ...(tools.some(({ request }) => request !== null) && { REQUEST: ({ request }) => request }),
        DESCRIPTION: "description",
      },
      tools,
      "No tools.",
    ),
    ...removed.map((name) => safeLine(`removed: ${name}`)),
    ...leftOutLines(leftOut).map(safeLine),
    ...(failure === null ? [] : [safeLine(`The last refresh failed: ${failure}`)]),
    ...(pin === null ? [] : [`pin: ${safeLine(pin)}`]),
  ].join("\n");

export const connectorCommands = [
  endpoint("GET /v1/projects/:pid/connectors", {
    name: "connectors list",
    about: "List a project's connectors, and what each of them needs",
    rows: "connectors",
    columns: {
      SLUG: "slug",
      KIND: "kind",
      STATE: "state",
      CREDENTIAL: ({ credential_of: whose }) => (whose === "user" ? "yours" : "project"),
      TOOLS: "usable",
      "TO ACCEPT": "to_accept",
      FETCHED: "refreshed_at",
      "SERVER OR FAILURE": (one) => need(one) ?? one.failure ?? one.url,
    },
    none: "No connectors.",
    below: ({ connectors, errors }) => [
      ...connectors.flatMap(({ slug, ...one }) => leftOutLines(one).map((line) => `${slug}: ${line}`)),
      ...errors.map(
        ({ path, line, message }) =>
          `platform.toml${line === null ? "" : `:${line}`}: ${path ?? "file"}: ${message}`,
      ),
    ],
  }),
  endpoint("PUT /v1/projects/:pid/connectors/:slug/credential", {
    name: "connectors set-credential",
    about: "Store a connector's credential, from standard input or a file, and fetch its tools",
    takes: ["SLUG"],
    options: {
      file: { value: "FILE", about: "Take the file's content", sets: null },
      "client-id": {
        value: "CLIENT",
        about: "Id of the OAuth client whose secret is stored; default: the manifest's",
      },
    },
    notes:
      "One line break at the end is removed. At a terminal, the command asks for the value. If the tools cannot be fetched with the credential, the exit code is 1; the credential stays stored.",
    sends: async ({ given: { SLUG }, options: { file }, input, project }) => {
      // A wrong project is an error before a person types.
      await project();
      const question = `Credential of ${safeLine(SLUG)} (not shown): `;
      const value = (await input.secret(question, file, "--file")).replace(/\r?\n$/, "");
      if (value === "") throw usageFailure("The credential is empty.");
      return { payload: { value } };
    },
    shows: ({ state }, { given }) => safeLine(`${given.SLUG}: ${state}.`),
    fails: ({ failure: message }) =>
      message === null ? null : new Failure(EXIT.refused, "connector_failed", { message }),
  }),
  endpoint("POST /v1/projects/:pid/connectors/:slug/authorize", {
    name: "connectors authorize",
    about: "Begin a sign-in at a connector's server, and show the address to open",
    takes: ["SLUG"],
    notes: "Open the address within ten minutes, in the browser in which you are signed in to the page.",
    shows: ({ url }) => safeLine(url),
  }),
  endpoint("DELETE /v1/projects/:pid/connectors/:slug/credential", {
    name: "connectors delete-credential",
    about: "Delete a connector's credential, and end its sign-in",
    asks: "Delete the credential?",
    takes: ["SLUG"],
    shows: (_, { given }) => safeLine(`The credential of ${given.SLUG} is deleted.`),
  }),
  endpoint("GET /v1/projects/:pid/connectors/:slug/catalogue", {
    name: "connectors tools",
    about: "Show the tools of a connector, what changed since they were accepted, and their pin",
    takes: ["SLUG"],
    shows: catalogueText,
  }),
  endpoint("POST /v1/projects/:pid/connectors/:slug/catalogue", {
    name: "connectors refresh",
    about: "Fetch the tools of a connector again",
    takes: ["SLUG"],
    always: { action: "refresh" },
    shows: catalogueText,
  }),
  endpoint("POST /v1/projects/:pid/connectors/:slug/catalogue", {
    name: "connectors accept",
    about: "Accept the tools of a connector, as `connectors tools` showed them with this pin",
    takes: ["SLUG", "PIN"],
    notes: "It is refused if the tools changed since. Then look at them again.",
    always: { action: "accept" },
    shows: ({ tools }, { given }) => safeLine(`${quantity(tools.length, "tool")} of ${given.SLUG} accepted`),
  }),
  endpoint("GET /v1/projects/:pid/executor/calls", {
    name: "calls",
    about: "List the calls of agents to connectors, newest first",
    options: {
      session: { value: "SESSION", about: "Only calls of this session", sets: "session_id" },
      connector: { value: "SLUG", about: "Only calls of this connector" },
    },
    rows: "calls",
    columns: {
      ID: "id",
      AT: "at",
      CONNECTOR: "connector",
      TOOL: "tool",
      OUTCOME: ({ outcome }) => outcome ?? "under way",
      APPROVER: "approver",
      SESSION: "session_id",
      "REASON OR ARGUMENTS": (call) => call.message ?? call.arguments_preview.slice(0, 60),
    },
    none: "No calls.",
  }),
];
