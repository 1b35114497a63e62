/**
 * The platform's own tools: for each, the request to the API that it stands for, and what its agent reads of the answer. A tool has
 * no additional power (own-api.ts O1).
 */
import * as Context from "effect/Context";
import { parseUuid } from "../../domain/ids.ts";
import type { Arguments } from "../../services/connectors/executor-decision.ts";
import type { OwnRequest } from "./own-api.ts";
import {
  conversationShape,
  firesShape,
  logShape,
  oneFireShape,
  oneSessionShape,
  sessionsShape,
  triggersShape,
  type Pages,
} from "./own-shapes.ts";

/** How many rows a page has. */
const ROWS = 20;

interface Field {
  readonly type: "string" | "integer" | "boolean";
  readonly description: string;
  /** A segment of a path: only an id. */
  readonly format?: "uuid";
}

export interface OwnTool {
  readonly name: string;
  readonly description: string;
  readonly fields: Readonly<Record<string, Field>>;
  readonly required: readonly string[];
  /** @param args arguments that `faultIn` accepts. */
  readonly request: (args: Arguments, sessionId: string) => OwnRequest;
  /** @param text the API's answer. */
  readonly shape: (text: string, pages: Pages) => object;
}

/** The answer of the API. Its own definition of the endpoint says that it has this type. */
export const json =
  <A>(shape: (answer: A, pages: Pages) => object) =>
  (text: string, pages: Pages): object =>
    shape(JSON.parse(text) as A, pages);

export const string = (description: string): Field => ({ type: "string", description });
export const CURSOR = string("next_cursor of the page before. Absent: the first page.");
const SESSION: Field = { ...string("The session's id. Absent: this session."), format: "uuid" };

/** An argument as a text. Absent: undefined. */
export const text = (args: Arguments, name: string): string | undefined =>
  args[name] === undefined ? undefined : String(args[name]);

/** The named session, or the caller's own. */
const sessionIn = (args: Arguments, own: string): string => text(args, "session_id") ?? own;

export const get = (path: readonly string[], query: OwnRequest["query"] = {}): OwnRequest => ({
  method: "GET",
  path,
  query,
});

export const toolPage = (args: Arguments) => ({ limit: ROWS, cursor: text(args, "cursor") });

export const SESSION_TOOLS: readonly OwnTool[] = [
  {
    name: "list_sessions",
    description: "Lists sessions of this project, newest first.",
    fields: {
      status: string("provisioning, running, stopped or failed."),
      children: { type: "boolean", description: "Only sessions that this session started." },
      cursor: CURSOR,
    },
    required: [],
    request: (args, own) =>
      get(["sessions"], {
        ...toolPage(args),
        status: text(args, "status"),
        parent_session_id: args["children"] === true ? own : undefined,
      }),
    shape: json(sessionsShape),
  },
  {
    name: "get_session",
    description: "Gives a session: its state, its turn, why it failed or stopped, its usage.",
    fields: { session_id: SESSION },
    required: [],
    request: (args, own) => get(["sessions", sessionIn(args, own)]),
    shape: json(oneSessionShape),
  },
  {
    name: "start_session",
    description:
      "Starts a session of this project: another agent in a sandbox and on a branch of its own. It goes on when this session stops. At most 5 live ones, to a depth of 2.",
    fields: {
      prompt: string("The first message to its agent. It does not know this conversation."),
      name: string("A name for people."),
      base_ref: string("The branch, tag or commit from which it starts. Absent: the default branch."),
      agent_name: string("One of the project's agents. Absent: default."),
    },
    required: ["prompt"],
    request: (args) => ({
      method: "POST",
      path: ["sessions"],
      body: {
        initial_prompt: args["prompt"],
        ...(args["name"] !== undefined && { name: args["name"] }),
        ...(args["base_ref"] !== undefined && { base_ref: args["base_ref"] }),
        ...(args["agent_name"] !== undefined && { agent_name: args["agent_name"] }),
      },
    }),
    shape: json(oneSessionShape),
  },
  {
    name: "read_conversation",
    description: "Gives the newest items of a session's conversation. The cursor leads to older ones.",
    fields: { session_id: SESSION, cursor: CURSOR },
    required: [],
    request: (args, own) =>
      get(["sessions", sessionIn(args, own), "conversation"], {
        limit: ROWS,
        before: text(args, "cursor"),
      }),
    shape: json(conversationShape),
  },
  {
    name: "read_logs",
    description: "Gives the end of a session's log: the output of its sandboxes.",
    fields: { session_id: SESSION },
    required: [],
    request: (args, own) => get(["sessions", sessionIn(args, own), "logs"], { follow: 0 }),
    shape: logShape,
  },
];

export const TRIGGER_TOOLS: readonly OwnTool[] = [
  {
    name: "list_triggers",
    description: "Lists triggers of this project: when they fire, and whether they do.",
    fields: {},
    required: [],
    request: () => get(["triggers"]),
    shape: json(triggersShape),
  },
  {
    name: "list_fires",
    description: "Lists fires of this project's triggers, newest first.",
    fields: {
      trigger: string("The slug of a trigger."),
      status: string("fired, queued, skipped, failed, duplicate, expired or cancelled."),
      cursor: CURSOR,
    },
    required: [],
    request: (args) =>
      get(["fires"], { ...toolPage(args), slug: text(args, "trigger"), status: text(args, "status") }),
    shape: json(firesShape),
  },
  {
    name: "get_fire",
    description: "Gives a fire: its outcome, its prompt, and the beginning of its request.",
    fields: { id: { ...string("The fire's id."), format: "uuid" } },
    required: ["id"],
    request: (args) => get(["fires", text(args, "id") ?? ""]),
    shape: json(oneFireShape),
  },
];

/** The tools of the core and of the features (src/assembly/api.ts). */
export class OwnTools extends Context.Service<OwnTools, readonly OwnTool[]>()("platform/http/OwnTools") {}

/** JSON Schema of a tool's arguments. */
export const argumentsSchema = ({ fields, required }: OwnTool) => ({
  type: "object" as const,
  properties: Object.fromEntries(
    Object.entries(fields).map(([name, { type, description }]) => [name, { type, description }]),
  ),
  required,
});

const fitsField = ({ type, format }: Field, value: unknown): boolean => {
  if (type === "integer") return Number.isSafeInteger(value);
  if (type === "boolean") return typeof value === "boolean";
  return typeof value === "string" && (format === undefined || parseUuid(value) !== null);
};

/** @returns null for arguments that the tool takes, otherwise what is wrong with them. */
export const faultIn = ({ name, fields, required }: OwnTool, args: Arguments): string | null => {
  const unknown = Object.keys(args).find((field) => !Object.hasOwn(fields, field));
  if (unknown !== undefined)
    return `${name} has no argument ${unknown.slice(0, 64)}. It takes: ${Object.keys(fields).join(", ") || "nothing"}.`;
  const absent = required.find((field) => args[field] === undefined);
  if (absent !== undefined) return `${name} needs ${absent}.`;
  const wrong = Object.entries(fields).find(
    ([field, kind]) => args[field] !== undefined && !fitsField(kind, args[field]),
  );
  if (wrong === undefined) return null;
  const [field, { type, format }] = wrong;
  return `${field} must be ${format === "uuid" ? "an id (a lower-case UUID)" : `of the type ${type}`}.`;
};
