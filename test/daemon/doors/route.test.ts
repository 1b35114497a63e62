import { describe, expect, test } from "vitest";
import { decideRoute } from "../../../daemon/http/route.ts";

const BLOCKED = [8000, 4096, 3128];
const routed = (url: string, method = "GET") => decideRoute({ method, url }, BLOCKED);
const codeOf = (url: string, method = "GET"): string => {
  const route = routed(url, method);
  return route.kind === "refused" ? `${route.refusal.status} ${route.refusal.code}` : route.kind;
};

describe("ports", () => {
  test("passes a plain decimal port, with the rest of the target byte for byte", () => {
    expect(routed("/proxy/3000/a/b?c=%2F")).toEqual({ kind: "port", port: 3000, path: "/a/b?c=%2F" });
    expect(routed("/proxy/3000")).toEqual({ kind: "port", port: 3000, path: "/" });
    expect(routed("/proxy/3000?x=1")).toEqual({ kind: "port", port: 3000, path: "/?x=1" });
    expect(routed("/proxy/65535/")).toEqual({ kind: "port", port: 65_535, path: "/" });
  });

  test.each([
    ..."08000 0x1f40 8e3 8000.0 +8000 0o17500 -1 8000abc 73536 -57536 ８０００ 8000%00 0 65536 %38000 8000;x".split(
      " ",
    ),
    "",
  ])("refuses the port %j as malformed [X01]", (port) => {
    expect(codeOf(`/proxy/${port}/`)).toBe("400 bad_port");
  });

  test("blocks the daemon's own port [X01]", () => {
    expect(codeOf("/proxy/8000/")).toBe("403 port_blocked");
    expect(codeOf("/proxy/8000")).toBe("403 port_blocked");
  });

  test("blocks the runtime's and the forwarder's port [X02]", () => {
    expect(codeOf("/proxy/4096/session")).toBe("403 port_blocked");
    expect(codeOf("/proxy/3128/")).toBe("403 port_blocked");
  });

  test.each([
    "/proxy/3000@169.254.169.254/",
    "/proxy/127.1:3000/",
    "/proxy/169.254.169.254/",
    "/proxy/[::1]:3000/",
  ])("takes no host from %s [X03]", (url) => expect(codeOf(url)).toBe("400 bad_port"));

  test("takes no host from an absolute target, and only the path from a double slash [X03]", () => {
    expect(codeOf("http://169.254.169.254/")).toBe("400 bad_request");
    expect(codeOf("*", "OPTIONS")).toBe("400 bad_request");
    expect(routed("//169.254.169.254/")).toEqual({ kind: "runtime", path: "//169.254.169.254/" });
  });
});

