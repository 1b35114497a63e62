import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { expect } from "vitest";
import { checkOut } from "../../../daemon/git/checkout.ts";
import { HttpFailure } from "../../../daemon/http/client.ts";
import { SANDBOX_LAYOUT, type Settings } from "../../../daemon/settings.ts";

const settings: Settings = {
  layout: SANDBOX_LAYOUT,
  launch: {
    prefix: [],
    agentCommand: ["agent"],
    adapter: "plain",
    agentEnv: {},
    commonEnv: {},
    bootDeadlineMs: 60_000,
  },
  token: "token",
  projectId: "p",
  sessionId: "s",
  branch: "s",
  defaultBranch: "main",
  repoUrl: "http://platform.internal/v1/git/p.git",
  apiUrl: "http://platform.internal/v1",
  servicePort: 8000,
  autoClone: true,
  agentName: "default",
  agentModel: null,
  initialPrompt: null,
  injected: {},
};

it.effect("repeats a failed checkout after 0.25 s, then doubles the wait up to 5 s", () =>
  Effect.gen(function* () {
    const messages: string[] = [];
    yield* Effect.forkChild(
      checkOut({
        settings,
        prepared: null,
        fetchCredential: Effect.fail(new HttpFailure({ status: 503, message: "away" })),
        onCredential: () => undefined,
        onFailure: ({ message }) => messages.push(message),
      }),
    );
    const counts: number[] = [];
    for (const waitMs of [0, 249, 1, 500, 1000, 2000, 4000, 4999, 1, 5000, 5000]) {
      yield* TestClock.adjust(waitMs);
      counts.push(messages.length);
    }
    expect(counts).toEqual([1, 1, 2, 3, 4, 5, 6, 6, 7, 8, 9]);
    expect(messages[0]).toBe("no clone credential: away");
  }),
);
