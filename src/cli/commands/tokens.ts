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
  about: "List the account's tokens; they themselves are never shown again",
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
  about: "Make a token; it is printed once",
  takes: ["NAME"],
  options: {
    "bound-to": { value: "PROJECT", about: "It reaches this project alone" },
    expires: { value: "INSTANT", about: "When it ends, such as 2027-01-31T00:00:00.000Z" },
  },
  run: async ({ given, options: { "bound-to": bound, expires }, note, api }) => {
    const { value, text } = await api().call("POST /v1/tokens", {
      payload: {
        name: given.NAME,
        ...(bound !== undefined && { project_id: projectId(bound, "--bound-to") }),
        ...(expires !== undefined && { expires_at: expires }),
      },
    });
    note(`Token ${value.id}; it is shown this once:`);
    return { json: text, text: visible(value.token) };
  },
});

const remove = command({
  name: "tokens delete",
  about: "Delete a token: it stops working at once",
  takes: ["TOKEN"],
  notes: "TOKEN is its id, as `platform tokens list` has it, and not the token itself.",
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
    ["sessions", `${account.active_sessions} of ${account.session_cap}, ${account.queued_fires} fires wait`],
    ["token", `${token.id}, of a ${token.origin}, for ${token.project_id ?? "all projects"}`],
  ]);

const whoami = command({
  name: "whoami",
  about: "Say whose token this is, and what the account has under way",
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
  about: "Keep a service's address and a token for further calls",
  options: { url: { value: "URL", about: "The service's address; asked for where it is not given" } },
  notes: `It asks for the address and for a token, which is not shown; in a script both are lines of standard input, the
address first unless --url gives it. The token is tried before it is kept, in the file that only its owner can read:
$XDG_CONFIG_HOME/platform/config.json, or ~/.config/platform/config.json.`,
  run: async ({ options, environment, input, note }) => {
    const written = options.url ?? (await input.line("Address of the service: "));
    const apiUrl = parseAddress(written);
    if (apiUrl === null)
      throw usage("That is no http or https address without a user, a query and a fragment.");
    if (isInTheClear(apiUrl)) note("Over http everybody on the way to that machine can read the token.");
    const token = checkedToken((await input.hiddenLine("Token (not shown): ")).trim(), "What was given");
    const { value, text } = await new Client({ apiUrl, token, environment }).call("GET /v1/me", {});
    const file = configurationFile(environment);
    writeLogin(file, { apiUrl, token });
    note(`Kept in ${file}.`);
    return {
      json: text,
      text: visible(`Logged in as ${value.user.name} of the account ${value.account.name}.`),
    };
  },
});

export const tokenCommands = [login, whoami, list, create, remove];
