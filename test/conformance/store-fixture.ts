/** A small world for the store's conformance suite: one account with one project, and functions to fill it. */
import { randomBytes, randomUUID } from "node:crypto";
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import type * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import { uuidV7 } from "../../src/domain/ids.ts";
import { session, type SessionEvent } from "../../src/machines/session.ts";
import { changeRequest, type ChangeRequestEvent } from "../../src/machines/change-request.ts";
import { sandbox, type SandboxEvent } from "../../src/machines/sandbox.ts";
import { Admissions, type AdmissionRequest } from "../../src/store/ports/admissions.ts";
import type { CloneCredentials } from "../../src/store/ports/clone-credentials.ts";
import { Events } from "../../src/store/ports/events.ts";
import type { Fires } from "../../src/store/ports/fires.ts";
import type { StoreHealth } from "../../src/store/ports/health.ts";
import { Identity } from "../../src/store/ports/identity.ts";
import { Projects } from "../../src/store/ports/projects.ts";
import { Sandboxes } from "../../src/store/ports/sandboxes.ts";
import { Sessions } from "../../src/store/ports/sessions.ts";
import { type Secrets } from "../../src/store/ports/secrets.ts";
import type { Counters } from "../../src/store/ports/counters.ts";
import { ChangeRequests } from "../../src/store/ports/change-requests.ts";
import type { Accounts } from "../../src/store/ports/accounts.ts";
import type { Nodes } from "../../src/store/ports/nodes.ts";
import type { Previews } from "../../src/store/ports/previews.ts";
import type { SessionLogs } from "../../src/store/ports/session-logs.ts";
import type { WebhookRefusals } from "../../src/store/ports/webhook-refusals.ts";
import type { NewFire, NewSession } from "../../src/store/ports/records.ts";

export type Store =
  | Accounts
  | Admissions
  | ChangeRequests
  | CloneCredentials
  | Counters
  | Events
  | Fires
  | Identity
  | Nodes
  | Previews
  | Projects
  | Sandboxes
  | Secrets
  | SessionLogs
  | Sessions
  | StoreHealth
  | WebhookRefusals;

export type StoreLayer = Layer.Layer<Store, unknown>;

/** Registers a test that runs on its own store. */
export type Check = <E>(name: string, test: Effect.Effect<void, E, Store>) => void;

export const checkWith =
  (layer: StoreLayer): Check =>
  (name, test) => {
    // A new layer each time, so that tests do not see each other's data.
    it.live(name, () => Effect.provide(test, layer, { local: true }));
  };

/** The instant at which every test begins. */
export const NOON = Date.UTC(2026, 10, 20, 12);
export const BOOT_MS = 120_000;
export const PAST_BOOT = NOON + BOOT_MS;

export interface World {
  readonly accountId: string;
  readonly userId: string;
  readonly projectId: string;
  readonly tokenHash: string;
}

export const hash = (): string => randomUUID().replaceAll("-", "").repeat(2);

/**
 * Follows the events of one type in a session.
 * @returns a function that reads the later ones, once at least `expected` of them can be read
 */
export const followSession = Effect.fnUntraced(function* (
  place: { readonly projectId: string; readonly sessionId: string },
  type: string,
) {
  const { after } = yield* Events;
  const read = (cursor: string | null) => after({ ...place, cursor, limit: 100 });
  const { cursor } = yield* read(null);
  return (expected: number) =>
    // A commit becomes visible when no older transaction runs on the server, including other tests'. So readers retry.
    read(cursor).pipe(
      Effect.map(({ events }) => events.filter((event) => event.type === type)),
      Effect.repeat({
        until: (events) => events.length >= expected,
        schedule: Schedule.spaced("10 millis"),
      }),
    );
});

export const addProject = Effect.fnUntraced(function* (
  { accountId, userId }: Pick<World, "accountId" | "userId">,
  now: number = NOON,
) {
  const id = randomUUID();
  const projects = yield* Projects;
  yield* projects.create({
    id,
    accountId,
    name: "shop",
    repository: { kind: "hosted" },
    defaultBranch: "main",
    createdBy: userId,
    now,
  });
  return id;
});

/** The account as the store shows it. */
export const accountOf = Effect.fnUntraced(function* (world: World) {
  return yield* (yield* Identity).account(world.accountId);
});

/** An account with this many slots, its user, its first token and one project. */
export const makeWorld = Effect.fnUntraced(function* (cap: number) {
  const identity = yield* Identity;
  const world = { accountId: randomUUID(), userId: randomUUID(), tokenHash: hash() };
  yield* identity.bootstrap({ ...world, tokenId: randomUUID(), tier: "free", cap, now: NOON });
  return { ...world, projectId: yield* addProject(world) } satisfies World;
});

export const newSession = (world: World, fields: Partial<NewSession> = {}): NewSession => ({
  id: randomUUID(),
  projectId: world.projectId,
  accountId: world.accountId,
  baseRef: "main",
  baseCommit: null,
  name: null,
  agentName: "default",
  agentModel: null,
  initialPrompt: "Say hello.",
  metadata: {},
  triggerSlug: null,
  createdBy: world.userId,
  origin: "session",
  bootDeadlineAt: PAST_BOOT,
  ...fields,
});

