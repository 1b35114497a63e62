/** What a real receiver gets of the end of a turn. */
import * as Effect from "effect/Effect";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Sessions } from "../../../src/store/ports/sessions/sessions.ts";
import {
  eventually,
  expectStatus,
  fields,
  makeProject,
  runSession,
  stopSession,
} from "../../support/service/requests.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import { answering, ReceiverServer } from "../../support/servers/receiver.ts";

let service: TestService;
let receiver: ReceiverServer;
let pid = "";
beforeAll(async () => {
  receiver = await ReceiverServer.open();
  receiver.behaviour = answering(204);
  service = await startTestService({
    PLATFORM_WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
    PLATFORM_PUBLIC_URL: "https://platform.example.org",
  });
  pid = await makeProject(service, { name: "greeter" });
});
afterAll(async () => {
  await service?.close();
  await receiver?.close();
});

describe("an outbound webhook", () => {
  it("hears once that the agent rests after a turn, and how that ended", async () => {
    const webhook = fields(
      expectStatus(
        await service.request("POST", `/v1/projects/${pid}/webhooks`, {
          body: { url: `${receiver.url}/turns`, events: ["session.turn_ended"] },
        }),
        201,
      ),
    );
    const sid = await runSession(service, pid, { name: "Fix the build" });
    await service.inside(
      Effect.gen(function* () {
        const sessions = yield* Sessions;
        const sandboxId = (yield* sessions.get(sid))?.sandboxId ?? "";
        const error = { code: "model_out_of_credit", message: "canary text of a provider" };
        const instant = "2026-11-20T06:52:05.618Z";
        const turn = {
          sandboxId,
          number: 1,
          state: "failed",
          error,
          at: instant,
          now: Date.parse(instant),
        } as const;
        yield* sessions.noteTurn(sid, turn);
        yield* sessions.noteTurn(sid, turn);
        const second = { ...turn, number: 2, state: "completed", error: null } as const;
        yield* sessions.noteTurn(sid, { ...second, conversation: { number: 2, message_id: sid } });
      }),
    );
    const received = await eventually(() => {
      expect(receiver.received.length).toBeGreaterThanOrEqual(2);
      return receiver.received;
    });
    const sent = received.map(({ body, headers }): unknown =>
      new Webhook(String(webhook["secret"])).verify(body, headers as Record<string, string>),
    );
    const about = {
      project_id: pid,
      session_id: sid,
      session_name: "Fix the build",
      change_request: null,
      url: `https://platform.example.org/#/projects/${pid}/sessions/${sid}`,
    };
    expect(sent).toHaveLength(2);
    expect(sent).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          type: "session.turn_ended",
          data: expect.objectContaining({
            ...about,
            turn: 1,
            turn_id: null,
            state: "failed",
            code: "model_out_of_credit",
          }) as unknown,
        }),
        expect.objectContaining({
          data: expect.objectContaining({
            ...about,
            turn: 2,
            turn_id: sid,
            state: "completed",
            code: null,
          }) as unknown,
        }),
      ]),
    );
    expect(JSON.stringify(sent)).not.toContain("canary");
    await stopSession(service, pid, sid);
  });
});
