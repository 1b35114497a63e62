/** The thread that reads descriptions: its limits, and that it does not hold up this one. */
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Result from "effect/Result";
import { expect, test } from "vitest";
import { readDescription } from "../../src/domain/connector/openapi/description.ts";
import { makeDescriptions } from "../../src/connectors/descriptions.ts";
import { PETS } from "../support/servers/pets-server.ts";

const NONE = { headers: [], query: [] };

const read = (text: string, limits: Parameters<typeof makeDescriptions>[0] = {}) =>
  Effect.runPromise(
    Effect.flatMap(makeDescriptions(limits), (descriptions) => Effect.result(descriptions.read(text, NONE))),
  );

test("reads a description as the domain does, in a thread of its own", async () => {
  expect(await read(PETS)).toEqual(readDescription(PETS, NONE));
  expect(await read("openapi: 3.1.0")).toEqual(Result.fail("It has no paths."));
});

/** Takes long to read: thousands of operations, each with a schema of many references. */
const slow = (): string => {
  const levels = Array.from({ length: 13 }, (_, level) => [
    `Level${level}`,
    {
      allOf: [
        { $ref: `#/components/schemas/Level${level + 1}` },
        { $ref: `#/components/schemas/Level${level + 1}` },
      ],
    },
  ]);
  const operation = {
    post: {
      requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/Level0" } } } },
    },
  };
  return JSON.stringify({
    openapi: "3.1.0",
    paths: Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`/a${index}`, operation])),
    components: { schemas: Object.fromEntries([...levels, ["Level13", { type: "string" }]]) },
  });
};

test("gives up a description that takes too long, and reads the next one [K19]", async () => {
  const two = Effect.gen(function* () {
    const descriptions = yield* makeDescriptions({ readMs: 4000 });
    const first = yield* Effect.forkChild(Effect.result(descriptions.read(slow(), NONE)));
    // This thread is free meanwhile.
    yield* Effect.sleep("100 millis");
    return [yield* Fiber.join(first), yield* Effect.result(descriptions.read("openapi: 3.1.0", NONE))];
  });
  expect(await Effect.runPromise(two)).toEqual([
    Result.fail("Reading it takes longer than 4 s."),
    Result.fail("It has no paths."),
  ]);
});

test("gives up a description that needs too much memory [K19]", async () => {
  const wide = `[${Array.from({ length: 1_000_000 }, () => "{}").join(",")}]`;
  expect(await read(`{"openapi":"3.1.0","paths":{},"x":${wide}}`, { memoryMib: 16 })).toEqual(
    Result.fail("It needs too much memory to be read."),
  );
});
