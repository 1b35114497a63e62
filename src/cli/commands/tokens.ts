/** `platform tokens` and `platform whoami`. */
import type { Client } from "../client.ts";
import type { Answer } from "../contract.ts";
import { endpoint } from "../endpoint/endpoint.ts";
import { fieldLines, safeLine } from "../terminal.ts";
import { login } from "./login.ts";
import { logout } from "./logout.ts";

/** How many names are looked up. Other people are shown by their ids. */
const NAMES_MAX = 200;

/** The names of the account's people, by id. */
const readNames = async (client: Client): Promise<ReadonlyMap<string, string>> => {
  const { value } = await client.call("GET /v1/people", { query: { limit: NAMES_MAX } });
  return new Map(value.people.map(({ id, name }) => [id, name]));
};

const me = ({ user, account, token }: Answer<"GET /v1/me">): string =>
  fieldLines([
    ["user", `${user.name} (${user.id})`],
    ["account", `${account.name} (${account.id})`],
    ["tier", account.tier],
    [
      "sessions",
      `${account.active_sessions} of ${account.session_cap}, ${account.queued_fires} fires queued`,
    ],
    ["token", `${token.id}, of a ${token.origin}, for ${token.project_id ?? "all projects"}`],
  ]);

export const tokenCommands = [
  login,
  logout,
  endpoint("GET /v1/me", {
    name: "whoami",
    about: "Show the token's user and the account's usage",
    shows: me,
  }),
  endpoint("GET /v1/tokens", {
    name: "tokens list",
    about: "List the account's tokens, with their people if there are several. Their secrets are not shown",
    rows: "tokens",
    columns: async ({ api }, { tokens }) => {
      const isShared = new Set(tokens.map(({ user_id: id }) => id)).size > 1;
      const names = isShared ? await readNames(api()) : null;
      return {
        TOKEN: "id",
        CREATED: "created_at",
        USED: "last_used_at",
        EXPIRES: "expires_at",
        PROJECT: ({ project_id: pid }) => pid ?? "all",
        ...(names !== null && { PERSON: ({ user_id: id }) => names.get(id) ?? id }),
        NAME: "name",
      };
    },
    none: "No tokens.",
  }),
  endpoint("POST /v1/tokens", {
    name: "tokens create",
    about: "Create a token. It is printed once",
    takes: ["NAME"],
    options: {
      "bound-to": { value: "PROJECT", about: "Limit the token to this project", sets: "project_id" },
      expires: {
        value: "INSTANT",
        about: "When it expires, such as 2027-01-31T00:00:00.000Z",
        sets: "expires_at",
      },
    },
    shows: ({ id, token }, { note }) => {
      note(`Token ${id}. It is shown only once:`);
      return safeLine(token);
    },
  }),
  endpoint("DELETE /v1/tokens/:id", {
    name: "tokens delete",
    about: "Delete a token. It stops working at once",
    asks: "Delete the token? What uses it stops working.",
    takes: ["TOKEN"],
    notes: "TOKEN is the id from `platform tokens list`, not the token itself.",
    done: "deleted",
  }),
];
