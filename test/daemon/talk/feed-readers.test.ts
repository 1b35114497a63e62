/** Readers of the conversation, cut at any moment between any changes of it. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { REPORT_EVERY_MS } from "../../../daemon/conversation/feed.ts";
import { Follower } from "../support/follower.ts";
import { growing, item, startFeed } from "../support/feed.ts";

test("readers that are cut at any moment have what the feed has [D03]", () => {
  const id = fc.constantFrom("a", "b", "c", "d");
  const text = fc.string({ unit: fc.constantFrom("x", "sec", "secret", "ret", "😀"), maxLength: 4 });
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.record({ do: fc.constant("grow" as const), id, text }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("open" as const), id, text }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("close" as const), id, text }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("pass" as const), id, text }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("read" as const), id, text }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("cut" as const), id, text }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { feed, pass, read, versions } = startFeed(["secret"]);
      const raw = new Map<string, string>();
      const follower = new Follower();
      let reader = feed.attach(0, () => undefined);
      const takeAll = (): void => {
        for (let lines = reader.take(100); lines !== ""; lines = reader.take(100)) follower.take(lines);
      };
      for (const { do: action, id: name, text: piece } of steps) {
        const before = raw.get(name) ?? "";
        if (action === "read") follower.take(reader.take(1));
        else if (action === "pass") pass(700);
        else if (action === "cut") {
          reader.close();
          reader = feed.attach(follower.rev, () => undefined);
        } else if (action === "grow") {
          raw.set(name, before + piece);
          feed.grown({ native_id: name, offset: before.length, text: piece });
        } else
          feed.item(
            action === "open"
              ? growing(name, before)
              : item(name, { content: [{ type: "text", text: before }] }),
          );
      }
      takeAll();
      pass(REPORT_EVERY_MS);
      takeAll();
      expect([...follower.items.values()].toSorted((one, other) => one.rev - other.rev)).toEqual(versions());
      expect(JSON.stringify(versions())).not.toContain("secret");
      reader.close();
      expect(feed.readers).toBe(0);
      expect(read().takeAll().items.size).toBe(versions().length);
    }),
    { numRuns: 300 },
  );
});
