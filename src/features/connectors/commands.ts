/**
 * `platform connectors` and `platform calls`. A credential comes from standard input or a file, because every program on
 * the machine can see arguments.
 */
import { command } from "../../cli/command.ts";
import { EXIT, Failure, usage } from "../../cli/failure.ts";
import { table, time, timeOrDash, visible, visibleJson } from "../../cli/terminal.ts";
import { anyId, segment } from "../../cli/words.ts";
import { page, pageOptions, pageOutcome } from "../../cli/commands/lists.ts";
import { quantity } from "../../domain/counted.ts";

const SLUG = "SLUG";
const PIN = "PIN";

/** The command for a missing own credential. Null: none is missing. */
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

const list = command({
  name: "connectors list",
  about: "List a project's connectors, and what each of them needs",
  inProject: true,
  run: async ({ api, project }) => {
    const { value, text } = await api().call("GET /v1/projects/:pid/connectors", {
      params: { pid: await project() },
    });
    const rows = value.connectors.map((one) => [
      one.slug,
      one.kind,
      one.state,
      one.credential_of === "user" ? "yours" : "project",
      String(one.usable),
      String(one.to_accept),
      timeOrDash(one.refreshed_at),
      need(one) ?? one.failure ?? one.url,
    ]);
    const errors = value.errors.map(({ path, line, message }) =>
      visible(`platform.toml${line === null ? "" : `:${line}`}: ${path ?? "file"}: ${message}`),
    );
    const leftOut = value.connectors.flatMap(({ slug, ...one }) =>
      leftOutLines(one).map((line) => visible(`${slug}: ${line}`)),
    );
    const columns = [
      "SLUG",
      "KIND",
      "STATE",
      "CREDENTIAL",
      "TOOLS",
      "TO ACCEPT",
      "FETCHED",
      "SERVER OR FAILURE",
    ];
    return { json: text, text: [table(columns, rows, "No connectors."), ...leftOut, ...errors].join("\n") };
  },
});

const setCredential = command({
  name: "connectors set-credential",
  about: "Store a connector's credential, from standard input or a file, and fetch its tools",
  takes: [SLUG],
  inProject: true,
  options: {
    file: { value: "FILE", about: "Take the file's content" },
    "client-id": {
      value: "CLIENT",
      about: "Id of the OAuth client whose secret is stored; default: the manifest's",
    },
  },
  notes:
    "One line break at the end is removed. At a terminal, the command asks for the value. If the tools cannot be fetched with the credential, the exit code is 1; the credential stays stored.",
  run: async ({ given, options: { file, "client-id": clientId }, input, json, write, api, project }) => {
    const slug = segment(given.SLUG, SLUG);
    const pid = await project();
    const value = (await credential()).replace(/\r?\n$/, "");
    if (value === "") throw usage("The credential is empty.");
    const { value: stored, text } = await api().call("PUT /v1/projects/:pid/connectors/:slug/credential", {
      params: { pid, slug },
      payload: { value, ...(clientId !== undefined && { client_id: clientId }) },
    });
    const outcome = visible(`${slug}: ${stored.state}.`);
    if (stored.failure === null) return { json: text, text: outcome };
    write(`${json ? visibleJson(text).trimEnd() : outcome}\n`);
    throw new Failure(EXIT.refused, "connector_failed", { message: stored.failure });

    async function credential(): Promise<string> {
      if (file !== undefined) return await input.file(file, "--file");
      if (input.isTerminal) return await input.hiddenLine(`Credential of ${visible(slug)} (not shown): `);
      return await input.all();
    }
  },
});

const authorize = command({
  name: "connectors authorize",
  about: "Begin a sign-in at a connector's server, and show the address to open",
  takes: [SLUG],
  inProject: true,
  notes: "Open the address within ten minutes, in the browser in which you are signed in to the page.",
  run: async ({ given, api, project }) => {
    const { value, text } = await api().call("POST /v1/projects/:pid/connectors/:slug/authorize", {
      params: { pid: await project(), slug: segment(given.SLUG, SLUG) },
    });
    return { json: text, text: visible(value.url) };
  },
});

const deleteCredential = command({
  name: "connectors delete-credential",
  about: "Delete a connector's credential, and end its sign-in",
  asks: "Delete the credential?",
  takes: [SLUG],
  inProject: true,
  run: async ({ given, api, project }) => {
    const slug = segment(given.SLUG, SLUG);
    const { text } = await api().call("DELETE /v1/projects/:pid/connectors/:slug/credential", {
      params: { pid: await project(), slug },
    });
    return { json: text, text: visible(`The credential of ${slug} is deleted.`) };
  },
});