export const newFire = (world: World, fields: Partial<NewFire> = {}): NewFire => ({
  // In the service's form: they rise with time.
  id: uuidV7(fields.receivedAt ?? NOON, randomBytes(16)),
  accountId: world.accountId,
  projectId: world.projectId,
  triggerSlug: "on-push",
  kind: "webhook",
  scheduledFor: null,
  receivedAt: NOON,
  deliveryId: null,
  replayOf: null,
  prompt: { is: "rendered", text: "Look at the push." },
  request: null,
  queueTtlMs: 60_000,
  queueMax: 100,
  ...fields,
});

/** A person's request. */
export const wish = (world: World, fields: Partial<NewSession> = {}): AdmissionRequest => ({
  session: newSession(world, fields),
  fire: null,
  projectVersion: null,
  atCap: "refuse",
  now: NOON,
});

/** A trigger's request, which waits at the cap. */
export const fired = (world: World, fields: Partial<NewFire> = {}, now: number = NOON): AdmissionRequest => {
  const fire = newFire(world, { receivedAt: now, ...fields });
  return {
    session: newSession(world, {
      projectId: fire.projectId,
      triggerSlug: fire.triggerSlug,
      origin: fire.kind === "manual" ? "session" : "trigger",
    }),
    fire,
    projectVersion: null,
    atCap: "queue",
    now,
  };
};

/** A cron trigger's request for the instant `scheduledFor` (ms since the epoch). */
export const due = (world: World, scheduledFor: number, fields: Partial<NewFire> = {}) => {
  const template = {
    prompt: "at {{ cron.fired_at }} after {{ cron.last_fired_at }}",
    slug: "nightly",
    schedule: "0 0 2 * * *",
    timezone: "UTC",
    dueAtMs: scheduledFor,
  };
  const prompt = { is: "cron", template } as const;
  return fired(world, { kind: "cron", triggerSlug: "nightly", scheduledFor, prompt, ...fields });
};

export const admitOne = Effect.fnUntraced(function* (world: World, request: AdmissionRequest) {
  const admissions = yield* Admissions;
  const [answer] = yield* admissions.admit(world.accountId, [request]);
  if (answer === undefined) return yield* Effect.die("no answer");
  return answer;
});

/** Admits a session and returns its id. */
export const admitSession = Effect.fnUntraced(function* (world: World, fields: Partial<NewSession> = {}) {
  const answer = yield* admitOne(world, wish(world, fields));
  if (answer.outcome !== "admitted") return yield* Effect.die(`not admitted: ${answer.outcome}`);
  return answer.sessionId;
});

/** Steps a session's machine and saves, as its actor does. */
export const tellSession = Effect.fnUntraced(function* (id: string, event: SessionEvent, now: number = NOON) {
  const { memory } = yield* Sessions;
  const loaded = yield* memory.load(id);
  if (loaded === null) return yield* Effect.die("no such session");
  const { snapshot, commands } = session.step(loaded.snapshot, event);
  return yield* memory.save({
    id,
    version: loaded.version,
    event,
    before: loaded.snapshot,
    after: snapshot,
    commands,
    completes: null,
    now,
  });
});

export const tellSandbox = Effect.fnUntraced(function* (id: string, event: SandboxEvent, now: number = NOON) {
  const { memory } = yield* Sandboxes;
  const loaded = yield* memory.load(id);
  if (loaded === null) return yield* Effect.die("no such sandbox");
  const { snapshot, commands } = sandbox.step(loaded.snapshot, event);
  return yield* memory.save({
    id,
    version: loaded.version,
    event,
    before: loaded.snapshot,
    after: snapshot,
    commands,
    completes: null,
    now,
  });
});

/** Makes a session wait for this sandbox, and no other. */
const expectSandbox = Effect.fnUntraced(function* (id: string, sandboxId: string, now: number) {
  const { memory } = yield* Sessions;
  const snapshot = (yield* memory.load(id))?.snapshot;
  if (snapshot?.state === "provisioning" && !snapshot.context.branched)
    return yield* tellSession(id, { type: "branch.created", commit: "a".repeat(40), sandboxId }, now);
  if (snapshot?.state === "provisioning") yield* tellSession(id, { type: "stop.requested" }, now);
  return yield* tellSession(id, { type: "restart.requested", sandboxId }, now);
});

/** Steps a change request's machine and saves, as its actor does. Null: the machine refuses the event. */
export const tellRequest = Effect.fnUntraced(function* (
  id: string,
  event: ChangeRequestEvent,
  now: number = NOON,
) {
  const { memory } = yield* ChangeRequests;
  const loaded = yield* memory.load(id);
  if (loaded === null) return yield* Effect.die("no such change request");
  const { version, snapshot: before } = loaded;
  const { snapshot: after, commands, accepted } = changeRequest.step(before, event);
  if (!accepted) return null;
  return yield* memory.save({ id, version, event, before, after, commands, completes: null, now });
});

/** Opens a sandbox for a session that is provisioning or has ended. Returns its id and the hashes of its two tokens. */
export const openSandbox = Effect.fnUntraced(function* (sessionId: string, now: number = NOON) {
  const sandboxes = yield* Sandboxes;
  const { snapshot, commands } = sandbox.start({});
  const opened = { id: randomUUID(), serviceKeyHash: hash(), cliHash: hash() };
  yield* expectSandbox(sessionId, opened.id, now);
  yield* sandboxes.open({
    id: opened.id,
    sessionId,
    provider: "simulated",
    nodeId: "node-1",
    bootDeadlineAt: PAST_BOOT,
    snapshot,
    commands,
    serviceKeyHash: opened.serviceKeyHash,
    cliToken: { id: randomUUID(), hash: opened.cliHash },
    now,
  });
  return opened;
});
