import { expect, test } from "vitest";
import { readNews } from "../../../src/domain/service/news.ts";

const kindOf = (type: string) => readNews({ type, data: {} });

test("a failure is news, and no other status of a session", () => {
  const kinds = ["running", "stopped", "failed"].map((status) =>
    readNews({ type: "session.status", data: { status } }),
  );
  expect(kinds).toEqual([null, null, "session.failed"]);
});

test("an event that only changes a page is no news", () => {
  expect(["session.turn_changed", "change_request.updated", "fire.queued"].map(kindOf)).toEqual([
    null,
    null,
    null,
  ]);
  expect(kindOf("change_request.remarked")).toBe("change_request.remarked");
});
