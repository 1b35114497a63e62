/** A boot that brings saved work back, if the request to restart asked for it (docs/decisions/0082). */
import * as Effect from "effect/Effect";
import { cutFront, storableText } from "../src/domain/text.ts";
import type { Redactor } from "../src/domain/redactor.ts";
import type { Restored } from "../src/domain/saved.ts";
import { rereadCheckout, type Checkout } from "./git/checkout.ts";
import type { Log } from "./logs/log.ts";
import type { Report } from "./report.ts";
import { restore } from "./saving/restore.ts";
import type { Settings } from "./settings.ts";
import type { SetupAhead } from "./setup-ahead.ts";

/** The longest error that is reported. */
const MAX_ERROR_LENGTH = 2000;

interface BringingBack {
  readonly settings: Settings;
  readonly report: Report;
  readonly redactor: Redactor;
  readonly log: Log;
  /** A setup command that began before the session: its files must not be in the way. */
  readonly ahead: SetupAhead | null;
}

/** Restores the saved work, if there is any and it is wanted. @returns the checkout as it is then */
export const bringBack = Effect.fnUntraced(function* (
  { settings, report, redactor, log, ahead }: BringingBack,
  checkout: Checkout,
): Effect.fn.Return<Checkout> {
  const { wip, restore: isWanted = false } = settings.launch;
  if (wip === undefined || !isWanted) return checkout;
  if (ahead !== null) yield* ahead.undo;
  const restored = redacted(redactor, yield* restore(settings, wip));
  report.restored = restored;
  const { commits, files, skipped, error } = restored;
  log("work restored", { wip, commits, files, skipped: skipped.length, error });
  return commits === 0 ? checkout : yield* rereadCheckout(settings, checkout);
});

/** A file's name may contain a secret too. Texts are redacted before they are cut; the end has the reason. */
const redacted = (redactor: Redactor, restored: Restored): Restored => ({
  ...restored,
  skipped: restored.skipped.map(({ path, reason }) => ({ path: redactor.redact(path), reason })),
  error:
    restored.error === null
      ? null
      : cutFront(redactor.redact(storableText(restored.error)), MAX_ERROR_LENGTH),
});
