/** `platform tokens` and `platform whoami`. */
import type { Client } from "../client.ts";
import { command } from "../command.ts";
import type { Answer } from "../contract.ts";
import { fields, table, time, timeOrDash, visible } from "../terminal.ts";
import { anyId, projectId } from "../words.ts";
import { login } from "./login.ts";
import { logout } from "./logout.ts";
import { page, pageOptions, pageOutcome } from "./lists.ts";

/** How many names are looked up. Other people are shown by their ids. */
const NAMES_MAX = 200;

/** The names of the account's people, by id. */
const namesOf = async (client: Client): Promise<ReadonlyMap<string, string>> => {
  const { value } = await client.call("GET /v1/people", { query: { limit: NAMES_MAX } });
  return new Map(value.people.map(({ id, name }) => [id, name]));
};

const list = command({
  name: "tokens list",
  about: "List the account's tokens, with their people if there are several. Their secrets are not shown",
  options: pageOptions,
  run: async ({ options, note, api }) => {
    const answered = await api().call("GET /v1/tokens", { query: page(options) });
    const { tokens } = answered.value;
    const names = new Set(tokens.map((token) => token.user_id)).size > 1 ? await namesOf(api()) : null;
    const personOf = (id: string): readonly string[] => (names === null ? [] : [names.get(id) ?? id]);
    const rows = tokens.map((token) =>
      [
        token.id,
        time(token.created_at),
        timeOrDash(token.last_used_at),
        timeOrDash(token.expires_at),
        token.project_id ?? "all",
      ].concat(personOf(token.user_id), token.name),
    );
    const person = names === null ? [] : ["PERSON"];
    const columns = ["TOKEN", "CREATED", "USED", "EXPIRES", "PROJECT", ...person, "NAME"];
    return pageOutcome(answered, table(columns, rows, "No tokens."), note);
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
  asks: "Delete the token? What uses it stops working.",
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

export const tokenCommands = [login, logout, whoami, list, create, remove];
