/** The fake's people: their roles in the account and in its project, and invitations. */
import { sampleAudit } from "./fake-audit.ts";
import { randomUUID } from "node:crypto";
import { SET_LIMIT, SPEND } from "../samples/sample-spend.ts";
import { NEW_TOKEN } from "./fake-settings.ts";

type Json = Readonly<Record<string, unknown>>;

export interface FakePeople {
  people: Json[];
  modelProviders: Json[];
  subscriptions: Json;
  notices: Record<"mail" | "chat", Json>;
  /** What the account spent, and its limits. */
  spend: Json;
  audit: Json[];
  invitations: Json[];
  /** Of every project. */
  members: Json[];
  /** Where people can sign in. */
  providers: Json[];
  /** The reader's signed-in browsers. */
  browsers: Json[];
  /** What providers call the reader. */
  identities: Json[];
  /** What the link of every invitation grants. Null: it is used. */
  invitation: Json | null;
}

type Answer = Json | null | undefined;

/** The link of every new invitation. */
export const INVITATION_CODE = "c2VjcmV0LW9mLXRoZS1saW5r";
export const INVITATION_LINK = `https://platform.example/#/join/${INVITATION_CODE}`;

const change = (world: FakePeople, id: string | undefined, rest: Json): Answer => {
  world.people = world.people.map((one) => (one["id"] === id ? { ...one, ...rest } : one));
  return world.people.find((one) => one["id"] === id);
};

const invite = (world: FakePeople, body: Json): Answer => {
  const made = {
    id: randomUUID(),
    created_by: world.people[0]?.["id"],
    created_at: world.people[0]?.["created_at"],
    // eslint-disable-next-line no-restricted-properties -- the browser's clock is the real one
    expires_at: new Date(Date.now() + 7 * 86_400_000).toISOString(),
    ...body,
  };
  world.invitations = [made, ...world.invitations];
  return { ...made, url: INVITATION_LINK };
};

const grant = (world: FakePeople, id: string, role: unknown): Answer => {
  const user = world.people.find((one) => one["id"] === id);
  const others = world.members.filter((one) => Object(one["user"]).id !== id);
  world.members = role === null ? others : [...others, { user, role, own_role: role }];
  return null;
};

/** The code of the only program that waits. */
export const DEVICE_CODE = "BCDF-GHJK";

/** Undefined: no program waits with this code. */
const deviceAnswer = (step: string | undefined, { code }: Json): Answer => {
  if (code !== DEVICE_CODE) return undefined;
  if (step === "deny") return null;
  // eslint-disable-next-line no-restricted-properties -- the browser's clock is the real one
  const now = Date.now();
  return {
    client: "Command line on a-laptop-with-a-rather-long-name.example.com",
    address: "192.0.2.7",
    user_agent: "platform/0.1.0",
    created_at: new Date(now).toISOString(),
    expires_at: new Date(now + 600_000).toISOString(),
  };
};

/** @returns undefined also if the request is about something else */
/** What each provider lists: more than the service takes. */
const LISTED = Array.from({ length: 203 }, (_, at) => `listed-${at}`);
const TAKEN = 200;

const providersAnswer = (
  world: FakePeople,
  { method, id, body }: { readonly method: string; readonly id: string | undefined; readonly body: Json },
): Answer => {
  if (method === "GET") return { model_providers: world.modelProviders };
  if (method === "DELETE") {
    world.modelProviders = world.modelProviders.filter((one) => one["id"] !== id);
    return null;
  }
  const { try: tries, key = "", models, ...given } = body;
  const isListed = Array.isArray(models) && models.length === 0;
  const former = world.modelProviders.find((one) => one["id"] === id) ?? {
    id: "mp-new",
    owner: "account",
    refusal: null,
    prices: {},
    unpriced: [],
    base_url: "https://api.anthropic.com",
    has_key: key !== "",
    created_at: world.people[0]?.["created_at"],
  };
  const tried_at = tries === false ? null : world.people[0]?.["created_at"];
  const shown = isListed ? LISTED.slice(0, TAKEN) : models;
  const saved = { ...former, ...given, models: shown, tried_at, updated_at: tried_at };
  world.modelProviders = [...world.modelProviders.filter((one) => one["id"] !== id), saved];
  return { ...saved, ...(isListed && { models_left_out: LISTED.length - TAKEN }) };
};

