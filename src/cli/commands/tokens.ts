/** `platform tokens`, `platform whoami` and `platform login`. */
import { Client } from "../client.ts";
import { command } from "../command.ts";
import { checkedToken, configurationFile, parseAddress, writeLogin } from "../configuration.ts";
import type { Answer } from "../contract.ts";
import { usage } from "../failure.ts";
import { fields, table, time, timeOrDash, visible } from "../terminal.ts";
import { anyId, projectId } from "../words.ts";
import { page, pageOptions, pageOutcome } from "./lists.ts";

const list = command({
  name: "tokens list",
  about: "List the account's tokens. Their secrets are not shown",
  options: pageOptions,
  run: async ({ options, note, api }) => {
    const answered = await api().call("GET /v1/tokens", { query: page(options) });
    const rows = answered.value.tokens.map((token) => [
      token.id,
      time(token.created_at),
      timeOrDash(token.last_used_at),
      timeOrDash(token.expires_at),
      token.project_id ?? "all",
      token.name,
    ]);
    return pageOutcome(
      answered,
      table(["TOKEN", "CREATED", "USED", "EXPIRES", "PROJECT", "NAME"], rows, "No tokens."),
      note,
    );
  },
});

const create = command({
  name: "tokens create",
  about: "Create a token. It is printed once",
  takes: ["NAME"],
  options: {
    "bound-to": { value: "PROJECT", about: "Limit the token to this project" },
    expires: { value: "INSTANT", about: "When it expires, such as 2027-01-31T00:00:00.000Z" },
  },
  run: async ({ given, options: { "bound-to": bound, expires }, note, api }) => {
    const { value, text } = await api().call("POST /v1/tokens", {
      payload: {
        name: given.NAME,
        ...(bound !== undefined && { project_id: projectId(bound, "--bound-to") }),
        ...(expires !== undefined && { expires_at: expires }),
      },
    });
    note(`Token ${value.id}. It is shown only once:`);
    return { json: text, text: visible(value.token) };
  },
});

const remove = command({
  name: "tokens delete",
  about: "Delete a token. It stops working at once",
  takes: ["TOKEN"],
  notes: "TOKEN is the id from `platform tokens list`, not the token itself.",
  run: async ({ given, api }) => {
    const id = anyId(given.TOKEN, "TOKEN");
    const { text } = await api().call("DELETE /v1/tokens/:id", { params: { id } });
    return { json: text, text: `${id} deleted` };
  },
});

const me = ({ user, account, token }: Answer<"GET /v1/me">): string =>
  fields([
    ["user", `${user.name} (${user.id})`],
    ["account", `${account.name} (${account.id})`],
    ["tier", account.tier],
    [
      "sessions",
      `${account.active_sessions} of ${account.session_cap}, ${account.queued_fires} fires queued`,
    ],
    ["token", `${token.id}, of a ${token.origin}, for ${token.project_id ?? "all projects"}`],
  ]);

const whoami = command({
  name: "whoami",
  about: "Show the token's user and the account's usage",
  run: async ({ api }) => {
    const { value, text } = await api().call("GET /v1/me", {});
    return { json: text, text: me(value) };
  },
});

/** Over plain http, others on the network can read the token. */
const isInTheClear = (apiUrl: string): boolean => {
  const { protocol, hostname } = new URL(apiUrl);
  return protocol === "http:" && !/^(?:127\.\d+\.\d+\.\d+|\[::1\]|(?:.+\.)?localhost)$/.test(hostname);
};

const login = command({
  name: "login",
  about: "Save a service's address and a token",
  options: { url: { value: "URL", about: "The service's address. Without it, the command asks" } },
  notes: `The command asks for the address and for a token, which is not shown. In a script, write both as lines to standard input,
the address first unless you give --url. The command tests the token, then saves both in a file that only you can read:
$XDG_CONFIG_HOME/platform/config.json, or ~/.config/platform/config.json.`,
  run: async ({ options, environment, input, note }) => {
    const written = options.url ?? (await input.line("Address of the service: "));
    const apiUrl = parseAddress(written);
    if (apiUrl === null)
      throw usage("The address must be an http or https URL without a user, a query and a fragment.");
    if (isInTheClear(apiUrl)) note("Warning: over http, anyone on the network path can read the token.");
    const token = checkedToken((await input.hiddenLine("Token (not shown): ")).trim(), "The input");
    const { value, text } = await new Client({ apiUrl, token, environment }).call("GET /v1/me", {});
    const file = configurationFile(environment);
    writeLogin(file, { apiUrl, token });
    note(`Saved in ${file}.`);
    return {
      json: text,
      text: visible(`Logged in as ${value.user.name} of the account ${value.account.name}.`),
    };
  },
});

export const tokenCommands = [login, whoami, list, create, remove];
