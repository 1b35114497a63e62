import { expect, test } from "vitest";
import { MessageStatus, WorkStatus } from "../../../src/domain/conversation/conversation.ts";
import { isClosed } from "../../../src/domain/conversation/growing.ts";

test("knows which items are finished", () => {
  const open = [...MessageStatus.literals, ...WorkStatus.literals].filter((status) => !isClosed(status));
  expect(open).toEqual(["queued", "sending", "pending", "running"]);
});
