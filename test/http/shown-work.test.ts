/** Pushed work as people see it who may not read secrets (src/http/steps/sessions/shown-work.ts). */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { expect } from "vitest";
import { Caller } from "../../src/http/api/access.ts";
import { shownWork } from "../../src/http/steps/sessions/shown-work.ts";
import { keyringLayer } from "../../src/services/keyring.ts";
import { ModelPolicy } from "../../src/services/projects/models.ts";
import type { ProjectRole } from "../../src/domain/person/role.ts";
import { NUMBERED } from "../support/world/world.ts";
import { memoryStore } from "../twins/store/layer.ts";

const { projectId } = NUMBERED;
const GATEWAY_KEY = "key-of-the-gateway-1";
const WORK = { files: [{ path: "env.txt", text: `KEY=${GATEWAY_KEY}` }] };

const seenBy = (role: ProjectRole) =>
  shownWork({ projectId, sessionId: null }, WORK).pipe(
    Effect.provideService(Caller, {
      tokenId: "token",
      kind: "access",
      origin: "user",
      accountId: "account",
      user: { id: "person", name: "Person" },
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
      memoryStore,
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
  }),
);
