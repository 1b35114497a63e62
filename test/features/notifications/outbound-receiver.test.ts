import * as Result from "effect/Result";
import { expect, it } from "vitest";
import {
  parseReceiver,
  shownReceiver,
  signingSecrets,
} from "../../../src/features/notifications/rules/outbound-receiver.ts";

const rules = { allowHosts: new Set(["inside.example"]), publicUrl: "https://me.example.org" };
const isAccepted = (url: string) => Result.isSuccess(parseReceiver(url, rules));

it("accepts public https on port 443, and hosts inside that are allowed [O01]", () => {
  for (const url of ["https://a.example.org/x?y", "https://a.example.org:443/", "http://inside.example:81/"])
    expect([url, isAccepted(url)]).toEqual([url, true]);
});

it.each([
  ["http://a.example.org/", /https:\/\/ and use port 443/],
  ["https://a.example.org:8443/", /port 443/],
  ["https://127.0.0.1/", /private/],
  ["https://192.168.1.1/", /private/],
  ["https://3232235777/", /private/],
  ["https://0x7f.1/", /private/],
  ["https://[::ffff:10.0.0.1]/", /private/],
  ["https://localhost/", /private/],
  ["https://x.internal/", /private/],
  ["https://me.example.org./", /this service itself/],
  ["https://user:pw@a.example.org/", /user name or a password/],
  ["https://a.example.org/a b", /without spaces/],
  ["ftp://inside.example/", /https:\/\//],
  ["not a url", /must be a URL/],
])("refuses %s with a sentence that does not repeat it [O01]", (url, sentence) => {
  const refused = Result.flip(parseReceiver(url, rules));
  expect(Result.getOrThrow(refused)).toMatch(sentence);
  expect(Result.getOrThrow(refused)).not.toContain(url);
});

it("shows no query, and of a chat's address only the end", () => {
  const url = new URL("https://hooks.slack.com/services/T/B/secret?x=1");
  expect(shownReceiver(url, "standard")).toBe("https://hooks.slack.com/services/T/B/secret?…");
  expect(shownReceiver(url, "slack")).toBe("https://hooks.slack.com/…?x=1");
});

it("signs with the former secret until its time is over", () => {
  const secrets = { url: "", secret: "new", previous: { secret: "old", until: 10 } };
  expect(signingSecrets(secrets, 9)).toEqual(["new", "old"]);
  expect(signingSecrets(secrets, 10)).toEqual(["new"]);
});
