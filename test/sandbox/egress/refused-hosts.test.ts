import * as Effect from "effect/Effect";
import * as Logger from "effect/Logger";
import * as References from "effect/References";
import { expect, it } from "vitest";
import { tellRefused } from "../../../src/sandbox/refused-hosts.ts";

it("names each host once for a sandbox, with its session and the reason, and fifty at most", async () => {
  const lines: unknown[] = [];
  const logger = Logger.make(({ message, fiber }) => {
    lines.push([message, fiber.getRef(References.CurrentLogAnnotations)]);
  });
  const tell = await Effect.runPromise(tellRefused.pipe(Effect.provide(Logger.layer([logger]))));
  const of = { sandbox: "one", session: "s" };
  const first = tell(of);
  first("registry.example", "it is not allowed");
  first("registry.example", "it is not allowed");
  tell({ sandbox: "two", session: null })("registry.example", "it is not allowed");
  expect(lines).toEqual([
    [
      ["a sandbox asked for a host that it may not reach: registry.example"],
      { ...of, reason: "it is not allowed" },
    ],
    [expect.anything(), { sandbox: "two", session: null, reason: "it is not allowed" }],
  ]);
  for (let host = 0; host < 100; host += 1) first(`h${host}.example`, "it is not allowed");
  expect(lines).toHaveLength(51);
});