const SUBSCRIPTIONS: Json = {
  subscriptions: [
    {
      runtime: "codex",
      title: "ChatGPT subscription",
      saved_at: "2026-01-01T08:00:00.000Z",
      renewed_at: "2026-01-02T08:00:00.000Z",
      used_at: null,
    },
  ],
  possible: [
    { runtime: "claude-code", title: "Claude subscription", how: "claude setup-token", file: null },
    {
      runtime: "codex",
      title: "ChatGPT subscription",
      how: "codex login --device-auth",
      file: ".codex/auth.json",
    },
  ],
};

const NO_NOTICES = {
  status: "off",
  tells: [],
  disabled_reason: null,
  failing_since: null,
  last_delivery: null,
};
const NOTICES: Record<"mail" | "chat", Json> = {
  mail: { ...NO_NOTICES, address: "mona@example.com", unavailable: null },
  chat: { ...NO_NOTICES, format: null, url: null },
};

/** @param route of her own notices */
const noticesAnswer = (world: FakePeople, route: string, body: Json): Answer => {
  const [, place = ""] = /notices\/(mail|chat)/.exec(route) ?? [];
  if (route.startsWith("POST"))
    return place === "mail"
      ? { delivered: true, status: 250, error: null, answer: "250 2.0.0 Ok", took_ms: 84 }
      : { delivered: false, status: 404, error: null, answer: "no_service", took_ms: 84 };
  if (route.startsWith("DELETE")) {
    world.notices = { ...world.notices, [place]: NOTICES[place as "mail"] };
    return null;
  }
  if (route.startsWith("PUT")) {
    const shown = "url" in body ? { url: "https://hooks.slack.com/…XXXX" } : {};
    const former = world.notices[place as "mail"];
    world.notices = { ...world.notices, [place]: { ...former, ...body, ...shown, status: "enabled" } };
  }
  return world.notices;
};

export const peopleAnswer = (world: FakePeople, route: string, text: string): Answer => {
  const body = text.startsWith("{") ? (JSON.parse(text) as Json) : {};
  const [method = "", target = ""] = route.split(" ");
  const [, , collection, id, part, member = ""] = target.split("/");
  if (collection === "projects" && part === "members") {
    if (method === "GET") return { members: world.members };
    return grant(world, member, method === "PUT" ? body["role"] : null);
  }
  if (route.startsWith("GET /v1/me/browsers")) return { browsers: world.browsers, next_cursor: null };
  if (route.startsWith("GET /v1/me/identities")) return { identities: world.identities };
  if (route.startsWith("DELETE /v1/me/identities")) {
    world.identities = world.identities.filter((one) => one["id"] !== part);
    return null;
  }
  if (route.startsWith("DELETE /v1/me/browsers")) {
    world.browsers = world.browsers.filter((one) => part !== undefined && one["id"] !== part);
    return null;
  }
  if (route === "GET /v1/spend") return world.spend;
  if (route === "PUT /v1/spend-limits") return SET_LIMIT;
  if (target === "/v1/me/model-providers" && method === "GET") return { model_providers: [] };
  if (target === "/v1/me/subscriptions" && method === "GET") return world.subscriptions;
  if (target.startsWith("/v1/me/notices")) return noticesAnswer(world, route, body);
  if (part === "subscriptions" || id === "subscriptions") return null;
  if (collection === "model-providers") return providersAnswer(world, { method, id, body });
  if (collection === "device-logins") return deviceAnswer(id, body);
  if (collection === "audit" || part === "audit") return { events: world.audit, next_cursor: null };
  if (route === "PATCH /v1/account") return null;
  if (collection === "people") {
    if (method === "GET") return { people: world.people, next_cursor: null };
    if (method === "PATCH") return change(world, id, body);
    return change(world, id, {
      deactivated_at: part === "deactivate" ? world.people[0]?.["created_at"] : null,
    });
  }
  if (collection !== "invitations") return undefined;
  if (method === "GET") return { invitations: world.invitations, next_cursor: null };
  if (method === "POST") return invite(world, body);
  world.invitations = world.invitations.filter((one) => one["id"] !== id);
  return null;
};

const USED = {
  error: "This invitation is used, revoked or expired. Ask the person who sent it for another one.",
  code: "invitation_invalid",
};

