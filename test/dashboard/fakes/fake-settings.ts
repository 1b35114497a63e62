/** The fake's account, its access tokens, and what a project is set up with: secrets, repository, model, pushed work. */
import { randomUUID } from "node:crypto";
import { type FakeSaves, savesAnswer } from "./fake-saves.ts";
import { samplePaths } from "../samples/sample-workspace.ts";

type Json = Readonly<Record<string, unknown>>;

/** What a person can set. */
export interface FakeSettings extends FakeSaves {
  projects: Json[];
  /** Newest first. */
  tokens: Json[];
  /** What a project still needs before its first session. Null: its repository cannot be read. */
  setup: Json | null;
  /** Whether the own credentials of every session's person work. */
  ownCredentials: Json;
  /** Names of secrets that have a value. */
  secrets: string[];
  /** Those that are too short to be masked in logs. */
  shortSecrets: string[];
  /** What each project offers to a new session. Null: its repository cannot be read. */
  options: Json | null;
  /** Names that the manifest declares. */
  declared: { readonly required: readonly string[]; readonly optional: readonly string[] };
  /** What a rotated secret answers. */
  previousValidUntil: string | null;
  /** What each check of a repository finds. */
  check: Json;
  /** The pushed work of every session. Null: the repository cannot be read. */
  work: { readonly changes: Json; readonly diff: string } | null;
}

/** JSON, text, null for an answer without a body, undefined for a missing object. */
type Answer = Json | string | null | undefined;

/** The new token of every answer that has one. */
export const NEW_TOKEN = "platform_pat_shown_once";

const PROJECT = /^(?<method>\w+) \/v1\/projects\/(?<id>[^/]+)(?<rest>.*)$/;

const changeProject = (world: FakeSettings, id: string, change: Json): Answer => {
  world.projects = world.projects.map((one) => (one["id"] === id ? { ...one, ...change } : one));
  return world.projects.find((one) => one["id"] === id);
};

const makeProject = (world: FakeSettings, body: Json): Answer => {
  const made = { ...world.projects[0], ...body, id: randomUUID() };
  world.projects = [made, ...world.projects];
  return made;
};

const tokensOf = (world: FakeSettings, method: string, id: string | undefined, body: Json): Answer => {
  if (method === "GET") return { tokens: world.tokens, next_cursor: null };
  if (method === "DELETE") {
    world.tokens = world.tokens.filter((token) => token["id"] !== id);
    return null;
  }
  const made = {
    id: randomUUID(),
    origin: "user",
    user_id: "u",
    project_id: null,
    expires_at: null,
    last_used_at: null,
    ...body,
  };
  world.tokens = [made, ...world.tokens];
  return { ...made, token: NEW_TOKEN };
};

const PROVIDERS: Readonly<Record<string, string>> = {
  ANTHROPIC_API_KEY: "anthropic",
  OPENAI_API_KEY: "openai",
};

const secretsOf = (world: FakeSettings, at: unknown): Json => {
  const { required, optional } = world.declared;
  return {
    secrets: world.secrets.map((name) => ({
      name,
      masked: !world.shortSecrets.includes(name),
      service: false,
      unseen: [],
      updated_at: at,
      previous_valid_until: name === world.secrets[0] ? world.previousValidUntil : null,
      provider: PROVIDERS[name] ?? null,
    })),
    declared: { required, optional, missing: required.filter((name) => !world.secrets.includes(name)) },
  };
};

const changeSecret = (world: FakeSettings, method: string, name: string): Answer => {
  if (method === "DELETE") {
    world.secrets = world.secrets.filter((one) => one !== name);
    return null;
  }
  if (!world.secrets.includes(name)) world.secrets = [...world.secrets, name];
  return { previous_valid_until: world.previousValidUntil };
};

const OWN_PROVIDERS = [
  {
    id: "mp-3",
    owner: "project",
    name: "acme",
    kind: "openai",
    base_url: "https://models.acme.example/v1",
    has_key: true,
    models: ["large-2"],
    prices: {},
    unpriced: ["large-2"],
    tried_at: "2026-11-20T09:30:00.000Z",
    refusal: null,
    created_at: "2026-11-20T09:30:00.000Z",
    updated_at: "2026-11-20T09:30:00.000Z",
  },
];

/** A project after its deletion. */
export const DELETED = { status: "deleted", deletes_at: "2026-12-06T09:30:00.000Z" } as const;

const inProject = (world: FakeSettings, groups: Readonly<Record<string, string>>, body: Json): Answer => {
  const { method = "", id = "", rest = "" } = groups;
  const [, group, name = "", part] = rest.split("/");
  if (part === "own-credentials" && method === "GET") return world.ownCredentials;
  if (rest === "" && method === "PATCH") return changeProject(world, id, body);
  if (rest === "" && method === "DELETE") return changeProject(world, id, DELETED);
  if (rest === "/restore") return changeProject(world, id, { status: "active", deletes_at: null });
  if (rest === "/setup") return world.setup;
  if (rest === "/session-options") return world.options ?? undefined;
  if (rest === "/paths") return samplePaths;
  if (rest === "/model-providers") return { model_providers: OWN_PROVIDERS };
  if (rest === "/spend") return { month: "2026-11", spent: { usd: 0, tokens: 0 }, limits: [] };
  if (rest === "/secrets") return secretsOf(world, world.projects[0]?.["created_at"]);
  if (group === "secrets" && part === "try")
    return {
      provider: "openai",
      outcome: "accepted",
      message: "api.openai.com accepts the key.",
      advice: null,
    };
  if (group === "secrets") return changeSecret(world, method, decodeURIComponent(name));
  if (rest === "/repository/check") return world.check;
  if (rest === "/repository/credential") return world.projects.find((one) => one["id"] === id);
  const saves = savesAnswer(world, method, rest);
  if (saves !== undefined) return saves;
  if (group === "sessions" && part === "changes") return world.work?.changes;
  return group === "sessions" && part === "diff" ? world.work?.diff : undefined;
};

/** @returns undefined also if the request is about something else */
export const settingsAnswer = (world: FakeSettings, route: string, text: string): Answer => {
  const body = text.startsWith("{") ? (JSON.parse(text) as Json) : {};
  const [method = "", target = ""] = route.split(" ");
  const [, , collection, id] = target.split("/");
  if (collection === "tokens") return tokensOf(world, method, id, body);
  if (route === "POST /v1/projects") return makeProject(world, body);
  if (route === "POST /v1/repository-checks") return world.check;
  const groups = PROJECT.exec(route)?.groups;
  return groups !== undefined && world.projects.some((one) => one["id"] === groups["id"])
    ? inProject(world, groups, body)
    : undefined;
};
