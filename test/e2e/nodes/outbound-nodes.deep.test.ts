/**
 * Two services on one database tell a receiver of a project's events. One of them is killed, again and again, in the
 * middle of its deliveries. Each event arrives, under one `webhook-id`.
 */
import { randomBytes } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually, stopSession } from "../../support/service/account-view.ts";
import { freshDatabase } from "../../support/postgres/postgres.ts";
import { Installation, type Life } from "../../support/service/process-service.ts";
import { answering, ReceiverServer } from "../../support/servers/receiver.ts";
import { TEST_MS } from "../../support/patience.ts";

const scope = Effect.runSync(Scope.make());
let settings: Readonly<Record<string, string>>;
let receiver: ReceiverServer;
let dying: Installation;
let staying: Installation;
let there: Life;
let project = "";
let secret = "";
const PATH = "/events";

beforeAll(async () => {
  receiver = await ReceiverServer.open();
  settings = {
    DATABASE_URL: await Effect.runPromise(Scope.provide(freshDatabase("migrated"), scope)),
    PLATFORM_MASTER_KEY: randomBytes(32).toString("hex"),
    PLATFORM_SANDBOX_PROVIDER: "simulated",
    PLATFORM_TIER_CAPS: JSON.stringify({ free: 1000 }),
    PLATFORM_WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
  };
  [dying, staying] = [await Installation.open(), await Installation.open()];
  there = await staying.start(settings);
  project = await there.project(await staying.repository(""));
  const made = await there.call("POST", `/v1/projects/${project}/webhooks`, {
    url: `${receiver.url}${PATH}`,
    events: ["session.stopped"],
  });
  secret = String(made["secret"]);
}, TEST_MS);
afterAll(async () => {
  await there?.end("SIGTERM");
  for (const installation of [dying, staying]) await installation?.close();
  await receiver.close();
  await Effect.runPromise(Scope.close(scope, Exit.void));
}, TEST_MS);

/** Ends a session, which is one event. @returns the session's id */
const happen = async (life: Life): Promise<string> => {
  const { id } = await life.call("POST", `/v1/projects/${project}/sessions`, {});
  await stopSession(life, project, String(id));
  return String(id);
};

const sessionOf = (body: string): string =>
  String((JSON.parse(body) as { data: Record<string, unknown> }).data["session_id"]);

/** The ids under which the receiver got the event of each session. */
const idsBySession = (): ReadonlyMap<string, ReadonlySet<string>> => {
  const found = new Map<string, Set<string>>();
  for (const { body, headers } of receiver.received) {
    new Webhook(secret).verify(body, headers as Record<string, string>);
    const ids = found.get(sessionOf(body)) ?? new Set();
    found.set(sessionOf(body), ids.add(String(headers["webhook-id"])));
  }
  return found;
};

/** Each of these events has arrived and is recorded, under one id that no other event has. */
const allArrived = (sessions: readonly string[]): Promise<void> =>
  eventually(async () => {
    const deliveries = await there.everyPage<{
      readonly status: string;
      readonly event_id: string;
      readonly data: Readonly<Record<string, unknown>>;
    }>(`/v1/projects/${project}/webhooks/${await webhookId()}/deliveries`, "deliveries");
    const delivered = new Map(
      deliveries
        .filter(({ status }) => status === "delivered")
        .map(({ data, event_id: id }) => [String(data["session_id"]), id]),
    );
    expect(delivered.size).toBe(deliveries.length);
    const ids = idsBySession();
    for (const session of sessions)
      expect([session, [...(ids.get(session) ?? [])]]).toEqual([session, [delivered.get(session)]]);
    expect(new Set(delivered.values()).size).toBe(delivered.size);
  });

const webhookId = async (): Promise<string> => {
  const { webhooks } = (await there.call("GET", `/v1/projects/${project}/webhooks`)) as {
    webhooks: readonly { readonly id: string }[];
  };
  return webhooks[0]?.id ?? "";
};

describe("the events of a project, told by two services on one database", () => {
  it.each(["outbound.collected", "outbound.claimed", "outbound.answered"] as const)(
    "arrive, each under one id, when one of the services is killed at %s [O03]",
    async (point) => {
      receiver.behaviour = answering(204);
      const here = await dying.start(settings, "armed");
      const { died } = await here.arm({ point, signal: "SIGKILL" });
      const sessions: string[] = [];
      // Either service may be first at an event. The one where it happens hears of it earlier. The killed one answers nothing.
      const [over, happened] = [
        died.then(() => true),
        async () => {
          sessions.push(await happen(here));
          return false;
        },
      ];
      while (!(await Promise.race([over, happened().catch(() => over)])));
      expect(await died).toBe("SIGKILL");
      sessions.push(await happen(there));
      await allArrived(sessions);
    },
    TEST_MS,
  );
});
