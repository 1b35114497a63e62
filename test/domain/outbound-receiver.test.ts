import * as Result from "effect/Result";
import { expect, it } from "vitest";
import { parseReceiver, shownReceiver, signingSecrets } from "../../src/domain/outbound-receiver.ts";

const rules = { allowHosts: new Set(["inside.example"]), publicUrl: "https://me.example.org" };
const isAccepted = (url: string) => Result.isSuccess(parseReceiver(url, rules));

it("accepts public https on port 443, and hosts inside that are allowed [O01]", () => {
  for (const url of ["https://a.example.org/x?y", "https://a.example.org:443/", "http://inside.example:81/"])
    expect([url, isAccepted(url)]).toEqual([url, true]);
  for (const url of [
    "http://a.example.org/",
    "https://a.example.org:444/",
    "https://me.example.org./",
    "https://192.168.1.1/",
    "https://3232235777/",
    "https://[::ffff:10.0.0.1]/",
    "https://x.internal/",
    "ftp://inside.example/",
    "https://u@a.example.org/",
  ])
    expect([url, isAccepted(url)]).toEqual([url, false]);
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
