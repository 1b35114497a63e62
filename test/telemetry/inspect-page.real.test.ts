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
  left: false,
  ...change,
});

const title = hasChromium
  ? "the inspector's page in Chromium"
  : "the page in Chromium (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  it.live(
    "shows each actor's state, last event and commands as they change, without the network",
    () =>
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
        yield* inspect(step({ actorId: "s2" }));
        yield* Effect.promise(() => page.getByRole("row", { name: "session:s2" }).waitFor());
        yield* inspect(step({ snapshot: stopped, left: true }));
        yield* Effect.promise(() => row.waitFor({ state: "detached" }));
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

/** The first records of the stream, for a page that is opened now. */
const given = (url: string) =>
  Effect.promise(async () => {
    const stop = new AbortController();
    const answer = await fetch(`${url}records`, { signal: stop.signal });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    const { value = "" } = (await reader?.read()) ?? {};
    stop.abort();
    return [...value.matchAll(/"sessionId":"([^"]+)"/g)].map(([, id]) => id);
  });

describe("a page that is opened late", () => {
  it.live("gets only live actors, and no actor that left memory", () =>
    Effect.gen(function* () {
      const { url, send } = yield* openInspectPage(0);
      const inspect = inspectWith(send);
      for (const actorId of ["lives", "leaves"]) yield* inspect(step({ machine: "sandbox", actorId }));
      const ended = { state: "stopped", context: {} };
      yield* inspect(
        step({ machine: "sandbox", actorId: "leaves", event: { type: "work.saved" }, snapshot: ended }),
      );
      yield* inspect(step({ machine: "sandbox", actorId: "leaves", snapshot: ended, left: true }));
      expect(yield* given(url)).toEqual(["sandbox:lives"]);
    }),
  );
});
