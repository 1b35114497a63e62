/** Parts of the conformance suite of agent runtimes: choices, permissions, tools, attachments and limits. */
import { createHash, randomUUID } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ATTACHMENT_MAX, type AttachmentHead } from "../../../src/domain/conversation/attachment.ts";
import { callOf } from "../../daemon/support/held-model.ts";
import { POLL, type Steered } from "../../daemon/support/steered.ts";

/** One pixel. */
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const refused = (code: string, message: unknown) => [200, { outcome: "refused", error: { code, message } }];
const answered = (is: boolean) => [200, { answered: is }];

/** The suite's running daemon. */
export type Of = () => Steered;

/** Models and agents that a message names. */
export const choices = (of: Of): void => {
  test("keeps the model and the agent of the message before", async () => {
    const steered = of();
    await steered.ended(await steered.deliver("c1", "first choice", { agent: "second", model: "held/two" }));
    await steered.ended(await steered.deliver("c2", "same choice"));
    const calls = steered.model.calls.filter(({ text }) => text.includes("choice"));
    expect(calls.map(({ model }) => model)).toEqual(["two", "two"]);
    for (const { system } of calls) expect(system).toContain("You are the second.");
    expect(steered.answersTo("c2")).toMatchObject([{ model: "held/two" }]);
  });

  test("refuses an agent or a model that it does not have, and says which there are", async () => {
    const steered = of();
    const before = steered.follower.ended;
    expect(await steered.send("c3", "x", { agent: "nonesuch" })).toEqual(
      refused(
        "unknown_agent",
        'There is no agent "nonesuch" in this session. Choose one of: build, plan, second.',
      ),
    );
    expect(await steered.send("c4", "x", { model: "held/nonesuch" })).toEqual(
      refused("unknown_model", expect.stringContaining('There is no model "held/nonesuch"')),
    );
    await steered.ended(before + 2);
    await steered.ended(await steered.deliver("c5", "after the refusals"));
    expect(steered.answersTo("c5")).toMatchObject([{ status: "completed", model: "held/two" }]);
  });

  test("offers its models and agents, and the model that a message without one gets", async () => {
    const [status, offers] = await of().call("models");
    expect([status, offers]).toMatchObject([200, { default_model: "held/two" }]);
    expect(offers["models"]).toMatchObject([
      { id: "held/one", name: expect.stringContaining("One") as string },
      { id: "held/two", name: expect.stringContaining("Two") as string },
    ]);
    expect(offers["agents"]).toContainEqual({ name: "second", description: "The other one" });
    expect(JSON.stringify(offers["agents"])).not.toContain("explore");
  });
};

const COMMAND = callOf("bash", { command: "echo it is done", description: "Say done" });

/** Sends the message and waits until the agent asks. @returns the turn, and the request's id */
const ask = async (steered: Steered, id: string) => {
  const turn = await steered.deliver(id, COMMAND);
  await expect.poll(() => steered.follower.turn?.state, POLL).toBe("requires_action");
  const request = steered.follower.turn?.waiting_for ?? "";
  expect(steered.follower.items.get(request)).toMatchObject({
    kind: "request",
    status: "pending",
    request: { kind: "permission", title: "bash", patterns: ["echo it is done"] },
  });
  return { turn, request };
};

const answer = (steered: Steered, request: string, given: object) =>
  steered.call("answer", { request_id: request, answer: given });