/** What the link grants, or its acceptance. Every code but one is used. @returns joins: who is signed in then */
export const openInvitation = (
  world: FakePeople,
  route: string,
  body: string,
): { readonly status: number; readonly joins?: string; readonly answer: Json } => {
  const { code, name = "" } = JSON.parse(body) as { code: string; name?: string };
  const { invitation } = world;
  if (code !== INVITATION_CODE || invitation === null) return { status: 404, answer: USED };
  if (route.endsWith("/look")) return { status: 200, answer: invitation };
  world.invitation = null;
  return { status: 201, joins: name, answer: { user: { id: name, name }, token: NEW_TOKEN } };
};

const browser = (id: string, user_agent: string, last_used_at: string, current: boolean): Json => ({
  id,
  signed_in_by: current ? "token" : "github",
  address: current ? "192.0.2.7" : "2001:db8::7",
  user_agent,
  last_used_at,
  current,
});

const identity = (id: string, given: Json, last_sign_in_at: string | null): Json => ({
  ...given,
  id,
  issuer: given["provider"] === "github" ? "https://github.com" : "https://sso.example.com",
  created_at: "2026-01-02T03:04:05.000Z",
  last_sign_in_at,
});

/** @param now ms since the epoch that the instants stand around */
export const samplePeople = (now: number, projectId: string): FakePeople => {
  const at = (days: number) => new Date(now - days * 86_400_000).toISOString();
  const person = (id: string, name: string, role: string, left: string | null = null) => ({
    id,
    name,
    role,
    created_at: at(30),
    deactivated_at: left,
  });
  const [mona, otto, vera] = [
    person("u", "Mona", "owner"),
    person("u-otto", "Otto von Langenfeld-Hohenschwangau", "member"),
    person("u-vera", "Vera", "member"),
  ];
  return {
    providers: [],
    identities: [
      identity("i-1", { provider: "oidc", subject: "00u7x2k9qBvT", name: "Mona Lisa" }, at(0.2)),
      identity("i-2", { provider: "github", subject: "583231", name: "mona" }, null),
    ],
    browsers: [
      browser("b-1", "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0", at(0), true),
      browser(
        "b-2",
        "Mozilla/5.0 (iPhone) AppleWebKit/605.1.15 Version/26.0 Mobile Safari/604.1",
        at(0.1),
        false,
      ),
    ],
    audit: sampleAudit(now, projectId),
    people: [mona, otto, vera, person("u-karl", "Karl", "member", at(2))],
    spend: SPEND,
    subscriptions: SUBSCRIPTIONS,
    notices: NOTICES,
    modelProviders: [
      {
        id: "mp-1",
        owner: "account",
        refusal: {
          at: at(0),
          message: "api.anthropic.com refuses calls (400). It says: Your credit balance is too low.",
        },
        name: "anthropic",
        kind: "anthropic",
        base_url: "https://api.anthropic.com",
        has_key: true,
        models: ["claude-sonnet-4-6", "claude-opus-4-6", "claude-haiku-4-5"],
        prices: { "claude-opus-4-6": { input: 5, cached: 0.5, output: 25 } },
        unpriced: [],
        tried_at: at(1),
        created_at: at(2),
        updated_at: at(1),
      },
      {
        id: "mp-2",
        owner: "account",
        refusal: null,
        name: "local",
        kind: "openai-compatible",
        base_url: "http://gpu.internal:11434/v1",
        has_key: false,
        models: ["qwen3-coder:30b"],
        prices: {},
        unpriced: ["qwen3-coder:30b"],
        tried_at: null,
        created_at: at(1),
        updated_at: at(1),
      },
    ],
    invitations: [
      {
        id: "i",
        name: "Mia",
        role: "member",
        projects: [{ project_id: projectId, role: "viewer" }],
        created_by: "u",
        created_at: at(1),
        expires_at: at(-6),
      },
    ],
    members: [
      { user: mona, role: "owner", own_role: null },
      { user: otto, role: "member", own_role: null },
      { user: vera, role: "viewer", own_role: "viewer" },
    ],
    invitation: {
      name: "Mia",
      role: "member",
      account: "Acme",
      invited_by: "Mona",
      projects: [{ name: "greeter", role: "viewer" }],
      expires_at: at(-6),
    },
  };
};
