/** What opencode's models can, and how hard one thinks about a message (daemon/adapters/opencode/steering.ts), over a server that answers as opencode does. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { OpencodeApi } from "../../../daemon/adapters/opencode/api.ts";
import { OpencodeConversation } from "../../../daemon/adapters/opencode/conversation.ts";
import { OpencodeSteering } from "../../../daemon/adapters/opencode/steering.ts";
import { PassedCalls } from "../../../daemon/agent/passed-calls.ts";
import { OWN_EFFORT } from "../../../src/domain/sandbox/agent.ts";

interface Sent {
  readonly messageID: string;
  readonly variant?: string;
}

let sent: Sent[] = [];
/** The choice of the newest message of a person. Null: it is the first one. */
let former: string | null = null;

const listing = () => [
  ...(former === null
    ? []
    : [
        {
          info: {
            id: "msg_0",
            role: "user",
            model: { providerID: "p", modelID: "m", variant: former },
          },
        },
      ]),
  ...sent.flatMap(({ messageID: id }) => [
    { info: { id, role: "user" } },
    { info: { id: `${id}a`, role: "assistant", parentID: id } },
  ]),
];
const ANSWERS: Readonly<Record<string, () => unknown>> = {
  "/session": () => [{ id: "ses_1", title: "s" }],
  "/session/status": () => ({}),
  "/session/ses_1/message": listing,
  "/agent": () => [],
  "/config": () => ({ model: "p/m" }),
  "/config/providers": () => ({
    providers: [
      {
        id: "p",
        models: {
          m: {
            name: "M",
            variants: { low: {}, high: {} },
            limit: { context: 200_000 },
            capabilities: { toolcall: true, output: { text: true, image: false } },
          },
          picture: { limit: { context: 0 }, capabilities: { toolcall: false, output: { text: false } } },
          bare: {},
        },
      },
    ],
  }),
  "/command": () => [],
};

const server: Server = createServer((request, response) => {
  const path = new URL(request.url ?? "", "http://opencode").pathname;
  if (request.method === "POST")
    void json(request).then((body) => {
      sent.push(body as Sent);
      response.end("{}");
    });
  else response.setHeader("content-type", "application/json").end(JSON.stringify(ANSWERS[path]?.()));
});
let base = "";
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());
beforeEach(() => {
  sent = [];
  former = null;
});

const steer = () =>
  new OpencodeSteering({
    api: new OpencodeApi(base),
    conversation: new OpencodeConversation(new PassedCalls()),
    followed: Latch.makeUnsafe(true),
  });

/** @returns what became of a message, and the efforts with which it went out */
const hand = async (effort?: string, own?: string) => {
  const steering = steer();
  const session = {
    sessionId: "s",
    agentName: "default",
    model: null,
    ...(own !== undefined && { effort: own }),
  };
  const message = { id: "a", sent_at: 1, text: "x", model: null, agent: null };
  const given = effort === undefined ? message : { ...message, effort };
  const { outcome } = await Effect.runPromise(steering.hand(session, given, []));
  return [outcome, sent.map(({ variant = null }) => variant)];
};

test("a message that names no effort goes with that of the message before, and the first one with the session's", async () => {
  expect(await hand(undefined, "low")).toEqual(["accepted", ["low"]]);
  sent = [];
  former = "high";
  expect(await hand(undefined, "low")).toEqual(["accepted", ["high"]]);
});

test("a message goes with the effort that it names, or with the model's own", async () => {
  expect(await hand("high")).toEqual(["accepted", ["high"]]);
  sent = [];
  former = "high";
  expect(await hand("low")).toEqual(["accepted", ["low"]]);
  sent = [];
  expect(await hand(OWN_EFFORT)).toEqual(["accepted", [null]]);
});

test("an effort that the model does not take is refused if a message names it, and else left out", async () => {
  expect(await hand("deep")).toEqual(["refused", []]);
  former = "deep";
  expect(await hand()).toEqual(["accepted", [null]]);
});

test("each model is offered with its context, and whether it calls tools and writes text, as far as opencode knows", async () => {
  const wanted = { sessionId: "s", agentName: "default", model: null };
  const { models } = await Effect.runPromise(steer().offers(wanted));
  expect(models).toEqual([
    {
      id: "p/m",
      name: "M",
      efforts: [OWN_EFFORT, "low", "high"],
      context: 200_000,
      calls_tools: true,
      writes_text: true,
    },
    { id: "p/picture", name: "picture", calls_tools: false, writes_text: false },
    { id: "p/bare", name: "bare" },
  ]);
});
