import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import type { InspectedStep } from "../../src/actors/inspector.ts";
import { inspectWith } from "../../src/telemetry/inspect.ts";
import { openInspectPage } from "../../src/telemetry/inspect-page.ts";
import { hasChromium, launch, newPage } from "../dashboard/browser.ts";

const step = (change: Partial<InspectedStep>): InspectedStep => ({
  machine: "session",
  actorId: "s1",
  event: null,
  accepted: true,
  snapshot: { state: "provisioning", context: {} },
  commands: [],
  ...change,
});

const title = hasChromium
  ? "the inspector's page in Chromium"
  : "the page in Chromium (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  it.live("shows each actor's state, last event and commands as they change, without the network", () =>
    Effect.gen(function* () {
      const { url, send } = yield* openInspectPage(0);
      const inspect = inspectWith(send);
      const browser = yield* Effect.acquireRelease(Effect.promise(launch), (open) =>
        Effect.promise(() => open.close()),
      );
      yield* inspect(step({}));
      const { page, complaints } = yield* Effect.promise(() => newPage(browser));
      yield* Effect.promise(() => page.goto(url));
      const row = page.getByRole("row", { name: "session:s1" });
      yield* Effect.promise(() => row.getByText("provisioning").waitFor());
      const stopped = { state: "stopped", context: {} };
      const commands = [{ type: "tearDownSandbox" }, { type: "signalFreeSlot" }];
      yield* inspect(step({ event: { type: "stop.requested" }, snapshot: stopped, commands }));
      yield* Effect.promise(() => row.getByText("tearDownSandbox, signalFreeSlot").waitFor());
      expect(yield* Effect.promise(() => row.innerText())).toContain("stopped");
      yield* inspect(step({ event: { type: "stop.requested" }, accepted: false, snapshot: stopped }));
      yield* Effect.promise(() => row.getByText("stop.requested (refused)").waitFor());
      expect(complaints).toEqual([]);
    }),
  );
});
