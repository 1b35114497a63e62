/**
 * What a person may write where a command asks for an id: the id, its last eight digits, or a name if only one has it. Ids of one
 * minute begin alike, so lists at a terminal show their ends. A word is compared here and never sent, because it may be a secret.
 */
import { parseUuid } from "../domain/ids.ts";
import { type Client, type Page, type PageQuery, readPages } from "./client.ts";
import type { Command } from "./command.ts";
import { EXIT, Failure } from "./failure.ts";
import { count, type IdKind, isIdKind, SHORT_DIGITS, shortId } from "./words.ts";

const SHORT = new RegExp(`^[0-9a-f]{${SHORT_DIGITS}}$`);

interface Thing {
  readonly id: string;
  readonly name?: string | null;
}

/** Where the things are that a word may name. */
export interface Scope {
  readonly api: () => Client;
  readonly project: () => Promise<string>;
}
type Words = Readonly<Record<string, string | undefined>>;
type List = (scope: Scope, query: PageQuery, before: Words) => Promise<Page<Thing>>;

const projects: List = async ({ api }, query) => {
  const { value } = await api().call("GET /v1/projects", { query });
  return { things: value.projects, next: value.next_cursor };
};
const people: List = async ({ api }, query) => {
  const { value } = await api().call("GET /v1/people", { query });
  return { things: value.people, next: value.next_cursor };
};

/** Sessions of all projects. */
const everywhere: List = async ({ api }, query) => {
  const { value } = await api().call("GET /v1/sessions", { query });
  return { things: value.sessions, next: value.next_cursor };
};

/** The cursor of the first page of a second list, and how the cursors of its other pages begin. */
const SECOND = "second:";

/** One list, and then another one. A reader who may not have the first one gets the second one. */
const inTurn =
  (first: List, second: List): List =>
  async (scope, query, before) => {
    const { cursor, ...start } = query;
    if (cursor?.startsWith(SECOND) === true) {
      const at = cursor.slice(SECOND.length);
      const page = await second(scope, at === "" ? start : { ...start, cursor: at }, before);
      return { ...page, next: page.next === null ? null : `${SECOND}${page.next}` };
    }
    try {
      const page = await first(scope, query, before);
      return { ...page, next: page.next ?? SECOND };
    } catch (error) {
      if (error instanceof Failure && error.exit === EXIT.unauthorised) return { things: [], next: SECOND };
      throw error;
    }
  };

/** What waits in the project. The fires lack people's requests for sessions. */
const waiting: List = async ({ api, project }, query) => {
  const pid = await project();
  const { value } = await api().call("GET /v1/queue", { query });
  const own = value.queue.filter((one) => one.project_id === pid);
  return { things: own.map(({ fire_id: id }) => ({ id })), next: value.next_cursor };
};
const fires: List = async ({ api, project }, query) => {
  const { value } = await api().call("GET /v1/projects/:pid/fires", {
    params: { pid: await project() },
    query,
  });
  return { things: value.fires, next: value.next_cursor };
};

/** Kinds whose things have names. */
const NAMED: ReadonlySet<IdKind> = new Set(["PROJECT", "PERSON", "ACTOR", "SESSION", "TOKEN"]);