describe("paths", () => {
  test.each([
    "/proxy/3000/../../platform/env",
    "/proxy/3000/..%2f..%2fplatform/env",
    "/proxy/3000/%2e%2e/%2e%2e/platform/env",
    "/proxy/3000//platform/env",
    "/proxy/3000/\\..\\platform",
  ])("passes %s on raw to its port [X06]", (url) => {
    expect(routed(url)).toEqual({ kind: "port", port: 3000, path: url.slice("/proxy/3000".length) });
  });

  test.each(["/x/../platform/abort", "//platform/abort", "/%2fplatform/abort", "/x/../proxy/8000/"])(
    "routes %s to the runtime unchanged [X06]",
    (url) => expect(routed(url, "POST")).toEqual({ kind: "runtime", path: url }),
  );

  test("serves health on exactly its path, for GET and HEAD", () => {
    expect(codeOf("/platform/health")).toBe("health");
    expect(codeOf("/platform/health", "HEAD")).toBe("health");
    expect(codeOf("/platform/health?until=booted")).toBe("health");
  });

  test.each([
    ["GET", "/platform/../platform/health"],
    ["GET", "/PLATFORM/health"],
    ["GET", "/platform/health/"],
    ["GET", "/platform%2fhealth"],
    ["GET", "/platform//health"],
    ["GET", "/platform/health%3f"],
    ["POST", "/platform/health"],
    ["OPTIONS", "/platform/health"],
  ])("does not treat %s %s as health [X07]", (method, url) => {
    expect(codeOf(url, method)).not.toBe("health");
  });

  test("answers unknown control paths and wrong methods itself", () => {
    expect(codeOf("/platform/nothing")).toBe("404 not_found");
    expect(codeOf("/platform")).toBe("404 not_found");
    expect(codeOf("/platform/abort")).toBe("405 method_not_allowed");
    expect(codeOf("/platform/abort", "POST")).toBe("abort");
  });

  test("routes the conversation by GET, with the number of a version [X07]", () => {
    expect(routed("/platform/conversation")).toEqual({ kind: "conversation", after: 0 });
    expect(routed("/platform/conversation?after=12")).toEqual({ kind: "conversation", after: 12 });
    expect(routed("/platform/turn?after=12")).toEqual({ kind: "turn", after: 12 });
    expect(codeOf("/platform/conversation?after=a")).toBe("400 bad_request");
    expect(codeOf("/platform/conversation/")).toBe("404 not_found");
    expect(codeOf("/platform/conversation", "DELETE")).toBe("405 method_not_allowed");
  });

  test("routes an output by GET, with the item's id [X07]", () => {
    expect(routed("/platform/output?item=call%2F1%20a")).toEqual({ kind: "output", item: "call/1 a" });
    expect(codeOf("/platform/output")).toBe("400 bad_request");
    expect(codeOf("/platform/output?item=")).toBe("400 bad_request");
    expect(codeOf("/platform/output?item=a", "POST")).toBe("405 method_not_allowed");
  });

  test.each(["refresh", "env"])("routes %s by POST on exactly its path [X07]", (name) => {
    expect(routed(`/platform/${name}`, "POST")).toEqual({ kind: "control", name });
    expect(routed(`/platform/${name}?x=1`, "POST")).toEqual({ kind: "control", name });
    for (const method of ["GET", "HEAD", "PUT", "DELETE"])
      expect(codeOf(`/platform/${name}`, method)).toBe("405 method_not_allowed");
    for (const path of [`/platform/${name}/`, `/platform/${name.toUpperCase()}`, `/platform//${name}`])
      expect(codeOf(path, "POST")).toBe("404 not_found");
  });

  test.each([
    ["save/list", "list"],
    ["save/read", "read"],
    ["restore", "restore"],
    ["retire", "retire"],
  ])("routes %s by POST on exactly its path", (path, call) => {
    expect(routed(`/platform/${path}`, "POST")).toEqual({ kind: "saving", call });
    for (const method of ["GET", "HEAD", "PUT", "DELETE"])
      expect(codeOf(`/platform/${path}`, method)).toBe("405 method_not_allowed");
    for (const other of [`/platform/${path}/`, "/platform/save"])
      expect(codeOf(other, "POST")).toBe("404 not_found");
  });

  test.each(["messages", "interrupt", "answer"])("routes %s by POST on exactly its path [X07]", (name) => {
    expect(routed(`/platform/${name}`, "POST")).toEqual({ kind: "steering", name });
    for (const method of ["GET", "HEAD", "PUT", "DELETE"])
      expect(codeOf(`/platform/${name}`, method)).toBe("405 method_not_allowed");
    for (const path of [`/platform/${name}/`, `/platform/${name.toUpperCase()}`, `/platform/${name}/1`])
      expect(codeOf(path, "POST")).toBe("404 not_found");
  });

  test("routes the models by GET on exactly their path [X07]", () => {
    expect(routed("/platform/models")).toEqual({ kind: "steering", name: "models" });
    expect(codeOf("/platform/models", "POST")).toBe("405 method_not_allowed");
    expect(codeOf("/platform/models/")).toBe("404 not_found");
  });

  test("routes the ports by GET on exactly their path [X07]", () => {
    expect(routed("/platform/ports")).toEqual({ kind: "ports" });
    expect(codeOf("/platform/ports", "POST")).toBe("405 method_not_allowed");
    expect(codeOf("/platform/ports/1")).toBe("404 not_found");
  });

  test("refuses TRACE [X08]", () => {
    expect(codeOf("/x", "TRACE")).toBe("405 method_not_allowed");
    expect(codeOf("/proxy/3000/", "TRACE")).toBe("405 method_not_allowed");
  });
});