interface LeftOut {
  readonly left_out: readonly { readonly name: string; readonly why: string }[];
  readonly left_out_total: number;
}

const leftOutLines = ({ left_out: named, left_out_total: total }: LeftOut): readonly string[] => [
  ...named.map(({ name, why }) => `left out: ${name}: ${why}`),
  ...(total > named.length ? [`left out: ${total - named.length} more`] : []),
];

interface ShownCatalogue extends LeftOut {
  readonly pin: string | null;
  readonly failure: string | null;
  readonly removed: readonly string[];
  readonly tools: readonly {
    readonly name: string;
    readonly state: string;
    readonly policy: string;
    readonly description: string;
    readonly request: string | null;
  }[];
}

const catalogueText = ({ pin, failure, removed, tools: all, ...leftOut }: ShownCatalogue): string => {
  const hasRequests = all.some(({ request }) => request !== null);
  const rows = all.map(({ name, state, policy, description, request }) => [
    name,
    state,
    policy,
    ...(hasRequests ? [request ?? "-"] : []),
    description,
  ]);
  const columns = ["TOOL", "STATE", "POLICY", ...(hasRequests ? ["REQUEST"] : []), "DESCRIPTION"];
  return [
    table(columns, rows, "No tools."),
    ...removed.map((name) => visible(`removed: ${name}`)),
    ...leftOutLines(leftOut).map(visible),
    ...(failure === null ? [] : [visible(`The last refresh failed: ${failure}`)]),
    ...(pin === null ? [] : [`pin: ${visible(pin)}`]),
  ].join("\n");
};

const tools = command({
  name: "connectors tools",
  about: "Show the tools of a connector, what changed since they were accepted, and their pin",
  takes: [SLUG],
  inProject: true,
  run: async ({ given, api, project }) => {
    const { value, text } = await api().call("GET /v1/projects/:pid/connectors/:slug/catalogue", {
      params: { pid: await project(), slug: segment(given.SLUG, SLUG) },
    });
    return { json: text, text: catalogueText(value) };
  },
});

const refresh = command({
  name: "connectors refresh",
  about: "Fetch the tools of a connector again",
  takes: [SLUG],
  inProject: true,
  run: async ({ given, api, project }) => {
    const { value, text } = await api().call("POST /v1/projects/:pid/connectors/:slug/catalogue", {
      params: { pid: await project(), slug: segment(given.SLUG, SLUG) },
      payload: { action: "refresh" },
    });
    return { json: text, text: catalogueText(value) };
  },
});

const accept = command({
  name: "connectors accept",
  about: "Accept the tools of a connector, as `connectors tools` showed them with this pin",
  takes: [SLUG, PIN],
  inProject: true,
  notes: "It is refused if the tools changed since. Then look at them again.",
  run: async ({ given, api, project }) => {
    const slug = segment(given.SLUG, SLUG);
    const { value, text } = await api().call("POST /v1/projects/:pid/connectors/:slug/catalogue", {
      params: { pid: await project(), slug },
      payload: { action: "accept", pin: given.PIN },
    });
    return { json: text, text: visible(`${quantity(value.tools.length, "tool")} of ${slug} accepted`) };
  },
});

const calls = command({
  name: "calls",
  about: "List the calls of agents to connectors, newest first",
  inProject: true,
  options: {
    session: { value: "SESSION", about: "Only calls of this session" },
    connector: { value: "SLUG", about: "Only calls of this connector" },
    ...pageOptions,
  },
  run: async ({ options, note, api, project }) => {
    const { session, connector } = options;
    const answered = await api().call("GET /v1/projects/:pid/executor/calls", {
      params: { pid: await project() },
      query: {
        ...page(options),
        ...(session !== undefined && { session_id: anyId(session, "--session") }),
        ...(connector !== undefined && { connector }),
      },
    });
    const rows = answered.value.calls.map((call) => [
      call.id,
      time(call.at),
      call.connector,
      call.tool,
      call.outcome ?? "under way",
      call.approver ?? "-",
      call.session_id,
      call.message ?? call.arguments_preview.slice(0, 60),
    ]);
    const columns = [
      "ID",
      "AT",
      "CONNECTOR",
      "TOOL",
      "OUTCOME",
      "APPROVER",
      "SESSION",
      "REASON OR ARGUMENTS",
    ];
    return pageOutcome(answered, table(columns, rows, "No calls."), note);
  },
});

export const connectorCommands = [
  list,
  setCredential,
  authorize,
  deleteCredential,
  tools,
  refresh,
  accept,
  calls,
];
