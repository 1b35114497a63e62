/** Duties of an agent runtime towards people: it asks, plans first, and hears their answers. */
import { expect } from "vitest";
import type { Step } from "../../support/servers/talking-model.ts";
import { POLL } from "../../support/service/sessions/live-session.ts";
import type { Json } from "../../support/service/process-service.ts";
import { asking, type RuntimeCase, since, type Talk, texts } from "./runtime-talk.ts";

const PLAN = "1. Touch planned.txt.";

/** Proposes a plan, which the agent carries out only after a person has approved it. */
const approved = async (talk: Talk, proposing: readonly Step[], more: Json = {}): Promise<void> => {
  const steps = [...proposing, { run: "touch planned.txt" }, { say: "It is carried out." }];
  const id = await talk.say(steps, more);
  await expect.poll(() => talk.requests(), POLL).toMatchObject([{ request: { kind: "plan" } }]);
  const [request = {}] = await talk.requests();
  expect(JSON.stringify(request)).toContain(PLAN);
  expect(texts(await talk.of(id))).not.toContain("It is carried out.");
  await talk.session.call("POST", `requests/${String(request["id"])}/answer`, { approve: true });
  const agent = async () => (await talk.items()).filter(({ role }) => role === "agent");
  await expect.poll(async () => texts(await agent()), POLL).toContain("It is carried out.");
  const touch = (await agent()).find(
    ({ kind, tool }) => kind === "tool" && JSON.stringify(tool).includes("touch"),
  );
  expect(touch?.status).toBe("completed");
};

