/**
 * A boot that brings saved work back, if the request to restart asked for it (docs/decisions/0011). The service delivers the work
 * after the checkout; the boot waits for it.
 */
import type { Readable, Writable } from "node:stream";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import * as Schema from "effect/Schema";
import { cutFront, storableText } from "../../src/domain/text.ts";
import type { Redactor } from "../../src/domain/secret/redactor.ts";
import type { RestorePart } from "../../src/domain/save/listing.ts";
import { notRestored, Restored, restoredTogether } from "../../src/domain/save/saved.ts";
import type { RuntimeAdapter } from "../adapters/adapter.ts";
import { rereadCheckout, type Checkout } from "../git/checkout.ts";
import type { Log } from "../logs/log.ts";
import type { Report } from "../report.ts";
import { JoinedBodies, type Passed } from "../saving/restoring/joined.ts";
import { placeIn } from "../saving/surface.ts";
import { readOutput, withProgram } from "../saving/workspace-program.ts";
import type { Settings } from "../settings.ts";
import type { SetupAhead } from "./setup-ahead.ts";

/** How long the boot waits for the work, and how long bringing it back may take. */
const DEADLINE = "10 minutes";
/** How many deliveries the boot takes for one restoration, if each breaks off. */
const DELIVERIES_MAX = 10;
/** The longest error that is reported. */
const MAX_ERROR_LENGTH = 2000;
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

interface Arrived {
  readonly body: Readable;
  readonly part: RestorePart;
}

/** Where the service's deliveries meet the boot that waits for one. */
export class Delivery {
  /** The results of the parts that are done. */
  readonly #results = new Map<number, Restored>();
  #done = Deferred.makeUnsafe<Restored>();
  /** Null if the boot waits for none. */
  #wanted: Deferred.Deferred<Arrived> | null = null;

