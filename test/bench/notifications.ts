/**
 * `npm run bench:notifications [-- --seconds 10]`: 1,000 events a second, in 50 projects with one receiver each, of which ten
 * never answer. How late events reach the receivers that answer, and what became of each event: every one must have
 * reached its receiver, or wait for it in the database, under one `webhook-id`. Receivers and the writer of the events share the
 * machine with the service. The last line is one JSON object. It fails if an event is lost or has two ids.
 */
import { randomBytes } from "node:crypto";
import { parseArgs } from "node:util";
import { setTimeout as pause } from "node:timers/promises";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import * as SqlClient from "effect/sql/SqlClient";
import * as Client from "../../src/store/postgres/connection/client.ts";
import { startEmbedded } from "../../src/store/postgres/embedded/embedded.ts";
import { EventLog, layer as eventLog } from "../../src/store/postgres/events/event-log.ts";
import { guardedDirectory } from "../support/machine/guard.ts";
import { answering, ReceiverServer } from "../support/servers/receiver.ts";
import { Installation, type Life } from "../support/service/process-service.ts";
import { quantile } from "./figures.ts";

const RECEIVERS = 50;
const HANGING = 10;
const PER_SECOND = 1000;
/** One event for each project, so often. */
const STEP_MS = (1000 * RECEIVERS) / PER_SECOND;
/** How long the last events may take to arrive. */
const DRAIN_MS = 120_000;

const { values } = parseArgs({ options: { seconds: { type: "string", default: "10" } } });
const steps = Math.round((Number(values.seconds) * 1000) / STEP_MS);
if (!(steps >= 1)) throw new Error("--seconds takes a number above 0");

const now = (): number => performance.timeOrigin + performance.now();
const placeOf = (path: string): number => Number(path.slice(2));

/** A project with its receiver, for each place. @returns the projects' ids */
const addReceivers = async (life: Life, receiver: ReceiverServer): Promise<readonly string[]> => {
  const projects: string[] = [];
  for (let place = 0; place < RECEIVERS; place += 1) {
    const { id } = await life.call("POST", "/v1/projects", {
      name: `project ${place}`,
      repository: { kind: "hosted" },
    });
    await life.call("POST", `/v1/projects/${String(id)}/webhooks`, {
      url: `${receiver.url}/r${place}`,
      events: ["fire.failed"],
    });
    projects.push(String(id));
  }
  return projects;
};

interface Arrival {
  readonly ids: Set<string>;
  readonly lateMs: number;
}

/** The first arrival of each event, and all ids that it had. */
class Book {
  readonly arrivals = new Map<string, Arrival>();
  again = 0;

  note(body: string, id: string): void {
    const { data, timestamp } = JSON.parse(body) as { data: { fire_id: string }; timestamp: string };
    const known = this.arrivals.get(data.fire_id);
    if (known === undefined)
      this.arrivals.set(data.fire_id, { ids: new Set([id]), lateMs: now() - Date.parse(timestamp) });
    else {
      known.ids.add(id);
      this.again += 1;
    }
  }
}

/** Writes the events at their rate. @returns how long it took, ms */
const writeEvents = async (url: string, projects: readonly string[]): Promise<number> => {
  const began = now();
  const write = Effect.gen(function* () {
    const { append } = yield* EventLog;
    for (let step = 0; step < steps; step += 1) {
      const at = Math.floor(now());
      const events = projects.map((projectId, place) => ({
        projectId,
        sessionId: null,
        type: "fire.failed",
        at,
        data: { fire_id: `${place}-${step}`, trigger_slug: "bench", reason: "bench" },
      }));
      yield* append(events);
      const waitMs = began + (step + 1) * STEP_MS - now();
      if (waitMs > 0) yield* Effect.promise(() => pause(waitMs));
    }
  });
  await Effect.runPromise(
    Effect.provide(write, Layer.provideMerge(eventLog, Client.layer({ url, maxConnections: 2 }))),
  );
  return now() - began;
};

/** How many deliveries the database has for each receiver, by its project. */
const deliveries = (url: string): Promise<ReadonlyMap<string, number>> =>
  Effect.runPromise(
    Effect.flatMap(
      SqlClient.SqlClient,
      (sql) => sql<{ readonly project: string; readonly count: number }>`
        SELECT project_id AS project, count(*)::integer AS count FROM outbound_deliveries
        JOIN outbound_webhooks ON outbound_webhooks.id = outbound_webhook_id GROUP BY project_id`,
    ).pipe(
      Effect.map((rows) => new Map(rows.map(({ project, count }) => [project, count]))),
      Effect.provide(Client.layer({ url, maxConnections: 1 })),
    ),
  );

const wholeMs = (late: readonly number[], part: number): number => Math.round(quantile(late, part));

const scope = Effect.runSync(Scope.make());
const { directory, remove } = guardedDirectory("platform-bench-");
const installation = await Installation.open();
const receiver = await ReceiverServer.open();
try {
  const { url } = await Effect.runPromise(Scope.provide(startEmbedded(directory), scope));
  const life = await installation.start({
    DATABASE_URL: url,
    PLATFORM_MASTER_KEY: randomBytes(32).toString("hex"),
    PLATFORM_SANDBOX_PROVIDER: "simulated",
    PLATFORM_WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
  });
  const projects = await addReceivers(life, receiver);
  const book = new Book();
  receiver.behaviour = (response, received) => {
    book.note(received.body, String(received.headers["webhook-id"]));
    if (placeOf(received.path) >= HANGING) answering(204)(response, received);
  };
  const writtenMs = await writeEvents(url, projects);
  const wanted = (RECEIVERS - HANGING) * steps;
  const answered = () => [...book.arrivals.keys()].filter((event) => Number.parseInt(event, 10) >= HANGING);
  const ended = now();
  while (answered().length < wanted && now() - ended < DRAIN_MS) await pause(50);
  const drainMs = now() - ended;
  // Events of receivers that hang are deliveries in the database.
  let kept = await deliveries(url);
  while (projects.some((id) => kept.get(id) !== steps) && now() - ended < DRAIN_MS) {
    await pause(500);
    kept = await deliveries(url);
  }
  const late = answered().map((event) => book.arrivals.get(event)?.lateMs ?? Number.NaN);
  const lost = projects.reduce((sum, id) => sum + Math.max(0, steps - (kept.get(id) ?? 0)), 0);
  const result = {
    events: RECEIVERS * steps,
    events_per_second: Math.round((RECEIVERS * steps * 1000) / writtenMs),
    receivers: RECEIVERS,
    hanging: HANGING,
    not_arrived: wanted - late.length,
    not_kept: lost,
    with_two_ids: [...book.arrivals.values()].filter(({ ids }) => ids.size > 1).length,
    sent_again: book.again,
    late_ms: { p50: wholeMs(late, 0.5), p99: wholeMs(late, 0.99), max: wholeMs(late, 1) },
    drain_ms: Math.round(drainMs),
  };
  process.stdout.write(
    `${result.events} events at ${result.events_per_second} a second to ${RECEIVERS} receivers, of which ${HANGING} hang.\n` +
      `The others had them ${result.late_ms.p50} ms after the event in the middle, ${result.late_ms.p99} ms at 99 %, ${result.late_ms.max} ms at the latest.\n`,
  );
  process.stdout.write(`${JSON.stringify(result)}\n`);
  if (result.not_arrived + result.not_kept + result.with_two_ids > 0) process.exitCode = 1;
  await life.end("SIGTERM");
} finally {
  await receiver.close();
  await installation.close();
  await Effect.runPromise(Scope.close(scope, Exit.void));
  remove();
}