/** What a person permits, and what not. */
export const permissions = (of: Of): void => {
  test("does what a person permits once, and asks again the next time", async () => {
    const steered = of();
    const once = { choice: "once", message: null };
    for (const id of ["p1", "p2"]) {
      // oxlint-disable no-await-in-loop -- one turn after the other
      const { turn, request } = await ask(steered, id);
      expect(await steered.send("p", "x")).toEqual([200, { outcome: "busy", turn }]);
      expect(await answer(steered, request, once)).toEqual(answered(true));
      expect(await answer(steered, request, once)).toEqual(answered(false));
      await steered.ended(turn);
      expect(steered.model.calls.at(-1)?.result).toContain("it is done");
      expect(steered.follower.items.get(request)).toMatchObject({
        status: "completed",
        content: [{ text: "once" }],
      });
    }
  });

  test("does not do what a person rejects, or what no person permits in time", async () => {
    const steered = of();
    for (const [id, given] of [
      ["r1", { choice: "reject", message: null }],
      ["r2", { declined: "unattended" }],
      ["r3", { declined: "expired" }],
    ] as const) {
      // oxlint-disable no-await-in-loop -- one turn after the other
      const { turn, request } = await ask(steered, id);
      expect(await answer(steered, request, given)).toEqual(answered(true));
      await steered.ended(turn);
      expect(steered.follower.items.get(request)?.status).toBe("completed");
      const tool = steered.answersTo(id).find(({ kind }) => kind === "tool");
      expect(tool).toMatchObject({ status: "failed", error: { code: "tool_failed" } });
      expect(JSON.stringify(tool?.tool?.output)).not.toContain("it is done");
    }
  });

  test("asks no longer after an interrupt", async () => {
    const steered = of();
    const { turn, request } = await ask(steered, "i1");
    expect(await steered.call("interrupt", { turn })).toEqual([200, { interrupted: true }]);
    await steered.ended(turn);
    await steered.endedAs({ state: "interrupted", error: null });
    expect(steered.follower.items.get(request)?.status).toBe("interrupted");
    expect(await answer(steered, request, { choice: "once", message: null })).toEqual(answered(false));
    expect(await answer(steered, "none", { choice: "once", message: null })).toEqual(answered(false));
    expect(await answer(steered, "none", { declined: "unattended" })).toEqual(answered(false));
  });

  test("asks no longer for what a person permits always", async () => {
    const steered = of();
    const { turn, request } = await ask(steered, "a1");
    await answer(steered, request, { choice: "always", message: null });
    await steered.ended(turn);
    const requests = steered.items.filter(({ kind }) => kind === "request").length;
    await steered.ended(await steered.deliver("a2", COMMAND));
    expect(steered.model.calls.at(-1)?.result).toContain("it is done");
    expect(steered.items.filter(({ kind }) => kind === "request")).toHaveLength(requests);
  });
};

/** Tool calls as items. */
export const tools = (of: Of): void => {
  test("shows a command with its title, kind, input and output", async () => {
    const steered = of();
    await steered.ended(await steered.deliver("t1", COMMAND));
    expect(steered.answersTo("t1")).toMatchObject([
      {
        kind: "tool",
        status: "completed",
        tool: {
          name: "bash",
          kind: "execute",
          title: expect.any(String) as string,
          input: { command: "echo it is done" },
          output: "it is done\n",
          changes: [],
        },
      },
      { kind: "message", status: "completed" },
    ]);
  });

  test("shows a changed file with its diff, and a tool that failed with its error", async () => {
    const steered = of();
    const filePath = join(steered.daemon.layout.workspace, "notes.txt");
    await steered.ended(
      await steered.deliver("t2", callOf("write", { filePath, content: "first\nsecond\n" })),
    );
    expect(steered.answersTo("t2")[0]).toMatchObject({
      status: "completed",
      tool: { kind: "edit", changes: [{ path: "notes.txt" }] },
    });
    const edit = (oldString: string) => callOf("edit", { filePath, oldString, newString: "changed" });
    await steered.ended(await steered.deliver("t3", edit("first")));
    expect(readFileSync(filePath, "utf8")).toBe("changed\nsecond\n");
    expect(steered.answersTo("t3")[0]).toMatchObject({
      status: "completed",
      tool: {
        name: "edit",
        kind: "edit",
        changes: [{ path: "notes.txt", operation: "update", patch: expect.any(String) as string }],
      },
    });
    const patch = steered.answersTo("t3")[0]?.tool?.changes[0]?.patch ?? "";
    expect(patch).toMatch(/^--- notes\.txt\n\+\+\+ notes\.txt\n@@ -1,?\d* \+1,?\d* @@\n-first\n\+changed\n/);
    await steered.ended(await steered.deliver("t4", edit("nowhere")));
    expect(steered.answersTo("t4")[0]).toMatchObject({
      status: "failed",
      tool: { kind: "edit", changes: [] },
      error: { code: "tool_failed" },
    });
  });
};

const headOf = (name: string, media_type: string, content: Uint8Array): AttachmentHead => ({
  id: randomUUID(),
  name,
  media_type,
  bytes: content.length,
  sha256: createHash("sha256").update(content).digest("hex"),
});