/** By the word that stands for the id in a command's usage. */
const LISTS: Readonly<Record<IdKind, List>> = {
  PROJECT: projects,
  PERSON: people,
  /** Agents act, too. */
  ACTOR: inTurn(people, everywhere),
  SESSION: async ({ api, project }, query) => {
    const { value } = await api().call("GET /v1/projects/:pid/sessions", {
      params: { pid: await project() },
      query,
    });
    return { things: value.sessions, next: value.next_cursor };
  },
  SAVE: async ({ api, project }, _, { SESSION = "" }) => {
    const { value } = await api().call("GET /v1/projects/:pid/sessions/:sid", {
      params: { pid: await project(), sid: SESSION },
    });
    return { things: value.saved?.earlier ?? [], next: null };
  },
  TURN: async ({ api, project }, _, { from = "" }) => {
    const { value } = await api().call("GET /v1/projects/:pid/sessions/:sid/saves", {
      params: { pid: await project(), sid: from },
    });
    return { things: value.turns, next: null };
  },
  REQUEST: async ({ api, project }, _, { SESSION = "" }) => {
    const { value } = await api().call("GET /v1/projects/:pid/sessions/:sid/conversation", {
      params: { pid: await project(), sid: SESSION },
      query: { limit: 1 },
    });
    return { things: value.requests, next: null };
  },
  COMMENT: async ({ api, project }, query, { NUMBER = "" }) => {
    const { value } = await api().call("GET /v1/projects/:pid/change-requests/:number/remarks", {
      params: { pid: await project(), number: count(NUMBER, "NUMBER") },
      query,
    });
    return { things: value.remarks, next: value.next_cursor };
  },
  INVITATION: async ({ api }, query) => {
    const { value } = await api().call("GET /v1/invitations", { query });
    return { things: value.invitations, next: value.next_cursor };
  },
  TOKEN: async ({ api }, query) => {
    const { value } = await api().call("GET /v1/tokens", { query });
    return { things: value.tokens, next: value.next_cursor };
  },
  FIRE: inTurn(waiting, fires),
  BUILD: async ({ api, project }, query, { PROJECT }) => {
    const pid = PROJECT ?? (await project());
    const { value } = await api().call("GET /v1/projects/:pid/environment/builds", {
      params: { pid },
      query,
    });
    return { things: value.builds, next: value.next_cursor };
  },
  CALL: async ({ api, project }, query) => {
    const { value } = await api().call("GET /v1/projects/:pid/approvals", {
      params: { pid: await project() },
      query,
    });
    return { things: value.approvals, next: value.next_cursor };
  },
  WEBHOOK: async ({ api, project }) => {
    const { value } = await api().call("GET /v1/projects/:pid/webhooks", {
      params: { pid: await project() },
    });
    return { things: value.webhooks, next: null };
  },
  DELIVERY: async ({ api, project }, query, { WEBHOOK = "" }) => {
    const { value } = await api().call("GET /v1/projects/:pid/webhooks/:id/deliveries", {
      params: { pid: await project(), id: WEBHOOK },
      query,
    });
    return { things: value.deliveries, next: value.next_cursor };
  },
};

const refusal = (exit: typeof EXIT.notFound | typeof EXIT.usage, code: string, message: string): Failure =>
  new Failure(exit, code, { message });

/** @param kind the word of the usage, e.g. `SESSION` @returns the id */
const lookUp = async (
  text: string,
  kind: IdKind,
  read: (query: PageQuery) => Promise<Page<Thing>>,
): Promise<string> => {
  const isShort = SHORT.test(text);
  const matches: Thing[] = [];
  for await (const things of readPages(read)) {
    const ending = isShort ? things.find(({ id }) => shortId(id) === text) : undefined;
    if (ending !== undefined) return ending.id;
    matches.push(...things.filter(({ name }) => name?.toLowerCase() === text.toLowerCase()));
  }
  const [only, second] = matches;
  if (only === undefined) {
    const [what, digits] = [kind.toLowerCase(), `the last ${SHORT_DIGITS} digits of it`];
    const words = NAMED.has(kind) ? `its id, ${digits}, or its name` : `its id, or ${digits}`;
    throw refusal(EXIT.notFound, "not_found", `No such ${what}: give ${words}.`);
  }
  if (second === undefined) return only.id;
  const ids = matches.map(({ id }) => shortId(id)).join(", ");
  throw refusal(EXIT.usage, "ambiguous", `Several have this name. Give the last digits of one: ${ids}.`);
};

/** The id of what a person wrote. */
export const resolveId = async (
  text: string,
  what: string,
  { scope, before = {} }: { readonly scope: Scope; readonly before?: Words },
): Promise<string> => {
  const word = text.trim();
  if (!isIdKind(what) || word === "" || parseUuid(word.toLowerCase()) !== null) return text;
  return await lookUp(word, what, (query) => LISTS[what](scope, query, before));
};

type Values = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** A command's words and options with ids in the place of what stands for them. */
export const withIds = async (
  { takes, options: declared, isLocal }: Command,
  { given, options }: { readonly given: Words; readonly options: Values },
  scope: Scope,
): Promise<{ readonly given: Words; readonly options: Values }> => {
  if (isLocal) return { given, options };
  const words: Record<string, string | undefined> = { ...given };
  for (const name of takes.map((word) => word.replaceAll(/[[\]]/g, ""))) {
    const text = words[name];
    // oxlint-disable-next-line no-await-in-loop -- a build is looked for in the project that the word before it names
    if (text !== undefined) words[name] = await resolveId(text, name, { scope, before: words });
  }
  const ids = { ...words };
  const values: Record<string, Values[string]> = { ...options };
  for (const [name, { value: what }] of Object.entries(declared)) {
    const text = values[name];
    if (what === undefined || typeof text !== "string") continue;
    // oxlint-disable-next-line no-await-in-loop -- a turn is looked for in the session that the option before it names
    const id = await resolveId(text, what, { scope, before: ids });
    values[name] = id;
    ids[name] = id;
  }
  return { given: words, options: values };
};