export const PEOPLE_CASES: readonly RuntimeCase[] = [
  {
    name: "asks before a command, and runs it once it is permitted",
    ability: "permissions",
    run: async (conversation) => {
      const talk = await asking(conversation);
      const id = await talk.say([{ run: "touch asked.txt && echo done-42" }, { say: "Second." }]);
      expect(JSON.stringify(await talk.answer("once"))).toContain("touch asked.txt");
      const items = await talk.over(id);
      expect(JSON.stringify(items.find(({ kind }) => kind === "tool"))).toContain("done-42");
    },
  },
  {
    name: "does not ask again for a command that was always permitted",
    ability: "permissions",
    run: async (conversation) => {
      const talk = await asking(conversation);
      const steps = [{ run: "touch always.txt" }, { say: "Second." }];
      const id = await talk.say(steps);
      await talk.answer("always");
      await talk.over(id);
      expect(texts(await talk.turn(steps))).toContain("Second.");
    },
  },
  {
    name: "does not run a command that was rejected",
    ability: "permissions",
    run: async (conversation) => {
      const talk = await asking(conversation);
      const id = await talk.say([{ run: "touch never.txt && echo never-42" }, { say: "Second." }]);
      await talk.answer("reject");
      const tool = (await talk.over(id)).find(({ kind }) => kind === "tool")?.["tool"] as Json | undefined;
      expect(tool?.["output"] ?? "").not.toMatch(/^never-42/m);
      expect(texts(await talk.turn([{ say: "Back again." }]))).toContain("Back again.");
    },
  },
  {
    name: "hears why a command was rejected, and goes on",
    ability: "permissions",
    run: async (conversation) => {
      const talk = await asking(conversation);
      const id = await talk.say([{ run: "touch never.txt" }, { say: "Second." }]);
      const before = conversation.place.model.calls.length;
      await talk.answer("reject", "The word is heron.");
      const items = await talk.over(id);
      // One without a model says itself what it has heard.
      const heard = JSON.stringify(since(conversation.place, before));
      expect(`${heard} ${texts(items)}`).toContain("The word is heron.");
      expect(await talk.last()).toMatchObject({ state: "completed" });
      // It goes on with the turn: people have sent one message.
      expect((await talk.items()).filter(({ role }) => role === "user")).toHaveLength(1);
    },
  },
  {
    name: "goes on in a trigger's session if no person can permit a command",
    ability: "permissions",
    run: async ({ fire, place, subject }) => {
      const before = place.model.calls.length;
      const talk = await fire(`${subject.name}-asks`);
      const said = async () => texts((await talk.items()).filter(({ role }) => role === "agent"));
      await expect.poll(said, POLL).toContain("I go without it.");
      await expect.poll(() => talk.isIdle(), POLL).toBe(true);
      expect(await talk.requests()).toEqual([]);
      expect((await talk.items()).filter(({ kind }) => kind === "request")).toMatchObject([
        { answer: { declined: "unattended" } },
      ]);
      expect(
        since(place, before)
          .map(({ text }) => text)
          .join(),
      ).not.toContain("ran-42");
      expect(await talk.last()).toMatchObject({ state: "completed" });
    },
  },
  {
    name: "asks a question with choices, and hears the answer",
    ability: "questions",
    run: async ({ place, start, subject }) => {
      const talk = await start({ agent_name: `${subject.name}-allow` });
      const id = await talk.say([{ ask: ["Which colour?", ["Blue", "Green"]] }, { say: "Second." }]);
      const stands = async () =>
        (await talk.requests()).length > 0 || ((await talk.of(id)).length > 0 && (await talk.isIdle()));
      await expect.poll(stands, POLL).toBe(true);
      const [request = {}] = await talk.requests();
      expect(request).toMatchObject({
        request: { kind: "question", questions: [{ text: "Which colour?" }] },
      });
      const before = place.model.calls.length;
      await talk.session.call("POST", `requests/${String(request["id"])}/answer`, { answers: [["Green"]] });
      expect(texts(await talk.over(id))).toContain("Second.");
      expect(JSON.stringify(since(place, before))).toContain("Green");
    },
  },
  {
    name: "plans, and works once a person has approved the plan",
    ability: "plans",
    run: async ({ start, subject }) => {
      const talk = await start({ agent_name: `${subject.name}-plan` });
      await approved(talk, [{ say: PLAN }]);
    },
  },
  {
    name: "proposes its plan in its own way, even if all else is allowed",
    ability: "plans",
    run: async ({ start, subject }) => {
      const talk = await start({ agent_name: `${subject.name}-plan` });
      await approved(talk, [{ plan: PLAN }]);
    },
  },
  {
    name: "runs no command while it plans, unless a person permits it",
    ability: "plans",
    run: async ({ start, subject }) => {
      const talk = await start({ agent_name: `${subject.name}-plan` });
      const id = await talk.say([{ run: "touch sneaked.txt" }, { say: PLAN }]);
      const kinds = async () => (await talk.requests()).map(({ request }) => (request as Json)["kind"]);
      const stands = async () => (await kinds()).length > 0 || (await talk.isIdle());
      await expect.poll(async () => (await talk.of(id)).length > 0 && (await stands()), POLL).toBe(true);
      if ((await kinds()).includes("permission")) {
        await talk.answer("reject");
        await expect
          .poll(async () => (await kinds()).includes("plan") || (await talk.isIdle()), POLL)
          .toBe(true);
      }
      const done = (await talk.of(id)).filter(
        ({ kind, status }) => kind === "tool" && status === "completed",
      );
      expect(JSON.stringify(done)).not.toContain("touch");
      const changes = await talk.session.call("GET", "workspace/changes");
      expect(JSON.stringify(changes)).not.toContain("sneaked.txt");
    },
  },
  {
    name: "changes its mode in the middle",
    ability: "plans",
    run: async ({ start, subject }) => {
      const talk = await start({ agent_name: `${subject.name}-allow` });
      await talk.turn([{ say: "I work." }]);
      const { agents } = await talk.session.call("GET", "models");
      expect(agents).toContainEqual(expect.objectContaining({ name: "plan" }));
      await approved(talk, [{ say: PLAN }], { agent: "plan" });
      // After the approval it works again.
      await expect.poll(() => talk.isIdle(), POLL).toBe(true);
      const items = await talk.turn([{ run: "touch worked.txt" }, { say: "Second." }]);
      expect(items.find(({ kind }) => kind === "tool")?.status).toBe("completed");
    },
  },
];
