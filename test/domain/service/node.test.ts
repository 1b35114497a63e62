import * as Result from "effect/Result";
import { expect, it } from "vitest";
import { parseNodeHost, parseNodeUrl } from "../../../src/domain/service/node.ts";

it.each([
  "127.0.0.1",
  "127.9.9.9",
  "10.0.0.7",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.2",
  "100.64.0.1",
  "::1",
  "fd00::7",
])("lets a runner listen on %s", (host) => {
  expect(parseNodeHost(host)).toEqual(Result.succeed(host));
});

it.each([
  "0.0.0.0",
  "::",
  "8.8.8.8",
  "172.32.0.1",
  "169.254.1.1",
  "2001:db8::1",
  "localhost",
  "node-1",
  "10.0.0",
  "10.0.0.7 ",
  "",
])("lets no runner listen on %j: strangers may reach it, or its reach is unknown", (host) => {
  expect(Result.isFailure(parseNodeHost(host))).toBe(true);
});

it("accepts an origin as a node's address, and no other URL", () => {
  expect(parseNodeUrl("http://10.0.0.7:8080")).toEqual(Result.succeed("http://10.0.0.7:8080"));
  expect(parseNodeUrl("http://node-1:8080/")).toEqual(Result.succeed("http://node-1:8080"));
  for (const url of [
    "https://node-1",
    "http://node-1/path",
    "http://node-1/?q",
    "http://u@node-1",
    "node-1:8080",
    "",
  ])
    expect(Result.isFailure(parseNodeUrl(url)), url).toBe(true);
});
