/** Conformance: what a session's row shows, as it was stored when it happened. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import type { AgentRequest } from "../../../../src/domain/conversation/conversation.ts";
import { Approvals } from "../../../../src/features/approvals/ports/approvals.ts";
import { ChangeRequests } from "../../../../src/features/change-requests/ports/change-requests.ts";
import { type NewRemark, Remarks } from "../../../../src/features/change-requests/ports/remarks.ts";
import { Conversations } from "../../../../src/store/ports/sessions/conversations.ts";
import { Sessions, type SessionFilter } from "../../../../src/store/ports/sessions/sessions.ts";
import { type Check } from "../fixture.ts";
import { asked } from "../../../support/world/approvals.ts";
import { tellRequest } from "../../../support/world/change-requests.ts";
import { converse, nativeItem, nativeTool, report } from "../../../support/world/conversations.ts";
import { tellSandbox, tellSession } from "../../../support/world/sessions.ts";
import { addPerson, makeWorld, NOON, type World } from "../../../support/world/world.ts";

const APPROVALS = { atOnce: 9, perConnector: 99, windowMs: 60_000, openMs: 90_000, open: 9 };

const PERMISSION: AgentRequest = {
  kind: "permission",
  title: "Run a command",
  patterns: ["rm *"],
  command: "rm -r build",
  questions: [],
};

const says = (id: string, rev: number, text: string, fields: Parameters<typeof nativeItem>[2] = {}) =>
  nativeItem(id, rev, { content: [{ type: "text", text }], ...fields });

/** A change request of the session. */
const propose = Effect.fnUntraced(function* (world: World, sessionId: string, title: string) {
  return yield* (yield* ChangeRequests).open({
    id: randomUUID(),
    projectId: world.projectId,
    sessionId,
    headRef: sessionId,
    baseRef: "main",
    title,
    description: "",
    createdBy: world.userId,
    tips: { base: "b", head: "h" },
    now: NOON,
  });
});

/** A session with a conversation, and its row as it is shown. */
const scene = Effect.gen(function* () {
  const world = yield* makeWorld(9);
  const { sessionId, sandboxId } = yield* converse(world);
  const { note } = yield* Conversations;
  const { shown } = yield* Sessions;
  const tell = (rev: number, fields: Parameters<typeof report>[2]) =>
    note(sessionId, report(sandboxId, rev, fields));
  return { world, sessionId, sandboxId, tell, row: shown(sessionId) };
});

