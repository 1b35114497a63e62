import { expect, it } from "vitest";
import { answerFor } from "../../../src/http/webhooks/webhook-answers.ts";
import type { Fire } from "../../../src/store/ports/triggers/fires.ts";

const fire: Fire = {
  id: "f1",
  projectId: "p1",
  triggerSlug: "push",
  kind: "webhook",
  status: "fired",
  reason: null,
  scheduledFor: null,
  receivedAt: 0,
  deliveryId: "d1",
  sessionId: "s1",
  attempts: 1,
  replayOf: null,
  duplicateOf: null,
  verifiedWith: "current",
};

it.each([
  ["ran", fire, "This delivery has its run. To run it again:"],
  [
    "waits",
    { ...fire, status: "queued", sessionId: null },
    "This delivery waits for a free session. To run it again once it has started:",
  ],
  [
    "was filtered",
    { ...fire, status: "skipped", reason: "filtered", sessionId: null },
    "This delivery was skipped. To run it all the same:",
  ],
] as const)("a repeated delivery that %s hears that", (_, first, words) => {
  const answer = answerFor({ outcome: "duplicate", fire: first });
  expect(answer).toMatchObject({ body: { replay: `${words} platform triggers replay f1` } });
});
