/** Conformance: receivers of people, and what they hear of the events of all projects. */
import { randomBytes, randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import { describe, expect } from "vitest";
import { uuidV7 } from "../../../src/domain/ids.ts";
import { OutboundDeliveries } from "../../../src/features/notifications/ports/outbound-deliveries.ts";
import { DELIVERIES_WAITING_MAX } from "../../../src/features/notifications/ports/outbound-webhooks.ts";
import {
  OwnReceivers,
  type NewOwnReceiver,
  type OwnNewsWithReceivers,
} from "../../../src/features/notifications/ports/own-receivers.ts";
import { Conversations } from "../../../src/store/ports/sessions/conversations.ts";
import { Identities } from "../../../src/store/ports/people/identities.ts";
import { People } from "../../../src/store/ports/people/people.ts";
import { browser } from "./people/browsers.ts";
import type { Check } from "./fixture.ts";
import { ADA, step } from "../../support/world/conversation-steps.ts";
import { converse, nativeItem, report } from "../../support/world/conversations.ts";
import { claimAll, resultOf } from "../../support/world/outbound.ts";
import { addPerson, makeWorld, NOON, type World } from "../../support/world/world.ts";

const BOTH = ["asked", "finished"] as const;
const newId = () => uuidV7(NOON, randomBytes(16));

const mailTo = (userId: string, fields: Partial<Pick<NewOwnReceiver, "id" | "tells" | "now">> = {}) =>
  ({
    id: newId(),
    userId,
    tells: BOTH,
    format: "mail",
    shownUrl: null,
    sealed: null,
    now: NOON,
    ...fields,
  }) satisfies NewOwnReceiver;

const chatOf = (userId: string, shownUrl = "https://hooks.example.org/…abcd") =>
  ({
    ...mailTo(userId),
    format: "slack",
    shownUrl,
    sealed: { version: 1, envelope: Uint8Array.from([1, 2]) },
  }) satisfies NewOwnReceiver;

/** The agent of a session asks. */
const asks = Effect.fnUntraced(function* (world: World) {
  const { sessionId, sandboxId } = yield* converse(world);
  const { note } = yield* Conversations;
  const ask = (rev: number) =>
    note(
      sessionId,
      report(sandboxId, rev, { items: [nativeItem(`q${rev}`, rev, { kind: "request", status: "pending" })] }),
    );
  yield* ask(1);
  return { sessionId, ask };
});

/** The news of these sessions, from the first to the last, once there are so many. The place stays behind them. */
const newsOf = (sessionId: string, count = 1) =>
  Effect.gen(function* () {
    const { news } = yield* OwnReceivers;
    return yield* Effect.repeat(
      Effect.map(news(10_000), (found) => ({
        to: found?.to ?? "",
        own: (found?.news ?? []).filter(({ event }) => event.sessionId === sessionId),
      })),
      { until: ({ own }) => own.length >= count, schedule: Schedule.spaced("10 millis") },
    );
  });
const receiversOf = (news: readonly OwnNewsWithReceivers[]) =>
  news.map(({ receivers }) => receivers.map(({ id }) => id).toSorted());

const delivery = (
  receiverId: string,
  world: Pick<World, "projectId">,
  messageId = `evt_${randomUUID()}`,
) => ({
  id: newId(),
  receiverId,
  messageId,
  type: "session.waiting",
  message: JSON.stringify({ data: { project_id: world.projectId } }),
});

const checkRecords = (check: Check): void => {
  check(
    "own receivers are one for each place: another one takes its place, and its deliveries go",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const bob = yield* addPerson(world);
      const { list, save, remove } = yield* OwnReceivers;
      const mail = yield* save(mailTo(world.userId));
      const chat = yield* save(chatOf(world.userId));
      yield* save(chatOf(bob));
      expect(mail).toMatchObject({ format: "mail", shownUrl: null, sealed: null, status: "enabled" });
      expect(chat).toMatchObject({ format: "slack", tells: BOTH, sealed: { version: 1 } });
      expect((yield* list(world.userId)).map(({ id }) => id)).toEqual([mail.id, chat.id].toSorted());
      const other = yield* save(chatOf(world.userId, "https://hooks.example.org/…efgh"));
      const changed = yield* save(mailTo(world.userId, { id: mail.id, tells: ["asked"], now: NOON + 1 }));
      expect(changed).toMatchObject({ id: mail.id, tells: ["asked"], createdAt: NOON, updatedAt: NOON + 1 });
      expect((yield* list(world.userId)).map(({ id }) => id)).toEqual([mail.id, other.id].toSorted());
      expect([yield* remove(world.userId, "chat"), yield* remove(world.userId, "chat")]).toEqual([
        true,
        false,
      ]);
      expect(yield* list(world.userId)).toEqual([changed]);
      expect(yield* list(bob)).toHaveLength(1);
    }),
  );

  check(
    "own receivers get mail at the address of the last sign-in that has one",
    Effect.gen(function* () {
      const { accountId } = yield* makeWorld(1);
      const { signIn } = yield* Identities;
      const { address } = yield* OwnReceivers;
      const subject = randomUUID();
      const signedIn = (email: string | null, now: number) =>
        Effect.map(
          signIn({
            identity: { id: randomUUID(), issuer: "https://sso.example.com", subject, name: "Ada", email },
            signedInBy: "oidc",
            session: browser(now),
            entry: { by: "sign_up", accountId },
            newPerson: { id: randomUUID(), name: "Ada" },
          }),
          (result) => (result.kind === "signed_in" ? result.person.id : ""),
        );
      const ada = yield* signedIn("ada@example.com", NOON);
      expect(yield* address(ada)).toBe("ada@example.com");
      yield* signedIn("ada@example.org", NOON + 1);
      expect(yield* address(ada)).toBe("ada@example.org");
      yield* signedIn(null, NOON + 2);
      expect(yield* address(ada)).toBe(null);
      expect(yield* address(randomUUID())).toBe(null);
    }),
  );
};

