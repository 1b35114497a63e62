/** Pushed work as people see it who may not read secrets (src/http/steps/sessions/shown-work.ts). */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { expect } from "vitest";
import { Caller } from "../../../src/http/api/access.ts";
import { shownWork } from "../../../src/http/steps/sessions/shown-work.ts";
import { keyringLayer } from "../../../src/services/keyring.ts";
import { ModelPolicy } from "../../../src/services/projects/models.ts";
import type { ProjectRole } from "../../../src/domain/person/role.ts";
import type { Origin } from "../../../src/domain/person/privileges.ts";
import { OwnSubscriptions } from "../../../src/services/projects/own-subscriptions.ts";
import { admitSession } from "../../support/world/sessions.ts";
import { makeWorld, NUMBERED } from "../../support/world/world.ts";
import { memoryStore } from "../../twins/store/layer.ts";

const { projectId } = NUMBERED;
const GATEWAY_KEY = "key-of-the-gateway-1";
const SUBSCRIPTION = "content-of-a-subscription-1";
const WORK = { files: [{ path: "env.txt", text: `KEY=${GATEWAY_KEY}` }] };

interface Seeing {
  readonly sessionId?: string;
  readonly userId?: string;
  readonly origin?: Origin;
}

const seenBy = (
  role: ProjectRole,
  { sessionId, userId = "person", origin = "user" }: Seeing = {},
  work: typeof WORK = WORK,
) =>
  shownWork({ projectId, sessionId: sessionId ?? null }, work).pipe(
    Effect.provideService(Caller, {
      tokenId: "token",
      kind: "access",
      origin,
      accountId: "account",
      user: { id: userId, name: "Person" },
      accountRole: "member",
      projectId: null,
      sessionId: null,
      sandboxId: null,
      expiresAt: null,
      openedBy: null,
      reachEndsAt: null,
      reached: { path: { projectId, sessionId: null }, role, mergeRole: "owner", session: null },
    }),
    Effect.provide([
      keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] }),
      Layer.succeed(ModelPolicy, {
        required: false,
        gatewayTiers: [],
        defaults: {},
        gatewayKey: GATEWAY_KEY,
      }),
    ]),
  );

it.effect("shows the key of the model gateway to members alone [S13]", () =>
  Effect.gen(function* () {
    expect(yield* seenBy("member")).toEqual(WORK);
    const [file] = (yield* seenBy("viewer")).files;
    expect(file?.text).toMatch(/^KEY=/);
    expect(file?.text).not.toContain(GATEWAY_KEY);
  }).pipe(Effect.provide(memoryStore)),
);

it.effect("shows the content of an own subscription to its person alone, and to no agent of hers [K23]", () =>
  Effect.gen(function* () {
    const world = yield* makeWorld(5);
    const sessionId = yield* admitSession(world);
    const { userId } = world;
    const work = { files: [{ path: "env.txt", text: `KEY=${SUBSCRIPTION}` }] };
    const secrets = () => Effect.succeed([SUBSCRIPTION]);
    const seen = (by: Seeing) =>
      seenBy("member", { sessionId, ...by }, work).pipe(
        Effect.updateService(OwnSubscriptions, (port) => ({ ...port, secrets })),
        Effect.map(({ files }) => files[0]?.text.includes(SUBSCRIPTION)),
      );
    expect(yield* seen({ userId })).toBe(true);
    expect(yield* seen({ userId, origin: "session" })).toBe(false);
    expect(yield* seen({})).toBe(false);
  }).pipe(Effect.provide(memoryStore)),
);
