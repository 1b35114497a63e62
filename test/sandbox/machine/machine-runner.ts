/**
 * Runs the cases of `local` as the user it is started as, and prints one JSON line a case: `{name, failure}`. Bundled
 * and started by local.real.test.ts, since an ordinary user's run needs a process of that user.
 */
import type { AddressInfo } from "node:net";
import * as Effect from "effect/Effect";
import { runCase } from "../../conformance/sandboxes/sandbox.ts";
import { machineCases, openService } from "./machine-cases.ts";
import type { MachineSetup } from "./machine-subject.ts";
import { WAIT_MS } from "../../support/patience.ts";

/** A case that hangs fails, and the rest goes on. */
const CASE_TIMEOUT = WAIT_MS;

const service = await openService();
const setup = JSON.parse(process.argv[2] ?? "") as MachineSetup;
/** The one case to run; all of them where none is named. */
const only = process.argv[3];
const cases = machineCases(setup, (service.address() as AddressInfo).port);
for (const { name, run } of cases.filter((one) => only === undefined || one.name === only)) {
  // eslint-disable-next-line no-await-in-loop -- cases count sandboxes and processes: one at a time
  const failure = await runCase({ name, run: Effect.timeout(run, CASE_TIMEOUT) }).then(
    () => null,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  process.stdout.write(`${JSON.stringify({ name, failure })}\n`);
}
process.exit(0);