const checkNews = (check: Check): void => {
  check(
    "own receivers hear of news of sessions that their people started or wrote to, since they were saved",
    Effect.gen(function* () {
      const world = yield* makeWorld(9);
      const [bob, carol] = [yield* addPerson(world), yield* addPerson(world)];
      const { save } = yield* OwnReceivers;
      const ada = yield* save(mailTo(world.userId));
      const { sessionId, ask } = yield* asks(world);
      const late = yield* save(chatOf(world.userId));
      const [wrote] = [yield* save(mailTo(bob)), yield* save(mailTo(carol))];
      yield* step(sessionId, {
        type: "message.posted",
        messageId: randomUUID(),
        isUrgent: false,
        message: { author: { ...ADA, userId: bob }, text: "go on", files: [], model: null, agent: null },
      });
      yield* ask(2);
      const { own } = yield* newsOf(sessionId, 2);
      expect(receiversOf(own)).toEqual([[ada.id], [ada.id, late.id, wrote.id].toSorted()]);
      expect(own[0]).toMatchObject({
        event: { type: "session.waiting", projectId: world.projectId, sessionId },
        session: { createdBy: world.userId, triggerSlug: null, parentSessionId: null },
        receivers: [{ userId: world.userId, tells: BOTH }],
      });
    }),
  );

  check(
    "own receivers get each event once: the place moves forward only, with the deliveries",
    Effect.gen(function* () {
      const world = yield* makeWorld(9);
      const { save, collect, news, remove } = yield* OwnReceivers;
      const { list } = yield* OutboundDeliveries;
      const { id } = yield* save(mailTo(world.userId));
      const gone = yield* save(chatOf(world.userId));
      const { sessionId } = yield* asks(world);
      const { to } = yield* newsOf(sessionId);
      yield* remove(world.userId, "chat");
      const deliveries = [delivery(id, world), delivery(gone.id, world)];
      expect(yield* collect({ to, deliveries, now: NOON })).toBe(true);
      expect(yield* collect({ to, deliveries: [delivery(id, world)], now: NOON })).toBe(false);
      const { items } = yield* list(id, { limit: 9, cursor: null });
      expect(items).toMatchObject([{ id: deliveries[0]?.id, status: "pending", dueAt: NOON }]);
      const left = ((yield* news(10_000))?.news ?? []).filter(({ event }) => event.sessionId === sessionId);
      expect(left).toEqual([]);
    }),
  );
};

const checkDeliveries = (check: Check): void => {
  check(
    "own receivers' deliveries say whose they are, and what she may in the project now",
    Effect.gen(function* () {
      const world = yield* makeWorld(9);
      const bob = yield* addPerson(world);
      const { save, collect } = yield* OwnReceivers;
      const [mail, chat] = [yield* save(mailTo(bob)), yield* save(chatOf(bob))];
      const { sessionId } = yield* asks(world);
      yield* save(mailTo(world.userId));
      const { to } = yield* newsOf(sessionId);
      yield* collect({ to, deliveries: [delivery(mail.id, world), delivery(chat.id, world)], now: NOON });
      const own = (now: number) =>
        Effect.map(claimAll(now), (claimed) =>
          claimed.filter(({ webhookId }) => webhookId === mail.id || webhookId === chat.id),
        );
      const claimed = yield* own(NOON);
      expect(claimed.toSorted((a, b) => (a.format < b.format ? -1 : 1))).toMatchObject([
        { ownerId: bob, format: "mail", sealed: null, person: { id: bob, isActive: true, role: "member" } },
        { ownerId: bob, format: "slack", sealed: { version: 1 }, person: { id: bob } },
      ]);
      yield* (yield* People).deactivate(world.accountId, bob, NOON);
      expect(yield* own(NOON + 60_000)).toMatchObject([
        { person: { isActive: false } },
        { person: { isActive: false } },
      ]);
    }),
  );

  check(
    "own receivers that fail for days, or have too much waiting, are disabled without an event",
    Effect.gen(function* () {
      const world = yield* makeWorld(9);
      const { save, collect, list } = yield* OwnReceivers;
      const { id } = yield* save(mailTo(world.userId));
      const first = yield* asks(world);
      const before = yield* newsOf(first.sessionId);
      yield* collect({ to: before.to, deliveries: [delivery(id, world)], now: NOON });
      const claimed = (yield* claimAll(NOON)).find(({ webhookId }) => webhookId === id);
      if (claimed === undefined) return expect.unreachable();
      const { record } = yield* OutboundDeliveries;
      yield* record([resultOf(claimed, 410, { is: "failed", isGone: true })], NOON);
      expect(yield* list(world.userId)).toMatchObject([{ status: "disabled", disabledReason: "gone" }]);
      yield* save(mailTo(world.userId, { id }));
      yield* first.ask(2);
      const { to, own } = yield* newsOf(first.sessionId);
      expect(receiversOf(own)).toEqual([[id]]);
      const many = Array.from({ length: DELIVERIES_WAITING_MAX + 1 }, () => delivery(id, world));
      yield* collect({ to, deliveries: many, now: NOON });
      expect(yield* list(world.userId)).toMatchObject([{ status: "disabled", disabledReason: "backlog" }]);
    }),
  );
};

export const checkOwnReceivers = (check: Check): void => {
  describe("people's own receivers", () => {
    checkRecords(check);
    checkNews(check);
    checkDeliveries(check);
  });
};