  /**
   * Takes the body of `POST /platform/restore`. A part that is done is answered as it was.
   *
   * @returns its result. Null if nothing waits for it, or not any more
   */
  deliver(body: Readable, part: RestorePart): Effect.Effect<Restored> | null {
    const result = this.#results.get(part.number);
    if (result !== undefined) {
      body.resume();
      return Effect.succeed(result);
    }
    if (this.#wanted === null) return null;
    Deferred.doneUnsafe(this.#wanted, Effect.succeed({ body, part }));
    this.#wanted = null;
    return Deferred.await(this.#done);
  }

  /** Waits for the next delivery. Null if it did not come in time. */
  get arrival(): Effect.Effect<Arrived | null> {
    return Effect.suspend(() => {
      const nextArrival = Deferred.makeUnsafe<Arrived>();
      this.#wanted = nextArrival;
      return Effect.map(Effect.timeoutOption(Deferred.await(nextArrival), DEADLINE), Option.getOrNull);
    }).pipe(Effect.ensuring(Effect.sync(() => (this.#wanted = null))));
  }

  /** Answers the deliveries of a part. */
  finish({ number }: RestorePart, restored: Restored): void {
    this.#results.set(number, restored);
    Deferred.doneUnsafe(this.#done, Effect.succeed(restored));
    this.#done = Deferred.makeUnsafe<Restored>();
  }
}

interface BringingBack {
  readonly settings: Settings;
  readonly adapter: Pick<RuntimeAdapter, "record">;
  readonly report: Report;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly delivery: Delivery;
  /** A setup command that began before the session: its files must not be in the way. */
  readonly ahead: SetupAhead | null;
}

/** One delivery of the saved work. */
interface Bringing {
  readonly body: Readable;
  readonly part: RestorePart;
  /** The commit that was checked out. */
  readonly tip: string | null;
  /** Hears what comes after the delivery has broken off. */
  readonly again: (part: RestorePart) => void;
}

/** Restores the saved work, if that is wanted. @returns the checkout as it is then */
export const bringBack = Effect.fnUntraced(function* (
  parts: BringingBack,
  checkout: Checkout,
): Effect.fn.Return<Checkout> {
  const { settings, report, redactor, log, delivery, ahead } = parts;
  if (settings.launch.restore !== true) return checkout;
  if (ahead !== null) yield* ahead.undo;
  log("waiting for saved work");
  const tip = checkout.commit;
  let outcome: Restored | null = null;
  for (let isLast = false; !isLast;) {
    const first: Arrived | null = yield* awaitArrival(parts);
    let part: RestorePart = first?.part ?? { number: 1, isLast: true };
    const again = (next: RestorePart) => (part = next);
    const restoration: Restored =
      first === null
        ? notRestored("The saved work did not arrive in time.")
        : yield* restore(parts, { body: first.body, part, tip, again });
    isLast = part.isLast;
    outcome = outcome === null ? restoration : restoredTogether(outcome, restoration);
    delivery.finish(part, restoration);
  }
  const { wip: commit = null } = settings.launch;
  report.restored = redactRestored(redactor, {
    ...(outcome ?? notRestored("")),
    wip: commit === "" ? null : commit,
  });
  report.restore = "done";
  const { commits, files, skipped, error } = report.restored;
  log("work restored", { commits, files, skipped: skipped.length, error });
  return yield* rereadCheckout(settings, checkout);
});

/** The next delivery. The report says that it is wanted, then that it arrives. */
const awaitArrival = Effect.fnUntraced(function* ({ report, delivery, log }: BringingBack) {
  report.restore = "wanted";
  const arrival = yield* delivery.arrival;
  if (arrival === null) return null;
  report.restore = "running";
  log("saved work arrives");
  return arrival;
});

/** Gives the program what arrives. A delivery that breaks off, as the service ended or its connection, is waited for again. */
const feed = Effect.fnUntraced(function* (
  parts: BringingBack,
  { body: first, again }: Pick<Bringing, "body" | "again">,
  input: Writable,
) {
  const bodies = new JoinedBodies(input);
  let body: Readable | null = first;
  for (let left = DELIVERIES_MAX - 1; body !== null; left -= 1) {
    const currentBody = body;
    const transfer: Passed = yield* Effect.promise(() => bodies.pass(currentBody));
    if (transfer !== "broken" || left === 0) break;
    parts.log("saved work broke off, waiting for it again");
    const next = yield* awaitArrival(parts);
    if (next !== null) again(next.part);
    body = next?.body ?? null;
  }
  input.end();
});

const Answer = Schema.Struct({
  ...Restored.fields,
  /** The runtime's own record of the conversation, if it was brought back. */
  history: Schema.optionalKey(Schema.Struct({ id: Schema.String, at: Schema.Finite })),
});
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Answer));

/** Runs the program that writes the work into the workspace. Never fails. */
const restore = (parts: BringingBack, { body, part, tip, again }: Bringing): Effect.Effect<Restored> =>
  withProgram(
    parts.settings,
    { command: "restore", tip, part, ...placeIn(parts.settings, parts.adapter, null) },
    ({ input, output, problem }) =>
      Effect.gen(function* () {
        yield* Effect.forkChild(feed(parts, { body, again }, input));
        const answer = yield* readOutput(output, MAX_ANSWER_BYTES);
        const failure = answer === null ? "its result is too long" : yield* problem;
        const result = decode(answer?.toString("utf8") ?? "");
        if (failure === null && result._tag === "Some") {
          const { history, ...restored } = result.value;
          if (history !== undefined) parts.adapter.record?.recall(history);
          return restored;
        }
        return notRestored(`The saved work could not be restored: ${failure ?? "the result is malformed"}`);
      }),
  ).pipe(
    Effect.timeoutOrElse({
      duration: DEADLINE,
      orElse: () => Effect.succeed(notRestored(`Bringing the saved work back took longer than ${DEADLINE}.`)),
    }),
  );

/**
 * For the agent and the health report: names as text instead of bytes, and without secrets. Texts are redacted before they are
 * cut; the end has the reason.
 */
const redactRestored = (redactor: Redactor, restored: Restored): Restored => {
  const text = (bytes: string): string => redactor.redact(Buffer.from(bytes, "latin1").toString("utf8"));
  return {
    ...restored,
    refs: restored.refs.map(text),
    renamed: restored.renamed.map(({ path, as }) => ({ path: text(path), as: text(as) })),
    skipped: restored.skipped.map((one) => ({ ...one, path: text(one.path) })),
    error:
      restored.error === null
        ? null
        : cutFront(redactor.redact(storableText(restored.error)), MAX_ERROR_LENGTH),
  };
};