export const checkSessionRows = (check: Check): void => {
  describe("a session's row", () => {
    check(
      "has the first sentence of the agent's last whole message",
      Effect.gen(function* () {
        const { tell, row } = yield* scene;
        const sentence = Effect.map(row, (shown) => shown?.conversation?.lastSentence);
        expect(yield* sentence).toBe(null);
        yield* tell(1, { items: [says("a", 1, "It **works**. I pushed it.")] });
        expect(yield* sentence).toBe("It works.");
        // One of a subagent, a thought, one of the person, and one that grows.
        yield* tell(2, { items: [says("b", 2, "Not mine.", { parent_id: "a" })] });
        yield* tell(3, { items: [says("c", 3, "Not said.", { kind: "thought" })] });
        yield* tell(4, { items: [says("d", 4, "Not by it.", { role: "user" })] });
        yield* tell(5, { items: [says("e", 5, "Not yet.", { status: "running" })] });
        expect(yield* sentence).toBe("It works.");
        // The end of a message that grew takes the fast path.
        yield* tell(6, { items: [says("e", 6, "Now it is said. Yes.")] });
        expect(yield* sentence).toBe("Now it is said.");
      }),
    );

    check(
      "gets the agent's title as its name, and a later one in its place, but not in place of another",
      Effect.gen(function* () {
        const { sessionId, row } = yield* scene;
        const { entitle, rename } = yield* Sessions;
        const name = Effect.map(row, (shown) => shown?.name);
        expect(yield* name).toBe(null);
        const titled = (title: string, former: string | null) =>
          Effect.andThen(entitle(sessionId, { title, former, now: NOON }), name);
        expect(yield* titled("Greet the world", null)).toBe("Greet the world");
        expect(yield* titled("Greet everybody", null)).toBe("Greet the world");
        expect(yield* titled("Greet everybody", "Greet the world")).toBe("Greet everybody");
        yield* rename(sessionId, { name: "Mine", now: NOON });
        expect(yield* titled("Greet all", "Greet everybody")).toBe("Mine");
      }),
    );

    check(
      "is found by the beginnings of words in whole messages, with the sentence around the newest",
      Effect.gen(function* () {
        const { world, tell } = yield* scene;
        const { list } = yield* Sessions;
        const found = (search: string) =>
          Effect.map(list(world.projectId, { limit: 9, cursor: null, status: null, search }), ({ items }) =>
            items.map(({ hit }) => hit?.text ?? null),
          );
        yield* tell(1, {
          items: [says("a", 1, "I looked.\n\nThe greeting `lives` in src/main/Übergreet.ts now! Bye.")],
        });
        yield* tell(2, { items: [nativeTool("b", 2, "porcupine")] });
        yield* tell(3, { items: [says("c", 3, "Not mine, porcupine.", { parent_id: "a" })] });
        yield* tell(4, { items: [says("d", 4, "A porcupine?", { kind: "thought" })] });
        yield* tell(5, { items: [says("e", 5, "A porcupine is comi", { status: "running" })] });
        const sentence = "The greeting `lives` in src/main/Übergreet.ts now!";
        expect(yield* found("greet MAIN bye")).toEqual([sentence]);
        expect(yield* found("übergreet")).toEqual([sentence]);
        expect(yield* found("greeting porcupine")).toEqual([]);
        expect(yield* found("porcupine")).toEqual([]);
        expect(yield* found("reeting")).toEqual([]);
        expect(yield* found("'%")).toEqual([]);
        // The end of a message that grew takes the fast path.
        yield* tell(6, { items: [says("e", 6, "A porcupine is coming. It greets.")] });
        expect(yield* found("porcu")).toEqual(["A porcupine is coming."]);
        expect(yield* found("greet")).toEqual(["It greets."]);
      }),
    );

    check(
      "has a conversation whose messages are found by their words, newest first, at most as many as asked for",
      Effect.gen(function* () {
        const { world, sessionId, tell } = yield* scene;
        const { search } = yield* Conversations;
        const found = (words: string, limit = 9) =>
          Effect.map(search(sessionId, { search: words, limit }), (hits) => hits.map(({ text }) => text));
        const numbers = [1, 2, 3];
        yield* tell(3, { items: numbers.map((rev) => says(`m${rev}`, rev, `Greeting ${rev}. Bye.`)) });
        const other = yield* converse(world);
        const { note } = yield* Conversations;
        yield* note(other.sessionId, report(other.sandboxId, 1, { items: [says("m", 1, "Greeting 4.")] }));
        expect(yield* found("greet")).toEqual(["Greeting 3.", "Greeting 2.", "Greeting 1."]);
        expect(yield* found("greet", 2)).toEqual(["Greeting 3.", "Greeting 2."]);
        expect(yield* found("bye 1")).toEqual(["Greeting 1."]);
        expect(yield* found("porcupine")).toEqual([]);
        expect(yield* found("%'")).toEqual([]);
      }),
    );

    check(
      "has the request that the agent's turn waits for, until it waits no more",
      Effect.gen(function* () {
        const { tell, row } = yield* scene;
        const item = nativeItem("r", 1, { kind: "request", status: "pending", request: PERMISSION });
        yield* tell(1, { items: [item], turn: { state: "requires_action", waiting_for: "r" } });
        const asks = yield* row;
        expect(asks?.conversation?.turnRequest).toEqual({ kind: "permission", text: "rm -r build" });
        expect(asks?.conversation?.turn.waitingFor).not.toBe(null);
        yield* tell(2, { turn: { state: "running", waiting_for: null } });
        expect((yield* row)?.conversation?.turnRequest).toBe(null);
      }),
    );

    check(
      "still has what the agent asked when it went to sleep, until it is restarted, and is found by it",
      Effect.gen(function* () {
        const { world, sessionId, sandboxId, tell, row } = yield* scene;
        const { list, listForReader, rename, runningOn } = yield* Sessions;
        yield* tellSession(sessionId, { type: "branch.created", commit: "c", sandboxId });
        yield* tellSandbox(sandboxId, { type: "daemon.ready" });
        yield* tellSession(sessionId, { type: "sandbox.live", sandboxId });
        const ask = { kind: "permission", text: "rm -r build" } as const;
        const item = nativeItem("r", 1, { kind: "request", status: "pending", request: PERMISSION });
        yield* tell(1, { items: [item], turn: { state: "requires_action", waiting_for: "r" } });
        expect((yield* runningOn("node-1")).map(({ asks }) => asks)).toEqual([ask]);
        yield* tellSession(sessionId, { type: "idle.elapsed", asked: ask }, NOON + 5);
        yield* tell(2, {
          items: [{ ...item, rev: 2, status: "interrupted" as const }],
          turn: { state: "idle", waiting_for: null },
        });
        yield* tellSession(sessionId, { type: "sandbox.ended", sandboxId, saved: null }, NOON + 6);
        const shown = yield* row;
        expect(shown).toMatchObject({ status: "stopped", stopReason: "idle", asked: ask });
        const found = (filter: Partial<SessionFilter>) =>
          Effect.gen(function* () {
            const request = { limit: 9, cursor: null, status: null, ...filter };
            const lists = [
              yield* list(world.projectId, request),
              yield* listForReader({ ...world, userId: null }, request),
            ];
            return lists.map(({ items }) => items.length);
          });
        expect(yield* found({ activities: ["needs_you"] })).toEqual([1, 1]);
        expect(yield* found({ activities: ["asleep"] })).toEqual([0, 0]);
        yield* rename(sessionId, { archivedAt: NOON + 7, now: NOON + 7 });
        expect(yield* found({ archived: true })).toEqual([1, 1]);
        yield* tellSession(sessionId, { type: "restart.requested", sandboxId: randomUUID() }, NOON + 8);
        expect((yield* row)?.asked).toBe(null);
      }),
    );

    check(
      "has the oldest call that waits for an approval",
      Effect.gen(function* () {
        const { world, sessionId, row } = yield* scene;
        expect(yield* row).toMatchObject({ pendingApprovals: 0, oldestApproval: null });
        const { ask } = yield* Approvals;
        const [late, early] = [
          asked(world, { sessionId, at: NOON + 5, tool: "late" }),
          asked(world, { sessionId, at: NOON + 1, tool: "early" }),
        ];
        for (const one of [late, early]) yield* ask(one, APPROVALS);
        const oldest = { id: early.call.id, connector: "docs", tool: "early", at: NOON + 1 };
        expect(yield* row).toMatchObject({ pendingApprovals: 2, oldestApproval: oldest });
      }),
    );

    check(
      "has the changes of its branch as they were noted last",
      Effect.gen(function* () {
        const { sessionId, row } = yield* scene;
        const { noteChanges } = yield* Sessions;
        expect((yield* row)?.changes).toBe(null);
        const changes = { files: 2, additions: 12, deletions: 3, head: "h" };
        yield* noteChanges(sessionId, { ...changes, head: "g" }, NOON);
        yield* noteChanges(sessionId, changes, NOON);
        expect((yield* row)?.changes).toEqual(changes);
      }),
    );

    check(
      "has what others say of its open change request",
      Effect.gen(function* () {
        const { world, sessionId, row } = yield* scene;
        const request = yield* propose(world, sessionId, "First");
        const { add, resolve } = yield* Remarks;
        const said = Effect.map(row, (shown) => {
          const { changesAskedBy, comments } = shown?.changeRequest ?? {};
          return [changesAskedBy, comments];
        });
        const [grace, ada] = [yield* addPerson(world, "Grace"), yield* addPerson(world, "Ada")];
        let at = NOON;
        const say = (createdBy: string, kind: NewRemark["kind"], replyTo: string | null = null) => {
          at += 1;
          const id = randomUUID();
          const remark = { id, requestId: request.id, kind, body: "Why?", commit: "h", place: null, replyTo };
          return Effect.as(add(request, { ...remark, createdBy, createdAt: at }), id);
        };
        const thread = yield* say(grace, "comment");
        yield* say(ada, "comment", thread);
        yield* say(world.userId, "comment");
        expect(yield* said).toEqual([null, 1]);
        yield* resolve(request, thread, { by: world.userId, at });
        yield* say(grace, "changes_requested");
        yield* say(ada, "changes_requested");
        expect(yield* said).toEqual(["Ada", 0]);
        yield* say(ada, "approval");
        expect(yield* said).toEqual(["Grace", 0]);
        yield* say(grace, "comment");
        yield* tellRequest(request.id, { type: "close.requested" });
        expect(yield* said).toEqual([null, 0]);
      }),
    );

    check(
      "has its newest change request, with the last known commit of the branch",
      Effect.gen(function* () {
        const { world, sessionId, row } = yield* scene;
        const newest = Effect.map(row, (shown) => shown?.changeRequest);
        expect(yield* newest).toBe(null);
        const first = yield* propose(world, sessionId, "First");
        const shown = { id: first.id, number: first.number, title: "First" };
        const said = { changesAskedBy: null, comments: 0 };
        expect(yield* newest).toEqual({ ...shown, status: "open", head: "h", ...said });
        const sides = { base: "b", head: "merged" };
        yield* tellRequest(first.id, { type: "merge.requested", by: world.userId, message: null });
        yield* tellRequest(first.id, { type: "sides.noted", sides, at: NOON });
        yield* tellRequest(first.id, { type: "merged.in_git", sides, commit: "m" });
        yield* tellRequest(first.id, { type: "manifest.read" });
        expect(yield* newest).toEqual({ ...shown, status: "merged", head: "merged", ...said });
        const second = yield* propose(world, sessionId, "Second");
        expect(yield* newest).toMatchObject({ id: second.id, status: "open" });
        yield* propose(world, (yield* converse(world)).sessionId, "Of another session");
        expect(yield* newest).toMatchObject({ id: second.id });
      }),
    );
  });
};
