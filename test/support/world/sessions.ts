/** Sessions, fires and sandboxes of a world, as the service makes and moves them. */
import { randomBytes, randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { uuidV7 } from "../../../src/domain/ids.ts";
import { sandbox, type SandboxEvent } from "../../../src/machines/sandbox.ts";
import { session, type SessionEvent } from "../../../src/machines/session.ts";
import {
  Admissions,
  type AdmissionRequest,
  type FireWish,
  type RequestWish,
  type SessionWish,
} from "../../../src/store/ports/triggers/admissions.ts";
import type { NewFire } from "../../../src/store/ports/triggers/fires.ts";
import { type NewSession, Sessions } from "../../../src/store/ports/sessions/sessions.ts";
import { Sandboxes } from "../../../src/store/ports/sessions/sandboxes.ts";
import { BOOT_MS, hash, NOON, PAST_BOOT, type World } from "./world.ts";

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
export const wish = (world: World, fields: Partial<NewSession> = {}): SessionWish => ({
  kind: "session",
  session: newSession(world, fields),
  fire: null,
  projectVersion: null,
  now: NOON,
});

/** A person's request, which waits at the cap. */
export const requested = (world: World, fields: Partial<NewSession> = {}): RequestWish => {
  const wished = newSession(world, fields);
  const { projectId } = wished;
  const fire = { projectId, kind: "session", triggerSlug: null, prompt: { is: "own" } } as const;
  return { kind: "request", session: wished, fire: newFire(world, fire), projectVersion: null, now: NOON };
};

/** Gives waiting fires up to so many sessions. */
export const drain = Effect.fnUntraced(function* (world: World, slots: number, now: number = NOON) {
  const { drain: give } = yield* Admissions;
  const sessionIds = Array.from({ length: slots }, () => randomUUID());
  return yield* give(world.accountId, { sessionIds, now, bootTimeoutMs: BOOT_MS });
});

/** A trigger's request, which waits at the cap. */
export const fired = (world: World, fields: Partial<NewFire> = {}, now: number = NOON): FireWish => {
  const fire = newFire(world, { receivedAt: now, ...fields });
  return {
    kind: fire.kind === "cron" ? "instant" : "delivery",
    session: newSession(world, {
      projectId: fire.projectId,
      triggerSlug: fire.triggerSlug,
      origin: fire.kind === "manual" ? "session" : "trigger",
    }),
    fire,
    projectVersion: null,
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

/** Opens a sandbox for a session that is provisioning or has ended. Returns its id and the hashes of its two tokens. */
export const openSandbox = Effect.fnUntraced(function* (
  sessionId: string,
  now: number = NOON,
  sandboxId: string = randomUUID(),
) {
  const sandboxes = yield* Sandboxes;
  const { snapshot, commands } = sandbox.start({});
  const opened = { id: sandboxId, serviceKeyHash: hash(), cliHash: hash() };
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
