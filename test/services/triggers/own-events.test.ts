/** Which deliveries are the service's own acts, by the project's rows. */
import { randomUUID } from "node:crypto";
import { expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { RequestClue } from "../../../src/domain/trigger/event-skip.ts";
import { confirmedSkip } from "../../../src/services/triggers/own-events.ts";
import { proposedWorkLayer } from "../../../src/features/change-requests/proposed-work.ts";
import { ChangeRequests } from "../../../src/features/change-requests/ports/change-requests.ts";
import { admitSession } from "../../support/world/sessions.ts";
import { addProject, makeWorld, NOON } from "../../support/world/world.ts";
import { memoryStore } from "../../twins/store/layer.ts";

const URL = "https://host.example/octo/hello/pull/7";
const NO_CLUE: RequestClue = { sessionId: null, changeRequestId: null, number: null, url: null };

it.effect("a pull request is the service's by its session, its mark, or its number and address", () =>
  Effect.gen(function* () {
    const world = yield* makeWorld(3);
    const { projectId } = world;
    const other = yield* addProject(world);
    const sessionId = yield* admitSession(world);
    const { open, recordPull } = yield* ChangeRequests;
    const { id } = yield* open({
      id: randomUUID(),
      projectId,
      sessionId: null,
      headRef: "topic",
      baseRef: "main",
      title: "It",
      description: "",
      createdBy: world.userId,
      tips: { base: null, head: null },
      now: NOON,
    });
    yield* recordPull(projectId, 1, { status: "open", number: 7, url: URL });
    const skip = (clue: Partial<RequestClue>, project = projectId) =>
      confirmedSkip(project, [{ reason: "own_request", request: { ...NO_CLUE, ...clue } }]);
    // Another project may have the same repository.
    expect([yield* skip({ sessionId }), yield* skip({ sessionId }, other)]).toEqual([
      "own_request",
      "own_request",
    ]);
    for (const clue of [
      { changeRequestId: id },
      { number: 7, url: URL.replace("octo", "Octo") },
      { number: 7 },
    ]) {
      expect(yield* skip(clue)).toBe("own_request");
      expect(yield* skip(clue, other)).toBe(null);
    }
    for (const clue of [
      {},
      { sessionId: randomUUID() },
      { changeRequestId: randomUUID() },
      { number: 8, url: URL },
      { number: 7, url: "https://host.example/octo/another/pull/7" },
    ])
      expect(yield* skip(clue)).toBe(null);
    expect(yield* confirmedSkip(other, [{ reason: "own_push", sessionIds: [sessionId] }])).toBe("own_push");
    const both = yield* confirmedSkip(projectId, [
      { reason: "own_push", sessionIds: [sessionId, randomUUID()] },
      { reason: "deletion" },
    ]);
    expect(both).toBe("deletion");
  }).pipe(Effect.provide(Layer.provideMerge(proposedWorkLayer, memoryStore))),
);
