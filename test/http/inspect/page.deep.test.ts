import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import { hasChromium, launch, newPage } from "../../dashboard/browser.ts";
import { openPage, row, step } from "./readers.ts";

const title = hasChromium
  ? "the inspector's page in Chromium"
  : "the page in Chromium (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  it.live(
    "shows each actor's state, last event and commands as they change, without the network",
    () =>
      Effect.gen(function* () {
        const left = row({ actor: { kind: "session", id: "s0" }, to: "stopped" });
        const { url, inspect } = yield* openPage([
          left,
          row({ event: "branch.created", to: "provisioning" }),
        ]);
        const browser = yield* Effect.acquireRelease(Effect.promise(launch), (open) =>
          Effect.promise(() => open.close()),
        );
        yield* inspect(step({}));
        const { page, complaints } = yield* Effect.promise(() => newPage(browser));
        yield* Effect.promise(() => page.goto(url));
        const shown = page.getByRole("row", { name: "session:s1" });
        yield* Effect.promise(() => shown.getByText("provisioning").waitFor());
        expect(yield* Effect.promise(() => page.getByRole("row").count())).toBe(2);
        const stopped = { state: "stopped", context: {} };
        const commands = [{ type: "tearDownSandbox" }, { type: "signalFreeSlot" }];
        yield* inspect(step({ event: { type: "stop.requested" }, snapshot: stopped, commands }));
        yield* Effect.promise(() => shown.getByText("tearDownSandbox, signalFreeSlot").waitFor());
        expect(yield* Effect.promise(() => shown.innerText())).toContain("stopped");
        yield* inspect(step({ event: { type: "stop.requested" }, accepted: false, snapshot: stopped }));
        yield* Effect.promise(() => shown.getByText("stop.requested (refused)").waitFor());
        yield* inspect(step({ actorId: "s2" }));
        yield* Effect.promise(() => page.getByRole("row", { name: "session:s2" }).waitFor());
        yield* inspect(step({ snapshot: stopped, left: true }));
        yield* Effect.promise(() => shown.waitFor({ state: "detached" }));
        expect(yield* Effect.promise(() => page.getByRole("row").allInnerTexts())).toEqual([
          expect.stringContaining("actor"),
          expect.stringContaining("session:s2"),
        ]);
        expect(complaints).toEqual([]);
      }),
    // Real programs on a busy machine: a limit that ends a hung test.
    180_000,
  );
});