/** Files beside a message. */
export const attachments = (of: Of): void => {
  test("gets attached files with their content where its model reads it, and with their paths", async () => {
    const steered = of();
    const contents = [
      ["error.log", "text/plain", Buffer.from("the first line of the log\n")],
      ["pixel.png", "image/png", PNG],
      ["src.zip", "application/zip", Buffer.from("PK\u0003\u0004\0\0\0", "latin1")],
    ] as const;
    const heads = contents.map(([name, type, content]) => headOf(name, type, content));
    const choice = { attachments: heads, model: "held/two" };
    const ids = heads.map(({ id }) => id);
    expect(await steered.send("f1", "Compare them.", choice)).toEqual([
      200,
      { outcome: "incomplete", attachments: ids },
    ]);
    for (const [at, [, , content]] of contents.entries())
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect(await steered.attach(ids[at] ?? "", content)).toEqual([200, { stored: true }]);
    const both = await Promise.all([
      steered.send("f1", "Compare them.", choice),
      steered.send("f1", "Compare them.", choice),
    ]);
    const turn = steered.follower.ended + 1;
    expect(both.map(([, body]) => body)).toEqual([
      { outcome: "accepted", turn: expect.any(Number) as number },
      { outcome: "accepted", turn: expect.any(Number) as number },
    ]);
    await steered.ended(turn);
    const call = steered.model.calls.at(-1);
    expect(call?.text).toContain("Compare them.");
    expect(call?.text.match(/the first line of the log/g)).toHaveLength(1);
    expect(call?.images).toEqual([`data:image/png;base64,${PNG.toString("base64")}`]);
    for (const { id, name, media_type: type, bytes } of heads) {
      const path = join(steered.daemon.layout.attachmentsDir, id, name);
      expect(call?.text).toContain(`- ${path} (${type}, ${bytes} bytes)`);
      // The agent is another user.
      expect(statSync(path).mode & 0o777).toBe(0o644);
    }
    const changed = await steered.daemon.git("status", "--porcelain", "--ignored");
    for (const { name } of heads) expect(changed).not.toContain(name);
    expect(steered.answersTo("f1")).toMatchObject([{ status: "completed" }]);
  });

  test("may get only a file, under a name that leads nowhere else", async () => {
    const steered = of();
    const file = Buffer.from("# Notes");
    const head = headOf("../../notes.md", "text/markdown", file);
    await steered.send("f2", "", { attachments: [head] });
    expect(await steered.attach(head.id, file)).toEqual([200, { stored: true }]);
    await steered.ended(await steered.deliver("f2", "", { attachments: [head] }));
    expect(steered.model.calls.at(-1)?.text.match(/# Notes/g)).toHaveLength(1);
    expect(existsSync(join(steered.daemon.layout.attachmentsDir, head.id, "notes.md"))).toBe(true);
  });

  test("gets the wanted files only, with their own bytes", async () => {
    const steered = of();
    const head = headOf("a.txt", "text/plain", Buffer.from("right"));
    expect(await steered.attach(head.id, Buffer.from("right"))).toMatchObject([404, { code: "not_found" }]);
    await steered.send("f3", "Look.", { attachments: [head] });
    expect(await steered.attach(head.id, Buffer.from("wrong"))).toMatchObject([
      400,
      { code: "invalid_request" },
    ]);
    for (const [id, bytes] of [
      [head.id, 6],
      [randomUUID(), ATTACHMENT_MAX + 1],
    ] as const)
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect(await steered.attach(id, Buffer.alloc(bytes))).toMatchObject([413, { code: "body_too_large" }]);
    expect(await steered.call("attachments/x")).toMatchObject([404, { code: "not_found" }]);
    expect(await steered.call(`attachments/${head.id}`)).toMatchObject([405, { code: "method_not_allowed" }]);
  });
};

/** The end of a turn that its model does not end. */
export const limits = (of: Of): void => {
  test("is stopped if its model answers without end", async () => {
    const steered = of();
    const turn = await steered.deliver("l1", "unfinished");
    await steered.ended(turn);
    await steered.endedAs({ state: "failed", error: { code: "too_many_model_calls" } });
    // The limit is 6. On a busy machine some calls more are under way until the runtime stops. Without it, there are over 200.
    expect(steered.model.asked("unfinished")).toBeLessThan(100);
    await steered.ended(await steered.deliver("l2", "after the endless turn"));
    expect(steered.answersTo("l2")).toMatchObject([{ status: "completed" }]);
  });
};
