/**
 * A boot that brings saved work back, if the request to restart asked for it (docs/decisions/0094). The service delivers the work
 * after the checkout; the boot waits for it.
 */
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import * as Schema from "effect/Schema";
import { cutFront, storableText } from "../src/domain/text.ts";
import type { Redactor } from "../src/domain/secret/redactor.ts";
import { notRestored, Restored } from "../src/domain/save/saved.ts";
import { rereadCheckout, type Checkout } from "./git/checkout.ts";
import type { Log } from "./logs/log.ts";
import type { Report } from "./report.ts";
import { placeIn } from "./saving/surface.ts";
import { outputOf, withProgram } from "./saving/workspace-program.ts";
import type { Settings } from "./settings.ts";
import type { SetupAhead } from "./setup-ahead.ts";

/** How long the boot waits for the work, and how long bringing it back may take. */
const DEADLINE = "10 minutes";
/** The longest error that is reported. */
const MAX_ERROR_LENGTH = 2000;
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** Where the service's delivery meets the boot that waits for it. */
export class Delivery {
  readonly #arrived = Deferred.makeUnsafe<Readable>();
  readonly #done = Deferred.makeUnsafe<Restored>();
  #isWanted = false;

  /** Takes the body of `POST /platform/restore`. @returns its result. Null: nothing waits for it, or not any more */
  deliver(body: Readable): Effect.Effect<Restored> | null {
    if (!this.#isWanted) return null;
    this.#isWanted = false;
    Deferred.doneUnsafe(this.#arrived, Effect.succeed(body));
    return Deferred.await(this.#done);
  }

  /** Waits for the delivery. Null: it did not come in time. */
  get arrival(): Effect.Effect<Readable | null> {
    return Effect.suspend(() => {
      this.#isWanted = true;
      return Effect.map(Effect.timeoutOption(Deferred.await(this.#arrived), DEADLINE), Option.getOrNull);
    }).pipe(Effect.tap(() => Effect.sync(() => (this.#isWanted = false))));
  }

  finish(restored: Restored): void {
    Deferred.doneUnsafe(this.#done, Effect.succeed(restored));
  }
}

interface BringingBack {
  readonly settings: Settings;
  readonly report: Report;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly delivery: Delivery;
  /** A setup command that began before the session: its files must not be in the way. */
  readonly ahead: SetupAhead | null;
}

/** Restores the saved work, if that is wanted. @returns the checkout as it is then */
export const bringBack = Effect.fnUntraced(function* (
  { settings, report, redactor, log, delivery, ahead }: BringingBack,
  checkout: Checkout,
): Effect.fn.Return<Checkout> {
  if (settings.launch.restore !== true) return checkout;
  if (ahead !== null) yield* ahead.undo;
  report.restore = "wanted";
  log("waiting for saved work");
  const body = yield* delivery.arrival;
  if (body !== null) report.restore = "running";
  const outcome =
    body === null ? notRestored("The saved work did not arrive in time.") : yield* restore(settings, body);
  report.restored = shown(redactor, { ...outcome, wip: settings.launch.wip ?? null });
  report.restore = "done";
  delivery.finish(outcome);
  const { commits, files, skipped, error } = report.restored;
  log("work restored", { commits, files, skipped: skipped.length, error });
  return yield* rereadCheckout(settings, checkout);
});

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Restored));

/** Runs the program that writes the work into the workspace. Never fails. */
const restore = (settings: Settings, body: Readable): Effect.Effect<Restored> =>
  withProgram(settings, { command: "restore", ...placeIn(settings) }, ({ input, output, problem }) =>
    Effect.gen(function* () {
      // If the program ends before it has read everything, its own words say why.
      yield* Effect.forkChild(Effect.promise(() => pipeline(body, input).catch(() => undefined)));
      const answer = yield* outputOf(output, MAX_ANSWER_BYTES);
      const said = answer === null ? "its result is too long" : yield* problem;
      const decoded = decode(answer?.toString("utf8") ?? "");
      if (said === null && decoded._tag === "Some") return decoded.value;
      return notRestored(`The saved work could not be restored: ${said ?? "the result is malformed"}`);
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
const shown = (redactor: Redactor, restored: Restored): Restored => {
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
