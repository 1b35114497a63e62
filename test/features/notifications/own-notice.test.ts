import { describe, expect, it } from "vitest";
import { formattedBody, mailText } from "../../../src/features/notifications/rules/outbound-format.ts";
import {
  isWanted,
  ownMessage,
  ownTest,
  type NoticedSession,
  type OwnNews,
} from "../../../src/features/notifications/rules/own-notice.ts";

const [ADA, BOB] = ["ada", "bob"];
const SESSION: NoticedSession = {
  name: "Fix the login",
  createdBy: ADA,
  triggerSlug: null,
  parentSessionId: null,
  writers: [],
};

const news = (
  type: string,
  data: OwnNews["event"]["data"] = {},
  session: Partial<NoticedSession> | null = {},
): OwnNews => ({
  event: { cursor: "1.1", type, at: 0, projectId: "p", sessionId: session === null ? null : "s", data },
  projectName: "shop",
  session: session === null ? null : { ...SESSION, ...session },
});
const isTold = (
  one: OwnNews,
  userId = ADA,
  tells: readonly ("asked" | "finished")[] = ["asked", "finished"],
) => isWanted(one, { userId, tells });

describe("a person is told", () => {
  it.each([
    ["session.waiting", {}, "asked"],
    ["approval.waiting", {}, "asked"],
    ["session.work_unsaved", {}, "asked"],
    ["session.turn_ended", { state: "completed" }, "finished"],
    ["session.turn_ended", { state: "failed" }, "finished"],
    ["session.turn_ended", { state: "interrupted" }, null],
    ["session.status", { status: "failed" }, "finished"],
    ["session.status", { status: "stopped" }, null],
    ["change_request.opened", {}, null],
  ] as const)("of %s %j if she chose %s", (type, data, kind) => {
    const one = news(type, data);
    expect([isTold(one, ADA, ["asked"]), isTold(one, ADA, ["finished"])]).toEqual([
      kind === "asked",
      kind === "finished",
    ]);
  });

  it("of a session that she started herself, or wrote to", () => {
    const of = (session: Partial<NoticedSession>, userId = ADA) =>
      isTold(news("session.waiting", {}, session), userId);
    expect(of({})).toBe(true);
    expect(of({}, BOB)).toBe(false);
    expect(of({ writers: [BOB] }, BOB)).toBe(true);
    expect(of({ triggerSlug: "nightly" })).toBe(false);
    expect(of({ parentSessionId: "other" })).toBe(false);
    expect(of({ triggerSlug: "nightly", writers: [ADA] })).toBe(true);
  });

  it("of a review that another person asks of her", () => {
    const asked = (reviewer: string, by: string) =>
      isTold(news("change_request.review_requested", { reviewer_id: reviewer, asked_by: by }, null));
    expect([asked(ADA, BOB), asked(BOB, ADA), asked(ADA, ADA)]).toEqual([true, false, false]);
    // The session of the request is hers. That does not make the review hers.
    const others = news("change_request.review_requested", { reviewer_id: BOB, asked_by: ADA });
    expect(isTold(others)).toBe(false);
  });
});

const mailOf = (one: OwnNews) => {
  const message = ownMessage(one, "https://platform.example.org");
  return message === null ? null : mailText(message);
};

describe("a mail", () => {
  it("says which session waits and for what, with a link and the way to turn it off", () => {
    expect(mailOf(news("session.waiting", { reason: "permission" }))).toEqual({
      subject: "shop: the session Fix the login waits for a permission",
      text: [
        "shop: the session Fix the login waits for a permission.",
        "",
        "https://platform.example.org/#/projects/p/sessions/s",
        "",
        "-- ",
        "You asked for this mail. Change that at https://platform.example.org/#/account",
        "",
      ].join("\n"),
    });
  });

  it.each([
    ["session.waiting", {}, "shop: the session Fix the login waits for a person"],
    [
      "session.waiting",
      { reason: "plan" },
      "shop: the session Fix the login waits for the approval of its plan",
    ],
    [
      "approval.waiting",
      { tool: "pay", connector: "bank" },
      "shop: a call of pay (bank) waits for a person's approval in Fix the login",
    ],
    ["session.turn_ended", { state: "completed" }, "shop: the agent has finished in Fix the login"],
    [
      "session.status",
      { status: "failed", failure: { code: "boot_timeout", message: "canary" } },
      "shop: the session Fix the login failed (boot_timeout)",
    ],
  ])("of %s %j has its subject in one line", (type, data, subject) => {
    expect(mailOf(news(type, { ...data, session_name: "another" }))?.subject).toBe(subject);
  });

  it("makes one line of a hostile name", () => {
    const { subject } = mailOf(news("session.waiting", {}, { name: "a\r\nBcc: eve@example.com" })) ?? {};
    expect(subject).toBe("shop: the session a Bcc: eve@example.com waits for a person");
  });
});

it("a test names the installation and the page with the settings", () => {
  const message = ownTest("0-1", { at: 0, installation: "Workshop", publicUrl: "https://p" });
  expect(mailText(message).subject).toBe("Workshop: this is a test");
  expect(JSON.parse(formattedBody("slack", message))).toEqual({
    text: "Workshop: this is a test. <https://p/#/account|Open>",
  });
});
