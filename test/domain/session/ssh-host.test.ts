import { expect, test } from "vitest";
import { namedByHost, sshHost } from "../../../src/domain/session/ssh-host.ts";

test("names a session and its project by the ends of their ids, and reads both again", () => {
  const host = sshHost("prj_0000000000000000aaaabbbb", "ses_0000000000000000ccccdddd");
  expect(host).toBe("ccccdddd.aaaabbbb.platform");
  expect(namedByHost(host)).toEqual({ session: "ccccdddd", project: "aaaabbbb" });
});

test.each(["", "platform", "a.platform", "a.b.c.platform", ".b.platform", "a..platform", "a.b.example"])(
  "reads no session from the host %j",
  (host) => {
    expect(namedByHost(host)).toBeNull();
  },
);
